"""Collections are timed, told apart and counted, against garbage of a known size."""

import gc
import sys
import threading
import time
from contextvars import ContextVar

import pytest

from diagnostics.probes.base import Session
from diagnostics.probes.collector import GcProbe


class Knot:
    """An object that holds itself: exactly one object of garbage when let go."""

    __slots__ = ("me",)

    def __init__(self) -> None:
        self.me = self


class Rows:
    """Takes what a probe writes."""

    def __init__(self) -> None:
        self.events, self.summaries = [], []

    def add_gc_events(self, rows):
        self.events.extend(rows)

    def add_gc_summaries(self, rows):
        self.summaries.extend(rows)


def tie(knots: int) -> None:
    for _ in range(knots):
        Knot()


@pytest.fixture
def quiet():
    """No collection but those that the test asks for."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def own_threads():
    return set()


@pytest.fixture
def heap():
    """What the heap's size is said to be, one reading after the other; None where it is empty."""
    return []


@pytest.fixture(params=["in C", "in Python"])
def probe(own_threads, heap, monkeypatch, request):
    if request.param == "in Python":  # as where there was no compiler
        monkeypatch.setitem(sys.modules, "diagnostics.probes._pauses", None)
        monkeypatch.delattr("diagnostics.probes._pauses", raising=False)  # an import found it there
    probe = GcProbe()
    start = time.monotonic_ns()
    probe.start(
        Session(
            lambda: time.monotonic_ns() - start,
            lambda: 87,
            own_threads.__contains__,
            lambda *line: None,
            lambda: heap.pop(0) if heap else None,
            unit_variable=ContextVar("unit", default=87),
        )
    )
    yield probe
    probe.stop()


def written(probe, t_ns=1):
    rows = Rows()
    probe.tick(rows, t_ns)
    return rows


def test_the_heap_before_and_after_is_kept(quiet, probe, heap):
    heap += [1_000, 400, 900, 850, 860, 60]
    gc.collect(2)
    gc.collect(0)
    gc.collect(0)
    rows = written(probe)
    (event,), (young,) = rows.events, rows.summaries
    assert (event.heap_before, event.heap_after) == (1_000, 400)
    assert young.freed == (900 - 850) + (860 - 60)


def test_a_sum_with_an_unknown_part_is_unknown(quiet, probe, heap):
    heap += [900, 850, 860, None]
    gc.collect(0)
    gc.collect(0)
    assert [one.freed for one in written(probe).summaries] == [None]


def test_a_full_collection_is_an_event_with_its_exact_count(quiet, probe):
    tie(12_345)
    before = time.perf_counter_ns()
    found = gc.collect(2)
    wall = time.perf_counter_ns() - before
    rows = written(probe)
    (event,) = rows.events
    assert found == 12_345
    assert (event.generation, event.collected, event.uncollectable) == (2, 12_345, 0)
    assert (event.unit, event.own) == (87, False)
    # Measured from outside the pause is longer by no more than the callbacks themselves take.
    assert wall / 2 < event.pause_ns <= wall
    assert event.t_ns >= 0
    assert rows.summaries == []


def test_small_collections_are_summed_by_generation(quiet, probe):
    for knots in (10, 20, 30):
        tie(knots)
        gc.collect(0)
    tie(7)
    gc.collect(1)
    rows = written(probe, t_ns=5_000)
    assert rows.events == []
    young, middle = rows.summaries
    assert (young.t_ns, young.generation, young.count, young.collected) == (5_000, 0, 3, 60)
    assert (middle.generation, middle.count, middle.collected) == (1, 1, 7)
    assert 0 < young.pause_max_ns <= young.pause_total_ns <= 3 * young.pause_max_ns
    assert written(probe).summaries == []


def test_a_long_pause_of_a_young_generation_is_an_event(quiet, probe):
    tie(50_000)
    gc.collect(0)
    (event,) = written(probe).events
    assert (event.generation, event.collected) == (0, 50_000)
    assert event.pause_ns > 1_000_000


def test_the_workbench_own_collections_are_marked_or_left_out(quiet, probe, own_threads):
    def collect():
        own_threads.add(threading.get_ident())
        gc.collect(0)
        gc.collect(2)

    thread = threading.Thread(target=collect)
    thread.start()
    thread.join()
    rows = written(probe)
    assert [(event.generation, event.own) for event in rows.events] == [(2, True)]
    assert rows.summaries == []
    assert "1 small ones in the workbench's own threads" in probe.detail


def test_a_collection_that_began_before_the_probe_is_dropped_and_counted(probe):
    info = {"generation": 2, "collected": 3, "uncollectable": 0}
    gc.callbacks[-1]("stop", info)
    assert written(probe).events == []
    assert probe.dropped == 1


def test_the_start_of_a_collection_has_its_part_of_the_cost(probe):
    callback = gc.callbacks[-1]
    before = callback.cost_ns
    callback("start", {"generation": 0, "collected": 0, "uncollectable": 0})
    assert callback.cost_ns > before


def test_nothing_is_lost_while_the_recorder_drains(quiet, probe):
    rows = Rows()

    def collect():
        for _ in range(3_000):
            gc.collect(0)

    before = gc.get_stats()[0]["collections"]
    threads = [threading.Thread(target=collect) for _ in range(2)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        probe.tick(rows, 1)
    probe.tick(rows, 1)
    # The interpreter's own count; calls that meet the other thread's collection do not collect.
    collections = gc.get_stats()[0]["collections"] - before
    assert collections >= 3_000
    assert sum(one.count for one in rows.summaries) + len(rows.events) == collections


def test_stop_leaves_the_interpreter_as_it_was(probe):
    callbacks = list(gc.callbacks)
    probe.stop()
    assert gc.callbacks == callbacks[:-1]
    probe.stop()
