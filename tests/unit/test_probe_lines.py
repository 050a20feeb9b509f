"""Lines of named functions get their exact increments, in every kind of function and thread."""

import asyncio
import importlib
import inspect
import sys
import textwrap
import threading
import time
import types
from contextlib import contextmanager

import pytest

from diagnostics.errors import UsageError
from diagnostics.probes.base import Session
from diagnostics.probes.lines import LineProbe
from diagnostics.probes.script_names import script_namespace
from diagnostics.probes.targets import find, parse, swap_everywhere

MB = 1024 * 1024

MAPPING = """
import mmap

# Straight from the kernel and resident at once, whatever the allocator kept from earlier tests.
FLAGS = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE


def mapped(megabytes):
    return mmap.mmap(-1, megabytes * 1024 * 1024, FLAGS)
"""

MODULE = """
import contextlib
import functools
import math

from mapping import mapped

MB = 1024 * 1024


def traced(function):
    @functools.wraps(function)
    def decorated(*args):
        return function(*args)
    return decorated


def load(size):
    block = mapped(size)  # allocate
    text = "small"
    del block  # release
    return text


def keep(store, times):
    for _ in range(times):
        store.append(mapped(8))  # kept
    return len(store)


def outer(store):
    inner(store)  # calls inner
    return 1


def inner(store):
    store.append(mapped(16))  # inner allocates


def recursive(store, depth):
    if depth:
        recursive(store, depth - 1)  # calls itself
    store.append(mapped(8))  # each depth


def comprehended(store):
    store.extend([mapped(8) for _ in range(3)])  # in one line
    return [len(store)]


def pages(store):
    for number in range(3):
        store.append(mapped(8))  # before the yield
        yield number  # yields


async def fetch(store):
    store.append(mapped(8))  # awaits next
    await pause()
    store.append(mapped(16))  # afterwards
    return "done"


async def pause():
    import asyncio
    await asyncio.sleep(0)


async def stream():
    yield 1


@traced
def wrapped(store):
    store.append(mapped(8))  # below a decorator


@contextlib.contextmanager
def managed():
    yield


class Loader:
    def method(self, store):
        store.append(mapped(8))  # in a method
        return self

    @classmethod
    def made(cls, store):
        store.append(mapped(8))  # in a class method
        return cls()

    @staticmethod
    def plain(store):
        store.append(mapped(8))  # in a static method

    @property
    def size(self):
        return 1

    twin = load
"""


@pytest.fixture
def mapping(tmp_path, monkeypatch):
    """A module ``mapping`` whose ``mapped(8)`` makes the resident set 8 MB larger."""
    (tmp_path / "mapping.py").write_text(MAPPING)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    module = importlib.import_module("mapping")
    yield module
    sys.modules.pop("mapping")


@pytest.fixture
def ingest(mapping, tmp_path, monkeypatch):
    """A module ``ingest`` as a user has one, and a second that imported a function from it."""
    (tmp_path / "ingest.py").write_text(MODULE)
    (tmp_path / "service.py").write_text("from ingest import load as read, keep\n")
    for name in ("ingest", "service"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    importlib.invalidate_caches()
    yield importlib.import_module("ingest")
    for name in ("ingest", "service"):
        sys.modules.pop(name, None)


class Table:
    """Takes what the probe writes."""

    def __init__(self):
        self.rows = {}

    def put_line_profile(self, rows):
        self.rows.update({(row.function, row.line): row for row in rows})

    def line(self, mark, function=None):
        (row,) = [
            row
            for row in self.rows.values()
            if row.source.endswith(f"# {mark}") and function in (None, row.function)
        ]
        return row

    def increments(self, function):
        return sum(row.increment or 0 for row in self.rows.values() if row.function == function)


def start(*functions, log=None):
    probe = LineProbe(functions)
    lines = [] if log is None else log
    session = Session(
        time.monotonic_ns, lambda: 0, lambda thread: False, lambda *line: lines.append(line)
    )
    probe.start(session)
    return probe


@contextmanager
def profiled(*functions, log=None):
    probe = start(*functions, log=log)
    table = Table()
    try:
        yield table
    finally:
        probe.stop()
    probe.finish(table, 1)


def about(size):
    """The resident set also moves by the few pages that everything else takes."""
    return pytest.approx(size, abs=MB)


def test_lines_that_allocate_and_release(ingest):
    with profiled("ingest:load") as table:
        assert ingest.load(64) == "small"
    allocate, release = table.line("allocate"), table.line("release")
    assert allocate.increment == about(64 * MB)
    assert release.increment == about(-64 * MB)
    assert allocate.rss - release.rss == about(64 * MB)
    assert (allocate.hits, release.hits) == (1, 1)
    assert allocate.function == "ingest:load"
    assert allocate.file == ingest.__file__
    assert allocate.source == "    block = mapped(size)  # allocate"


def test_every_line_of_the_function_has_a_row_and_those_that_did_not_run_have_no_figures(ingest):
    with profiled("ingest:keep") as table:
        assert ingest.keep([], 0) == 0
    source, first = inspect.getsourcelines(ingest.keep)
    assert [line for _function, line in table.rows] == list(range(first, first + len(source)))
    kept = table.line("kept")
    assert (kept.rss, kept.increment, kept.hits) == (None, None, None)


def test_a_loop_is_compared_with_where_each_execution_began(ingest):
    # 64 MB come and go before: memory_profiler itself compares with the highest reading so far.
    store = []
    with profiled("ingest:keep", "ingest:load") as table:
        ingest.load(64)
        ingest.keep(store, 4)
        ingest.load(64)
        ingest.keep(store, 2)
    assert table.line("kept").increment == about(6 * 8 * MB)
    assert table.line("kept").hits == 6
    assert table.increments("ingest:load") == about(0)


def test_a_profiled_function_that_calls_another(ingest):
    with profiled("ingest:outer", "ingest:inner") as table:
        ingest.outer([])
    assert table.line("calls inner").increment == about(16 * MB)
    assert table.line("inner allocates").increment == about(16 * MB)
    assert table.increments("ingest:outer") == about(16 * MB)


def test_recursion_counts_nothing_twice(ingest):
    with profiled("ingest:recursive") as table:
        ingest.recursive([], 3)
    assert table.line("each depth").increment == about(4 * 8 * MB)
    assert table.line("calls itself").increment == about(0)
    assert (table.line("each depth").hits, table.line("calls itself").hits) == (4, 3)


def test_a_comprehension_counts_nothing_twice(ingest):
    with profiled("ingest:comprehended") as table:
        ingest.comprehended([])
    assert table.line("in one line").increment == about(3 * 8 * MB)
    assert table.increments("ingest:comprehended") == about(3 * 8 * MB)


def test_a_generator_is_followed_while_it_runs_and_not_between(ingest, mapping):
    store, others = [], []
    with profiled("ingest:pages") as table:
        numbers = []
        for number in ingest.pages(store):
            numbers.append(number)
            others.append(mapping.mapped(16))
    assert numbers == [0, 1, 2]
    assert table.line("before the yield").increment == about(3 * 8 * MB)
    assert table.line("yields").increment == about(0)
    assert (table.line("before the yield").hits, table.line("yields").hits) == (3, 3)
    assert table.increments("ingest:pages") == about(3 * 8 * MB)


def test_a_generator_stays_a_generator(ingest):
    with profiled("ingest:pages"):
        assert inspect.isgeneratorfunction(ingest.pages)
        left = ingest.pages([])
        assert inspect.isgenerator(left)
        next(left)
        with pytest.raises(KeyError):
            left.throw(KeyError("thrown in"))
        closed = ingest.pages([])
        next(closed)
        closed.close()
        assert list(closed) == []
        assert sys.gettrace() is None


def test_coroutines_that_take_turns_keep_apart(ingest):
    async def both(first, second):
        return await asyncio.gather(ingest.fetch(first), ingest.fetch(second))

    with profiled("ingest:fetch") as table:
        assert inspect.iscoroutinefunction(ingest.fetch)
        assert asyncio.run(both([], [])) == ["done", "done"]
    assert table.line("awaits next").increment == about(2 * 8 * MB)
    assert table.line("afterwards").increment == about(2 * 16 * MB)
    assert (table.line("awaits next").hits, table.line("afterwards").hits) == (2, 2)


def test_a_function_is_followed_in_every_thread(ingest):
    # memory_profiler itself turns tracing on in the first thread only.
    inside = threading.Barrier(2)
    stores = [[], []]

    def work(store):
        inside.wait()
        for _ in range(20):
            ingest.keep(store, 1)
        inside.wait()

    with profiled("ingest:keep") as table:
        threads = [threading.Thread(target=work, args=[store]) for store in stores]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert table.line("kept").hits == 40


@pytest.mark.parametrize(
    ("name", "mark", "call"),
    [
        ("Loader.method", "in a method", lambda ingest, store: ingest.Loader().method(store)),
        ("Loader.made", "in a class method", lambda ingest, store: ingest.Loader.made(store)),
        ("Loader.plain", "in a static method", lambda ingest, store: ingest.Loader.plain(store)),
        ("wrapped", "below a decorator", lambda ingest, store: ingest.wrapped(store)),
    ],
)
def test_methods_and_decorated_functions(ingest, name, mark, call):
    before = dict(vars(ingest.Loader))
    with profiled(f"ingest:{name}") as table:
        call(ingest, [])
    assert table.line(mark).increment == about(8 * MB)
    assert dict(vars(ingest.Loader)) == before


def test_every_name_for_the_function_is_replaced_and_restored(ingest):
    service = importlib.import_module("service")
    original = ingest.load
    with profiled("ingest:load") as table:
        assert ingest.load is service.read is not original
        assert ingest.load.__name__ == "load"
        service.read(8)
        sys.modules.pop("service")
        imported_meanwhile = importlib.import_module("service")
    assert table.line("allocate").hits == 1
    assert ingest.load is imported_meanwhile.read is original


def test_a_reference_that_was_kept_runs_untraced_afterwards(ingest):
    with profiled("ingest:load") as table:
        kept = ingest.load
    kept(8)
    assert table.line("allocate").hits is None


def test_errors_and_results_pass_through_and_tracing_ends(ingest):
    with profiled("ingest:load"):
        with pytest.raises(TypeError):
            ingest.load("not a number")
        with pytest.raises(TypeError):
            ingest.load()
        assert sys.gettrace() is None


def test_a_debugger_that_traces_goes_on_seeing_calls(ingest):
    seen = []

    def debugger(frame, event, arg):
        seen.append((frame.f_code.co_name, event))

    with profiled("ingest:outer") as table:
        sys.settrace(debugger)
        try:
            ingest.outer([])
            assert sys.gettrace() is debugger
        finally:
            sys.settrace(None)
    assert ("outer", "call") in seen
    assert ("inner", "call") in seen
    assert table.line("calls inner").hits == 1


def test_lines_are_written_now_and_then_while_the_run_goes_on(ingest):
    probe = start("ingest:load")
    second = 1_000_000_000
    table = Table()
    try:
        ingest.load(8)
        probe.tick(table, second)
        assert table.line("allocate").hits == 1
        ingest.load(8)
        probe.tick(table, second + 1)
        assert table.line("allocate").hits == 1
        probe.tick(table, 2 * second)
        assert table.line("allocate").hits == 2
        table.rows.clear()
        probe.tick(table, 4 * second)
        assert table.rows == {}  # nothing new
        assert probe.cost_ns > 0
    finally:
        probe.stop()


@pytest.mark.parametrize(
    ("text", "module"),
    [
        ("ingest:load", "ingest"),
        ("ingest.py:load", "ingest"),
        ("mypackage/ingest.py:load", "mypackage.ingest"),
        ("./ingest.py:load", "ingest"),
        ("../app/ingest.py:load", "ingest"),
        ("/srv/app/ingest.py:load", "ingest"),
    ],
)
def test_a_function_may_be_named_by_its_file(text, module):
    name = parse(text)
    assert (name.text, name.module, name.path) == (text, module, ("load",))


def test_a_file_is_profiled_as_its_module(ingest):
    assert find(parse("ingest.py:load")).code is ingest.load.__code__


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("ingest", "does not name a function"),
        ("ingest:", "does not name a function"),
        (":load", "does not name a function"),
        ("ingest:a b", "does not name a function"),
        ("no_such_module:load", "importing no_such_module failed"),
        ("ingest:no_such", "ingest has no no_such"),
        ("ingest:Loader.no_such", "ingest has no Loader.no_such"),
        ("ingest:load.method", "ingest has no load.method"),
        ("ingest:MB", "a int is not a Python function"),
        ("ingest:Loader", "a type is not a Python function"),
        ("ingest:Loader.size", "a property is not a Python function"),
        ("math:sqrt", "a builtin_function_or_method is not a Python function"),
        ("ingest:stream", "asynchronous generator"),
        ("ingest:managed", "its decorator runs it later"),
    ],
)
def test_what_cannot_be_profiled_is_refused_with_the_next_step(ingest, name, says):
    original = ingest.keep
    with pytest.raises(UsageError) as refused:
        start("ingest:keep", name)
    assert says in refused.value.message
    assert refused.value.next_step
    assert ingest.keep is original


def test_a_module_that_fails_while_it_is_imported_is_named(tmp_path, monkeypatch):
    (tmp_path / "broken_ingest.py").write_text("raise RuntimeError('no licence')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UsageError, match=r"RuntimeError: no licence"):
        start("broken_ingest:load")


SCRIPT = textwrap.dedent(
    """
    from mapping import mapped

    store = []


    class Reader:
        def read(self):
            store.append(mapped(8))  # script method


    def main():
        store.append(mapped(16))  # script main
        Reader().read()
        return [size for size in map(len, store)]


    not_a_function = 5

    if __name__ == "__main__":
        RESULT = main()
    """
)


def test_functions_of_a_script_are_profiled_from_their_first_call(mapping, tmp_path):
    path = tmp_path / "load_all.py"
    path.write_text(SCRIPT)
    module = types.ModuleType("__main__")
    module.__file__ = str(path)
    log = []
    names = ["load_all:main", "__main__:Reader.read", "__main__:not_a_function", "__main__:missing"]
    with (
        script_namespace(module.__dict__, "load_all") as namespace,
        profiled(*names, log=log) as table,
    ):
        exec(compile(SCRIPT, str(path), "exec"), module.__dict__, namespace)
    assert module.RESULT == [16 * MB, 8 * MB]
    assert table.line("script main").increment == about(16 * MB)
    assert table.line("script method", "__main__:Reader.read").increment == about(8 * MB)
    messages = {message for _level, _source, message in log}
    assert any("a int is not a Python function" in message for message in messages)
    assert "the script never defined __main__:missing" in messages
    assert len(messages) == 2


@pytest.mark.parametrize("name", ["load_all.py:main", "jobs/nightly-run/load_all.py:main"])
def test_a_function_of_a_script_is_found_by_the_script_s_file(mapping, tmp_path, name):
    path = tmp_path / "load_all.py"
    path.write_text(SCRIPT)
    module = types.ModuleType("__main__")
    with (
        script_namespace(module.__dict__, "load_all") as namespace,
        profiled(name) as table,
    ):
        exec(compile(SCRIPT, str(path), "exec"), module.__dict__, namespace)
    assert table.line("script main", name).hits == 1


def test_cffi_modules_are_passed_over():
    # Importing a cffi library leaves modules behind that have no __dict__.
    pytest.importorskip("cryptography.hazmat.bindings._rust")
    bare = [m for m in sys.modules.values() if type(m).__module__ == "_cffi_backend"]
    assert bare, "the library that this test is about does not do that any more"
    swap_everywhere(test_cffi_modules_are_passed_over, print)
