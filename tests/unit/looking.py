"""A look at who holds some objects of this very process, in words."""

import gc
import itertools

import pytest

from diagnostics.analysis.chains import chain_in_words
from diagnostics.holders.chains import joined_chains
from diagnostics.holders.graph import Graph
from diagnostics.holders.heap import Deadline
from diagnostics.holders.held import Held
from diagnostics.holders.living import Living, Target
from diagnostics.holders.naming import Namer
from diagnostics.holders.roots import Roots
from diagnostics.holders.search import search


class Leaf:
    """What is held in these tests."""


def emptied(*registries):
    """A fixture for a module: no test finds what another one has left, nor leaves anything."""

    @pytest.fixture(autouse=True)
    def empty():
        gc.collect()
        yield
        for registry in registries:
            registry.clear()

    return empty


def the_leaf(kind=Leaf):
    """The only living object of this class."""
    (found,) = [item for item in gc.get_objects() if type(item) is kind]
    return found


def look(*getters, around=None):
    """The rows of a look at the objects that these functions give, each born in its own unit.

    ``around`` is the deadline for what stands around the chains.
    """
    living = Living(objects=Held.of(get() for get in getters))
    targets = [Target(key, unit) for unit, key in enumerate(living.objects, start=1)]
    web = search(living, Roots(lambda _thread: False), Deadline(60))
    graph = Graph(1, web, {}, Namer())
    for number, joined in enumerate(joined_chains(web, targets, graph.namer), start=1):
        graph.add_chain(1, number, joined)
    graph.add_surroundings(around or Deadline(60))
    return graph


def in_words(graph):
    """The chains of a look."""
    return [
        chain_in_words(list(links), graph.objects, graph.references)
        for _chain, links in itertools.groupby(graph.links, lambda link: link.chain)
    ]


def words(*getters):
    """The chains to these objects."""
    return in_words(look(*getters))
