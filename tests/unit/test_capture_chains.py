"""Who holds an object, in words: every kind of root, and every way to refer to something."""

import asyncio
import ctypes
import functools
import gc
import itertools
import sys
import threading
from collections import deque
from dataclasses import dataclass

import pytest
from looking import Leaf, emptied, in_words, look, the_leaf, words

from diagnostics.holders import graph as graphs
from diagnostics.holders import heap, search
from diagnostics.holders.heap import Deadline
from diagnostics.holders.naming import Namer

HERE = "test_capture_chains.py"
MODULE = __name__


class Page:
    def __init__(self, *leaves):
        self._layout = list(leaves)


class Document:
    def __init__(self, *pages):
        self.pages = list(pages)


REGISTRY = []
OTHERS = []
_emptied = emptied(REGISTRY, OTHERS)


# -- roots -----------------------------------------------------------------------------------------


def test_a_module_level_list():
    REGISTRY.extend([object(), Leaf(), Leaf()])
    assert words(lambda: REGISTRY[2]) == [f"`REGISTRY` (module {MODULE}) -> 2 `Leaf`"]


def test_a_local_of_a_running_function():
    def load_pages():
        document = Document(Page(Leaf()), Page(Leaf(), Leaf()))
        return words(the_second), sys._getframe().f_lineno, document

    def the_second():
        return next(item for item in gc.get_objects() if type(item) is Document).pages[1]._layout[1]

    found, line, _document = load_pages()
    place = f"test_a_local_of_a_running_function.load_pages, {HERE}:{line}"
    assert found == [
        f"`document` (local of {place})"
        " -> `Document.pages` list -> `Page[1]` -> `Page._layout` list -> 2 `Leaf`"
    ]


def test_a_local_of_a_generator_that_a_loop_waits_in():
    def load_pages():
        document = Document(Page(Leaf()))
        for page in document.pages:
            del page
            yield

    for _ in load_pages():
        (found,) = words(the_leaf)
    place = "test_a_local_of_a_generator_that_a_loop_waits_in.load_pages"
    line = load_pages.__code__.co_firstlineno + 4
    assert found == (
        f"`document` (local of {place}, {HERE}:{line})"
        " -> `Document.pages` list -> `Page[0]` -> `Page._layout` list -> `Leaf[0]`"
    )


def test_a_thread():
    class Worker(threading.Thread):
        def __init__(self):
            super().__init__(name="parser-1")
            self.seen = [Leaf()]
            self.ready, self.over = threading.Event(), threading.Event()

        def run(self):
            self.ready.set()
            self.over.wait()

    worker = Worker()
    worker.start()
    worker.ready.wait()
    try:
        assert words(the_leaf) == ["thread parser-1 -> `Worker.seen` list -> `Leaf[0]`"]
    finally:
        worker.over.set()
        worker.join()


def test_a_class():
    class Loader:
        cache = {"pages": [Leaf()]}  # noqa: RUF012 - that is the leak

    assert words(the_leaf) == ["`cache` (class Loader) -> `['pages']` list -> `Leaf[0]`"]
    assert Loader.cache


def remembering():
    seen = [Leaf()]

    def on_page():
        return seen

    return on_page


def test_a_closure_of_a_function_of_a_module(monkeypatch):
    monkeypatch.setattr(sys.modules[MODULE], "on_page", remembering(), raising=False)
    line = remembering.__code__.co_firstlineno + 3
    assert words(the_leaf) == [
        f"`seen` (closure of remembering.on_page, {HERE}:{line}) -> `Leaf[0]`"
    ]


def test_a_closure_in_a_list_of_callbacks():
    REGISTRY.append(remembering())
    line = remembering.__code__.co_firstlineno + 3
    assert words(the_leaf) == [
        f"`REGISTRY` (module {MODULE}) -> `function[0]`"
        f" -> `seen` list (closure of remembering.on_page, {HERE}:{line}) -> `Leaf[0]`"
    ]


async def fetch(leaf, gate):
    await gate.wait()
    return [leaf]


def test_a_pending_task():
    async def run():
        gate = asyncio.Event()
        task = asyncio.create_task(fetch(Leaf(), gate))
        await asyncio.sleep(0)
        found = words(the_leaf)
        gate.set()
        await task
        return found

    line = fetch.__code__.co_firstlineno + 1
    place = f"fetch, {HERE}:{line}"
    assert asyncio.run(run()) == [
        f"pending task {place} -> `Task._coro` coroutine -> `leaf` Leaf (local of {place})"
    ]


def test_finished_tasks_in_a_set():
    async def run():
        gate = asyncio.Event()
        gate.set()
        REGISTRY.append({asyncio.create_task(fetch(Leaf(), gate)) for _ in range(3)})
        await asyncio.gather(*REGISTRY[0])

    asyncio.run(run())
    assert words(lambda: next(i for i in gc.get_objects() if type(i) is Leaf)) == [
        f"`REGISTRY` (module {MODULE}) -> `[0]` set -> `Task` -> `Task._result` list -> `Leaf[0]`"
    ]


def fail(leaf):
    page = Page(leaf)
    raise ValueError(len(page._layout))


def test_the_traceback_of_a_kept_exception():
    try:
        fail(Leaf())
    except ValueError as error:
        REGISTRY.append(error.with_traceback(error.__traceback__.tb_next))
    line = fail.__code__.co_firstlineno + 2
    assert words(the_leaf) == [
        f"`REGISTRY` (module {MODULE}) -> `ValueError[0]`"
        " -> `ValueError.__traceback__` traceback -> `traceback.tb_frame` frame"
        f" -> `leaf` Leaf (local of fail, {HERE}:{line})"
    ]


def test_an_exception_that_is_being_handled():
    try:
        fail(Leaf())
    except ValueError:
        (found,) = words(the_leaf)
    assert found.startswith("`ValueError` being handled -> `ValueError.__traceback__` traceback")
    assert found.endswith(f"`leaf` Leaf (local of fail, {HERE}:{fail.__code__.co_firstlineno + 2})")


def test_a_reference_that_an_extension_holds():
    leaves = [Leaf()]
    address = id(leaves)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(leaves))
    del leaves
    try:
        assert words(the_leaf) == ["no Python referrer -> `list` -> `Leaf[0]`"]
    finally:
        ctypes.pythonapi.Py_DecRef(ctypes.cast(address, ctypes.py_object))


def test_a_cycle_that_waits_for_the_collector():
    gc.disable()
    try:
        leaf = Leaf()
        leaf.itself = [leaf]
        del leaf
        (found,) = words(the_leaf)
    finally:
        gc.enable()
    assert found.startswith("a cycle of references -> ")


def test_what_the_program_has_let_go_of_has_no_chain():
    assert words(Leaf) == []


def when_holders_are_asked_for(level, act, monkeypatch):
    """Have the program do something just before that level's holders are looked for."""
    levels = itertools.count(1)

    def holders(wanted, deadline):
        if next(levels) == level:
            act()
        return heap.holders(wanted, deadline)

    monkeypatch.setattr(search, "holders", holders)


def test_a_holder_that_dies_during_the_look_takes_what_it_held_with_it(monkeypatch):
    REGISTRY.append([[Leaf()]])
    when_holders_are_asked_for(3, REGISTRY.clear, monkeypatch)
    graph = look(the_leaf)
    assert (graph.links, graph.objects) == ([], [])


def test_a_holder_that_dies_during_the_look_leaves_the_place_to_the_next(monkeypatch):
    REGISTRY.append([Leaf()])

    def move():
        REGISTRY[0] = {"moved": REGISTRY[0][0]}

    when_holders_are_asked_for(2, move, monkeypatch)
    assert words(the_leaf) == [f"`REGISTRY` (module {MODULE}) -> `[0]` dict -> `['moved']` Leaf"]


# -- references ------------------------------------------------------------------------------------


class Slotted:
    __slots__ = ("leaf", "other")

    def __init__(self, leaf):
        self.leaf = leaf


class Cached:
    @functools.cached_property
    def layout(self):
        return [Leaf()]


@dataclass
class Row:
    leaf: Leaf


class Tricky:
    """Would tell the wrong thing, and raise, if anybody ran its code."""

    def __init__(self):
        self.leaf = Leaf()

    def __getattribute__(self, name):
        raise AssertionError("the program's code was run")

    @property
    def aaa(self):
        raise AssertionError("the program's code was run")

    __repr__ = __len__ = __eq__ = __bool__ = __iter__ = aaa
    __hash__ = None


def bare():
    row = type("Bare", (), {})()
    row.never_named_in_a_method_of_it = Leaf()
    return row


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: [Leaf()], "`[0]` list -> `Leaf[0]`"),
        (lambda: (0, Leaf()), "`[0]` tuple -> `Leaf[1]`"),
        (lambda: deque([0, 0, Leaf()]), "`[0]` deque -> `Leaf[2]`"),
        (lambda: {Leaf()}, "`[0]` set -> `Leaf`"),
        (lambda: {"layout": Leaf()}, "`[0]` dict -> `['layout']` Leaf"),
        (lambda: {87: Leaf()}, "`[0]` dict -> `Leaf[87]`"),
        (lambda: Slotted(Leaf()), "`Slotted[0]` -> `Slotted.leaf` Leaf"),
        (lambda: Row(Leaf()), "`Row[0]` -> `Row.leaf` Leaf"),
        (
            lambda: functools.partial(print, Leaf()),
            "`partial[0]` -> `partial.args` tuple -> `Leaf[0]`",
        ),
        (Tricky, "`Tricky[0]` -> `Tricky.leaf` Leaf"),
        (bare, "`Bare[0]` -> `Bare.never_named_in_a_method_of_it` Leaf"),
    ],
)
def test_the_words_for_a_reference(make, expected):
    REGISTRY.append(make())
    assert words(the_leaf) == [f"`REGISTRY` (module {MODULE}) -> {expected}"]


def test_a_cached_property():
    REGISTRY.append(Cached())
    assert REGISTRY[0].layout
    assert words(the_leaf) == [
        f"`REGISTRY` (module {MODULE}) -> `Cached[0]` -> `Cached.layout` list -> `Leaf[0]`"
    ]


@functools.lru_cache(maxsize=4)
def parse(number):
    return Page(Leaf())


def test_an_lru_cache():
    parse(1)
    try:
        (found,) = words(the_leaf)
    finally:
        parse.cache_clear()
    assert found == f"`parse` (module {MODULE}) -> `Page` -> `Page._layout` list -> `Leaf[0]`"


class Shelf:
    spare = None

    def first(self):
        return self.spare or self.newest

    def __init__(self, leaf):
        self.newest = leaf


def test_what_the_class_has_is_no_attribute_of_its_instance():
    # given an object that an instance has, and its class too, under a name that comes first
    shelf = Shelf(leaf := Leaf())
    Shelf.spare = leaf
    try:
        assert Namer().label(shelf, leaf) == ".newest"
    finally:
        Shelf.spare = None


def test_no_text_of_the_document_gets_into_the_words():
    secret = "".join(["Sala", "ry"])  # a word that stands nowhere in the program
    REGISTRY.append({secret: Leaf(), f"{secret} of J. Doe": Page(Leaf())})
    for kind in (Leaf, Page):
        graph = look(lambda kind=kind: next(i for i in gc.get_objects() if type(i) is kind))
        assert "[str]" in in_words(graph)[0]
        assert secret not in repr(graph.objects) + repr(graph.references)


def test_nothing_gets_a_dict_that_it_did_not_have():
    page = Page(Leaf())
    before = len(gc.get_referents(page))
    assert words(the_leaf)
    assert not any(type(part) is dict for part in gc.get_referents(page))
    assert len(gc.get_referents(page)) == before


# -- chains ----------------------------------------------------------------------------------------


def test_chains_that_differ_in_indexes_only_are_one():
    REGISTRY.append(Document(*[Page(Leaf(), Leaf()) for _ in range(5)]))
    graph = look(*[lambda page=page: REGISTRY[0].pages[page]._layout[1] for page in (1, 2, 4)])
    assert {(link.chain, link.count) for link in graph.links} == {(1, 3)}
    assert in_words(graph) == [
        f"`REGISTRY` (module {MODULE}) -> `Document[0]` -> `Document.pages` list"
        " -> `Page[1]` -> `Page._layout` list -> 2 `Leaf`"
    ]
    # What all units share is in use; each page, and what is below it, belongs to one of them.
    wrong = {link.position for link in graph.links if link.likely_wrong}
    assert wrong == {4, 5, 6}


def test_two_holders_are_two_chains():
    REGISTRY.append(Page(Leaf()))
    OTHERS.append({"again": REGISTRY[0]._layout})
    assert sorted(words(the_leaf)) == [
        f"`OTHERS` (module {MODULE}) -> `[0]` dict -> `['again']` list -> `Leaf[0]`",
        f"`REGISTRY` (module {MODULE}) -> `Page[0]` -> `Page._layout` list -> `Leaf[0]`",
    ]


# -- what stands around them -----------------------------------------------------------------------


def around(graph):
    """The types of the objects that are on no chain."""
    of_chains = {link.object for link in graph.links}
    return [item.type for item in graph.objects if item.id not in of_chains]


def test_what_stands_around_a_chain_is_left_out_when_the_time_is_up():
    REGISTRY.append(Page(Leaf(), b"text of the page"))
    assert "builtins.bytes" in around(look(the_leaf))
    graph = look(the_leaf, around=Deadline(-1))
    assert in_words(graph) == [
        f"`REGISTRY` (module {MODULE}) -> `Page[0]` -> `Page._layout` list -> `Leaf[0]`"
    ]
    assert around(graph) == []


def test_the_time_may_be_up_within_one_long_list():
    # given a list so long that looking at each of its entries would take a hundred looks at a clock
    REGISTRY.append([Leaf(), *(bytes(1) for _ in range(100 * graphs._PARTS_AT_ONCE))])
    ticks = itertools.count()
    graph = look(the_leaf, around=Deadline(20, clock=lambda: next(ticks)))
    assert "builtins.bytes" not in around(graph)
    assert next(ticks) < 30


def test_there_is_room_for_so_many_objects(monkeypatch):
    REGISTRY.append(Page(Leaf(), *[kind() for kind in (bytearray, set, deque, object, Document)]))
    chain = {link.object for link in look(the_leaf).links}
    assert len(around(look(the_leaf))) > 2
    monkeypatch.setattr(graphs, "_MOST_OBJECTS", len(chain) + 2)
    assert len(around(look(the_leaf))) == 2
