"""What a search for holders costs where much of what it knows dies meanwhile."""

import itertools

import pytest
from looking import Leaf

from diagnostics.holders.heap import Deadline, OutOfTimeError
from diagnostics.holders.held import Held
from diagnostics.holders.search import Web, _forget_the_dead


class Above(list):
    """The holders of an object; counts how often they are looked through."""

    looks = 0

    def __contains__(self, key):
        Above.looks += 1
        return super().__contains__(key)


@pytest.fixture
def chain():
    """A web in which each object holds the next one, and nobody else holds any of them."""
    Above.looks = 0
    web = Web(objects=Held.of(Leaf() for _ in range(500)))
    for holder, held in itertools.pairwise(web.objects):
        web.holders[held] = Above([holder])
    return web


def test_each_death_is_looked_for_only_in_what_had_been_held(chain):
    _forget_the_dead(chain, Held(), [next(iter(chain.objects))], Deadline(60))
    assert not chain.objects
    assert not chain.holders
    assert Above.looks <= 500


def test_what_lives_on_without_its_holder_is_to_be_looked_up_again(chain):
    keys = list(chain.objects)
    alive = [chain.objects[keys[2]]]
    chain.looked_up.update(keys)
    _forget_the_dead(chain, Held(), keys[:1], Deadline(60))
    assert list(chain.objects) == keys[2:]
    assert chain.looked_up >= set(keys[3:])
    assert keys[2] not in chain.looked_up
    assert id(alive[0]) == keys[2]


def test_the_dead_are_forgotten_in_the_captures_time(chain):
    ticks = itertools.count()
    with pytest.raises(OutOfTimeError):
        _forget_the_dead(
            chain,
            Held(),
            [next(iter(chain.objects))],
            Deadline(10, clock=lambda: next(ticks)),
        )
    # One tick begins the deadline; ten later the time is up, and what was forgotten is gone whole.
    assert len(chain.objects) == 490
    assert chain.holders.keys() <= chain.objects.keys()
