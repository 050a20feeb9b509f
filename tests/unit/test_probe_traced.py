"""The exact engine names the line that allocated, to the byte, and leaves out the workbench."""

import gc
import itertools
import sys
import time
import tracemalloc

import pytest

from diagnostics.errors import UsageError
from diagnostics.probes import grouping
from diagnostics.probes.base import Budget, Session
from diagnostics.probes.grouping import group, live_sums
from diagnostics.probes.heap import make_engine
from diagnostics.probes.sites import SiteBook
from diagnostics.probes.traced import TracemallocEngine
from diagnostics.recording.model import Frame
from diagnostics.recording.reader import RecordingReader
from diagnostics.recording.writer import RecordingWriter

BLOCK = 10_000


def blocks(count):
    return [bytearray(BLOCK) for _ in range(count)]  # the line


LINE = blocks.__code__.co_firstlineno + 1
# A bytearray has one byte of its own after its content, and an object in front.
BYTES_EACH = BLOCK + 1 + sys.getsizeof(bytearray())


@pytest.fixture
def log():
    return []


@pytest.fixture
def session(log):
    start = time.monotonic_ns()
    return Session(
        lambda: time.monotonic_ns() - start,
        lambda: 0,
        lambda thread: False,
        lambda *line: log.append(line),
    )


@pytest.fixture
def path(tmp_path):
    return tmp_path / "heap.p87"


@pytest.fixture
def writer(path):
    writer = RecordingWriter(path, {})
    yield writer
    writer.close()


@pytest.fixture
def engine(session):
    """An engine whose budget is due again at every look, so that it lets only every second pass."""
    engine = TracemallocEngine(1, Budget(1.0, itertools.count(step=1_000_000_000).__next__))
    engine.start(session)
    yield engine
    engine.abandon()


def sites_at_the_end(path):
    with RecordingReader(path) as reader:
        sites = reader.sites()
        *_, last = reader.frames("heap")
        return {sites[site]: values for site, values in last.values.items() if site}


def test_known_blocks_appear_on_their_line_with_their_function(engine, writer, path):
    kept = blocks(1_000)
    engine.unit_ended(1)
    engine.tick(writer, 1)
    writer.close()
    found = sites_at_the_end(path)
    ((size, count),) = [
        values for site, values in found.items() if (site.file, site.line) == (__file__, LINE)
    ]
    (site,) = [site for site in found if (site.file, site.line) == (__file__, LINE)]
    assert site.function == "blocks" or site.function.endswith("blocks.<locals>.<listcomp>")
    # 1,000 objects, 1,000 contents, and the list of pointers with some room to grow.
    assert len(kept) == 1_000
    assert 0 <= size - 1_000 * BYTES_EACH < 20_000
    assert 2_000 <= count <= 2_002
    with RecordingReader(path) as reader:
        source = reader.source(__file__)
    assert source[LINE].endswith("# the line")
    assert set(range(LINE - 3, LINE + 4)) <= set(source)


def test_what_was_freed_is_gone_from_the_next_frame(engine, writer, path):
    kept = blocks(100)
    engine.unit_ended(1)
    engine.tick(writer, 1)
    kept.clear()
    engine.stop()
    engine.tick(writer, 2)
    writer.close()
    with RecordingReader(path) as reader:
        site = next(number for number, site in reader.sites().items() if site.line == LINE)
        states = [
            (state.unit, state.values.get(site, (0, 0))[0]) for state in reader.frames("heap")
        ]
    assert states[0][0] == 1
    assert 100 * BYTES_EACH <= states[0][1] < 100 * BYTES_EACH + 2_000
    assert states[1][0] == 0
    assert states[1][1] < 2_000


def test_with_more_frames_a_site_knows_its_callers(session, writer, path):
    engine = TracemallocEngine(5, Budget(1.0))
    engine.start(session)
    kept = blocks(100)
    engine.stop()
    engine.tick(writer, 1)
    writer.close()
    with RecordingReader(path) as reader:
        sites = reader.sites()
    leaf = next(site for site in sites.values() if site.line == LINE and "blocks" in site.function)
    callers = []
    while leaf.parent is not None:
        leaf = sites[leaf.parent]
        callers.append(leaf.function)
    assert test_with_more_frames_a_site_knows_its_callers.__name__ in callers
    assert len(kept) == 100


def test_the_total_follows_what_is_allocated(engine, writer, path):
    for unit in range(1, 4):  # what the workbench keeps itself settles, and is known
        engine.unit_ended(unit)
        engine.tick(writer, unit)
    kept = blocks(1_000)
    engine.tick(writer, 4)
    kept.clear()
    engine.tick(writer, 5)
    writer.close()
    with RecordingReader(path) as reader:
        *_, before, full, after = reader.heap_totals()
    assert abs(full.bytes - before.bytes - 1_000 * BYTES_EACH) < 100_000
    assert abs(after.bytes - before.bytes) < 100_000
    assert full.engine_bytes > before.engine_bytes > 0


def test_a_total_has_the_moment_of_its_count(engine, writer, path):
    # given ticks that have waited since they began, at 1 ns and 2 ns
    before = engine.session.now_ns()
    engine.tick(writer, 1)
    between = engine.session.now_ns()
    engine.stop()
    engine.tick(writer, 2)
    writer.close()
    with RecordingReader(path) as reader:
        first, last = (total.t_ns for total in reader.heap_totals())
    assert before <= first <= between <= last


def test_a_snapshot_counts_neither_itself_nor_the_workbench(engine):
    kept = blocks(10)
    engine.unit_ended(1)
    before = tracemalloc.get_traced_memory()[0]
    for unit in range(2, 200):
        engine.unit_ended(unit)
    first, *_rest, last = engine._done
    assert (first.unit, last.unit) == (1, 199)
    assert [stack for stack, _, _ in last.sums if "/diagnostics/probes/" in stack[0][0]] == []
    # A hundred pictures wait for the recorder thread: all that has grown meanwhile is known to be
    # the workbench's own, but for the last picture itself.
    grown = tracemalloc.get_traced_memory()[0] - before
    assert grown > 20_000
    assert 0.8 * grown < engine._own_bytes < 1.1 * grown
    assert len(kept) == 10


def test_snapshots_keep_to_their_budget(session):
    now = [0]
    engine = TracemallocEngine(1, Budget(0.05, lambda: now[0]))
    engine.start(session)
    try:
        engine.unit_ended(1)
        assert len(engine._done) == 1
        with engine._budget.measured():
            now[0] += 1_000
        engine.unit_ended(2)
        now[0] += 19_000
        engine.unit_ended(3)
        assert [picture.unit for picture in engine._done] == [1]
        now[0] += 31_000  # at 51,000: 1,000 spent and 1,500 to come are under 5 %
        engine.unit_ended(4)
        assert [picture.unit for picture in engine._done] == [1, 4]
    finally:
        engine.abandon()


def test_a_loader_without_units_gets_a_picture_from_the_recorder_thread(engine, writer):
    seconds = 1_000_000_000
    engine.tick(writer, seconds)
    assert "0 snapshot(s)" in engine.detail
    engine.tick(writer, 3 * seconds)
    assert "1 snapshot(s)" in engine.detail


def test_stop_takes_a_last_picture_and_ends_the_tracing(engine):
    engine.stop()
    assert [picture.unit for picture in engine._done] == [0]
    assert not tracemalloc.is_tracing()


def test_tracing_that_somebody_else_started_goes_on(session, log):
    tracemalloc.start(3)
    try:
        engine = TracemallocEngine(1, Budget(1.0))
        engine.start(session)
        engine.stop()
        assert tracemalloc.is_tracing()
        assert tracemalloc.get_traceback_limit() == 3
    finally:
        tracemalloc.stop()
    ((level, source, message),) = log
    assert (level, source) == ("info", "heap")
    assert "3 frame(s)" in message


def test_a_forked_child_stops_tracing_without_measuring(engine):
    engine.abandon()
    assert not tracemalloc.is_tracing()
    assert not engine._done


@pytest.mark.parametrize("frames", [1, 10])
def test_raw_rows_and_the_public_view_agree(frames):
    tracemalloc.start(frames)
    kept = [blocks(20), {number: str(number) for number in range(500)}]
    snapshot = tracemalloc.take_snapshot()
    tracemalloc.stop()
    raw = group(snapshot)
    assert sorted(raw) == sorted(grouping._group_public(snapshot.traces))
    by_line = {
        (statistic.traceback[0].filename, statistic.traceback[0].lineno): statistic.size
        for statistic in snapshot.statistics("lineno")
    }
    for file_and_line, size in by_line.items():
        assert sum(part for stack, part, _ in raw if stack[0] == file_and_line) == size
    assert len(kept) == 2


def test_a_snapshot_sets_off_no_collection():
    tracemalloc.start(1)
    seen = []
    try:
        kept = [[number] for number in range(50_000)]  # 100 times a young generation's threshold
        gc.collect()
        gc.callbacks.append(lambda phase, info: seen.append(info["generation"]))
        live_sums()
        assert [generation for generation in seen if generation > 0] == []
        assert len(seen) <= 2  # one collection has two phases
        assert gc.isenabled()
        assert len(kept) == 50_000
    finally:
        gc.callbacks.pop()
        tracemalloc.stop()


def test_a_collector_that_was_off_stays_off():
    tracemalloc.start(1)
    gc.disable()
    try:
        live_sums()
        assert not gc.isenabled()
    finally:
        gc.enable()
        tracemalloc.stop()


class Sums:
    """Takes sites, and gives them numbers in order."""

    def __init__(self):
        self.stacks, self.sources = [], []

    def site(self, stack):
        self.stacks.append(list(stack))
        return len(self.stacks)

    def put_source(self, file, lines):
        self.sources.append(file)


def one(file, size, count=1):
    return (((file, 1),), size, count)


def test_small_stacks_are_other_until_they_grow_and_then_keep_their_site():
    book, writer = SiteBook(), Sums()
    big = one("big", 100_000_000)
    assert book.state(writer, [big, one("a", 8_191, 2), one("b", 8_192, 3)]) == {
        1: (100_000_000, 1),
        0: (8_191, 2),
        2: (8_192, 3),
    }
    assert book.state(writer, [big, one("a", 9_000), one("b", 10, 1)])[2] == (10, 1)
    assert writer.stacks == [[Frame(name, 1, "")] for name in ("big", "b", "a")]


def test_in_a_small_heap_a_thousandth_is_enough():
    book, writer = SiteBook(), Sums()
    state = book.state(writer, [one("big", 100_000), one("a", 101), one("b", 99), one("c", 98)])
    assert state == {1: (100_000, 1), 2: (101, 1), 0: (197, 2)}


def test_engines_are_chosen_by_name():
    budget = Budget(0.05)
    exact = make_engine("exact", frames=3, budget=budget)
    assert exact is not None
    assert exact.engine_name == "exact"
    assert type(make_engine("tracemalloc", frames=1, budget=budget)) is type(exact)
    assert make_engine("none", frames=1, budget=budget) is None


@pytest.mark.parametrize(
    ("name", "frames", "says"),
    [
        ("simpled", 1, "sampled, exact, none"),
        ("", 1, "sampled, exact, none"),
        ("exact", 0, "1 to 25"),
        ("exact", 26, "1 to 25"),
        ("sampled", 65, "1 to 64"),
    ],
)
def test_a_wrong_choice_is_refused_with_the_right_ones(name, frames, says):
    with pytest.raises(UsageError) as refused:
        make_engine(name, frames=frames, budget=Budget(0.05))
    assert says in refused.value.next_step
