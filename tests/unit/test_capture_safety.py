"""A look at a program runs none of its code."""

import ctypes
import functools
import gc
import sys
import threading
import types
from collections import OrderedDict, deque

import pytest
from looking import Leaf, emptied, look, the_leaf, words

from diagnostics.holders.heap import Deadline, buffer_owners
from diagnostics.holders.held import shallow_size
from diagnostics.probes.object_types import count_types
from diagnostics.probes.safe import type_name

BEGIN = f"`REGISTRY` (module {__name__}) -> "
REGISTRY = []
_emptied = emptied(REGISTRY)


def ran(*_args, **_kwargs):
    raise AssertionError("the program's code was run")


TRAP = property(ran)

ITERATION = ("__iter__", "__len__", "__length_hint__", "__contains__", "__getitem__", "__bool__")
COMPARISON = ("__eq__", "__ne__", "__hash__")
VIEWS = ("keys", "values", "items", "get", "__reversed__")
SURFACE = ("__getattribute__", "__getattr__", "__repr__", "__str__", "__format__", "__sizeof__")


def keep(item, **attributes):
    """Let the registry, and nobody else, have an object and what its attributes refer to."""
    for name, value in attributes.items():
        object.__setattr__(item, name, value)
    REGISTRY.append(item)


def hostile(name, base, *more):
    """A class derived from another, all of whose ways to be looked at raise."""
    methods = dict.fromkeys((*ITERATION, *COMPARISON, *SURFACE, *more), ran)
    return type(name, (base,), {**methods, "__class__": TRAP})


# -- containers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "content", "expected"),
    [
        (list, lambda: [0, Leaf()], "`Leaf[1]`"),
        (tuple, lambda: [0, 0, Leaf()], "`Leaf[2]`"),
        (deque, lambda: [Leaf()], "`Leaf[0]`"),
        (set, lambda: [0, Leaf()], "`Leaf`"),
        (frozenset, lambda: [Leaf()], "`Leaf`"),
        (dict, lambda: {"layout": Leaf()}, "`['layout']` Leaf"),
        (dict, lambda: {Leaf(): None}, "`Leaf`"),
        (OrderedDict, lambda: [(87, Leaf())], "`Leaf[87]`"),
    ],
)
def test_containers_that_iterate_in_python(base, content, expected):
    REGISTRY.append(hostile("Pages", base, *VIEWS)(content()))
    assert words(the_leaf) == [f"{BEGIN}`Pages[0]` -> {expected}"]


def test_alike_objects_in_a_container_that_iterates_in_python():
    class Pages(list):
        def __iter__(self):
            while True:  # loads for ever
                yield None

    REGISTRY.append(Pages([Leaf(), Leaf(), Leaf()]))
    graph = look(lambda: list.__getitem__(REGISTRY[0], 1))
    assert [item.count for item in graph.objects if item.type == type_name(Leaf)][:1] == [3]


def test_a_list_with_attributes():
    class Pages(list):
        pass

    keep(Pages(), title=Leaf())
    assert words(the_leaf) == [f"{BEGIN}`Pages[0]` -> `Pages.title` Leaf"]


# -- keys ------------------------------------------------------------------------------------------


class Key(str):
    """A text that compares itself with others in Python."""

    __hash__ = str.__hash__
    __format__ = __str__ = __repr__ = ran
    __eq__ = ran


def test_a_key_that_compares_itself():
    REGISTRY.append({Key("layout"): Leaf()})
    assert words(the_leaf) == [f"{BEGIN}`[0]` dict -> `Leaf[Key]`"]


@pytest.mark.parametrize("first", ["leaf", "other"])
def test_a_name_of_an_attribute_that_compares_itself(first):
    REGISTRY.append(Row())
    REGISTRY[0].__dict__ = {Key(first): None, "kept": Leaf()}
    assert words(the_leaf) == [f"{BEGIN}`Row[0]` -> `Row.kept` Leaf"]


class Row:
    def read(self):
        return self.leaf, self.other, self.kept


# -- types -----------------------------------------------------------------------------------------


TOLD = ("__dict__", "__mro__", "__name__", "__module__", "__flags__", "__base__", "__bases__")
TOLD += ("__dictoffset__", "__basicsize__", "__class__")


def strange(*bases, **names):
    """A class whose metaclass answers everything with a complaint."""
    checks = ("__subclasscheck__", "__instancecheck__")
    methods = dict.fromkeys((*COMPARISON, *SURFACE, *checks), ran)
    meta = type("Meta", (type,), {**methods, **dict.fromkeys(TOLD, TRAP)})
    own = {"__module__": __name__, "__qualname__": "Strange"}
    return type.__new__(meta, "Strange", bases, {**own, **names})


def test_a_metaclass_that_computes_what_a_class_is():
    keep(object.__new__(strange()), leaf=Leaf())
    assert words(the_leaf) == [f"{BEGIN}`Strange[0]` -> `Strange.leaf` Leaf"]
    assert shallow_size(REGISTRY[0]) > 0
    assert count_types()[f"{__name__}.Strange"] == 1


def test_a_value_of_a_strange_class_beside_the_one_that_is_looked_for():
    keep(Row(), kept=Leaf(), other=object.__new__(strange()))
    keep(object.__new__(strange()))
    assert words(the_leaf) == [f"{BEGIN}`Row[0]` -> `Row.kept` Leaf"]


def test_a_strange_class_as_a_key_and_as_a_value():
    REGISTRY.append({"kind": strange(), "leaf": Leaf(), 3: list.__new__(strange(list))})
    assert words(the_leaf) == [f"{BEGIN}`[0]` dict -> `['leaf']` Leaf"]


def test_the_owner_of_a_buffer_among_objects_of_strange_classes():
    pytest.importorskip("diagnostics.probes._scan", reason="no C compiler")
    REGISTRY.extend(object.__new__(strange()) for _ in range(3))
    owner = bytearray(5000)
    REGISTRY.append(owner)
    buffer = ctypes.addressof(ctypes.c_char.from_buffer(owner))
    found, owners = buffer_owners([buffer], Deadline(60))
    assert owners[buffer] == id(owner)
    assert found[id(owner)] is owner


def test_texts_that_format_themselves():
    kind = type("Page", (), {"__module__": object.__new__(hostile("Name", object))})
    kind.__qualname__ = Key("Page")
    assert type_name(kind) == "Page"
    assert type(type_name(kind)) is str


# -- attributes ------------------------------------------------------------------------------------


class Lender:
    __slots__ = ("lent",)


def test_values_in_a_class_that_are_no_descriptors_of_it():
    class Page:
        current = object.__new__(hostile("Proxy", object))
        borrowed = Lender.lent
        __sizeof__ = list.__sizeof__

    keep(Page())
    REGISTRY[0].named_nowhere_in_this_class = Leaf()
    graph = look(the_leaf)
    (row,) = [item for item in graph.objects if item.type == type_name(Page)]
    assert row.size == shallow_size(Row())
    assert words(the_leaf) == [f"{BEGIN}`Page[0]` -> `Page.named_nowhere_in_this_class` Leaf"]


def test_a_metaclass_that_denies_all_bases():
    class Alone(type):
        def mro(cls):
            return [cls]

    class Page:
        pass

    page = Page()
    page.__class__ = Alone("Page", (), {})
    assert shallow_size(page) == 0


def test_a_class_that_has_its_own_idea_of_its_dict():
    class Page:
        __dict__ = TRAP

    keep(Page())
    REGISTRY[0].named_nowhere_in_this_class = Leaf()
    assert words(the_leaf) == [f"{BEGIN}`Page[0]` -> `Page.named_nowhere_in_this_class` Leaf"]


def test_a_cached_property_that_nobody_has_read():
    class Page:
        @functools.cached_property
        def layout(self):
            return ran()

    keep(Page())
    REGISTRY[0].named_nowhere_in_this_class = Leaf()
    assert words(the_leaf) == [f"{BEGIN}`Page[0]` -> `Page.named_nowhere_in_this_class` Leaf"]
    assert not any(type(part) is dict for part in gc.get_referents(REGISTRY[0]))


def test_an_attribute_behind_a_descriptor_of_a_strange_class():
    class Page:
        kept = object.__new__(strange(__get__=ran))

    keep(Page(), kept=Leaf())
    assert words(the_leaf) == [f"{BEGIN}`Page[0]` -> `Leaf`"]


@pytest.mark.parametrize("name", ["asyncio", "_asyncio"])
@pytest.mark.parametrize("contents", [{}, {"Task": strange(), "Future": strange()}])
def test_modules_that_are_half_imported_or_not_what_they_seem(monkeypatch, name, contents):
    module = types.ModuleType(name)
    module.__dict__.update(contents)
    monkeypatch.setitem(sys.modules, name, module)
    keep(Row(), kept=Leaf())
    assert words(the_leaf) == [f"{BEGIN}`Row[0]` -> `Row.kept` Leaf"]


# -- roots -----------------------------------------------------------------------------------------


def test_a_thread_that_computes_its_name():
    armed, ready, over = [], threading.Event(), threading.Event()

    class Worker(threading.Thread):
        def __getattribute__(self, name):
            return ran() if armed else super().__getattribute__(name)

        def run(self):
            ready.set()
            over.wait()

    worker = Worker(name="parser-1")
    worker.seen = [Leaf()]
    worker.start()
    ready.wait()
    armed.append(True)
    try:
        assert words(the_leaf) == ["thread parser-1 -> `Worker.seen` list -> `Leaf[0]`"]
    finally:
        armed.clear()
        over.set()
        worker.join()


def test_an_error_that_computes_what_it_is():
    class Odd(Exception):  # noqa: N818
        __class__ = TRAP

    try:
        raise Odd(Leaf())
    except Odd:
        found = words(the_leaf)
    assert found == ["`Odd` being handled -> `Odd.args` tuple -> `Leaf[0]`"]


def test_the_body_of_a_class_with_a_namespace_of_its_own():
    found = []

    class Names(dict):
        get = __delitem__ = keys = ran

    class Meta(type):
        @classmethod
        def __prepare__(cls, _name, _bases):
            return Names()

    class Page(metaclass=Meta):
        REGISTRY.append([Leaf()])
        found.extend(words(the_leaf))

        def read(self):
            return super().__repr__()

    assert Page
    assert found == [f"{BEGIN}`[0]` list -> `Leaf[0]`"]
