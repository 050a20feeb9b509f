"""Every unit gets the highest resident set of exactly its own time, also where units overlap."""

import time
from contextlib import ExitStack

import pytest

from diagnostics.probes.peaks import PeakBook
from diagnostics.probes.process import ProcessProbe
from diagnostics.probes.resident import KernelMeter, Resident, ResidentSet, SampledMeter, best_meter

MB = 1024 * 1024


class Mountain:
    """A meter over a made-up course of the resident set, in MB; remembers its peak like Linux."""

    method = "kernel high-water mark"
    detail = ""

    def __init__(self, now: int) -> None:
        self.now = self.peak = now

    def climb(self, *course: int) -> None:
        for height in course:
            self.now = height
            self.peak = max(self.peak, height)

    def read(self) -> Resident:
        return Resident(self.now, self.peak)

    def reset(self) -> None:
        self.peak = self.now


def heights(book):
    return {row.index: (row.rss_start, row.rss_peak, row.rss_end) for row in book.look()[1]}


def test_units_one_after_the_other_have_their_own_peaks():
    mountain = Mountain(10)
    book = PeakBook(mountain)
    mountain.climb(99, 20)  # before any unit: belongs to none
    book.start(1)
    mountain.climb(70, 30)
    book.end(1)
    book.start(2)
    mountain.climb(35, 31)
    book.end(2)
    assert heights(book) == {1: (20, 70, 30), 2: (30, 35, 31)}
    assert heights(book) == {}


def test_a_start_does_not_make_an_overlapping_unit_forget():
    mountain = Mountain(10)
    book = PeakBook(mountain)
    book.start(1)
    mountain.climb(80, 20)
    book.start(2)  # resets the meter that unit 1 lives from as well
    mountain.climb(50, 25)
    book.end(1)
    mountain.climb(60, 15)
    book.end(2)
    assert heights(book) == {1: (10, 80, 25), 2: (20, 60, 15)}


def test_a_later_peak_counts_for_all_units_that_are_open():
    mountain = Mountain(10)
    book = PeakBook(mountain)
    book.start(1)
    book.start(2)
    mountain.climb(90, 12)
    book.end(2)
    book.end(1)
    assert heights(book) == {1: (10, 90, 12), 2: (10, 90, 12)}


def test_a_unit_that_is_still_open_shows_how_far_it_has_come():
    mountain = Mountain(10)
    book = PeakBook(mountain)
    book.start(87)
    mountain.climb(40, 30)
    assert heights(book) == {87: (10, 40, 30)}
    mountain.climb(500)
    assert heights(book) == {87: (10, 500, 500)}


def test_a_unit_that_the_collector_ends_during_a_look_is_no_error(monkeypatch):
    mountain = Mountain(10)
    book = PeakBook(mountain)
    book.start(1)
    book.start(2)
    make_row = book._row

    def row(unit, entry, seen):
        if unit == 1:
            book.end(2)  # the row's own allocation set off a collection
        return make_row(unit, entry, seen)

    monkeypatch.setattr(book, "_row", row)
    rows = book.look()[1]
    assert [row.index for row in rows] == [1, 2]
    assert list(heights(book)) == [2, 1]


def test_the_kernel_meter_sees_what_came_and_went():
    meter = best_meter()
    if not isinstance(meter, KernelMeter):
        pytest.skip(meter.detail)
    block = b"x" * (64 * MB)
    del block
    meter.reset()
    low = meter.read()
    block = b"x" * (64 * MB)
    del block
    high = meter.read()
    assert low.peak - low.now < 4 * MB
    assert 60 * MB < high.peak - low.now < 68 * MB
    assert high.now - low.now < 4 * MB
    meter.reset()
    assert meter.read().peak < high.peak - 60 * MB


def test_the_sampling_meter_reads_the_resident_set_and_says_that_it_samples():
    meter = SampledMeter("no permission")
    now, peak = meter.read()
    assert now == peak
    assert abs(now - ResidentSet().read()) < 4 * MB
    assert meter.method == "sampled maximum"
    assert "no permission" in meter.detail


def test_without_the_kernel_samples_between_the_marks_count(monkeypatch):
    meter = SampledMeter("test")
    book = PeakBook(meter)
    start = meter.read().now
    book.start(1)
    block = b"x" * (64 * MB)
    book.look()  # what a tick does
    del block
    book.end(1)
    _rss, (row,) = book.look()
    assert row.method == "sampled maximum"
    assert 60 * MB < row.rss_peak - start < 68 * MB
    assert row.rss_end < row.rss_peak - 56 * MB


def test_the_probe_falls_back_when_the_kernel_refuses(monkeypatch, session):
    monkeypatch.setattr(KernelMeter, "reset", refuse)
    probe = ProcessProbe()
    probe.start(session)
    assert "Operation not permitted" in probe.detail
    probe.unit_started(1)
    probe.unit_ended(1)
    assert probe.cost_ns > 0


def refuse(meter):
    raise PermissionError(1, "Operation not permitted")


@pytest.fixture
def session():
    from diagnostics.probes.base import Session

    return Session(time.monotonic_ns, lambda: 0, lambda thread: False, lambda *line: None)


def test_what_the_workbench_takes_for_a_measurement_is_in_no_peak():
    mountain = Mountain(10)
    book = PeakBook(mountain)
    book.start(1)
    mountain.climb(40, 30)
    with book.set_aside():
        mountain.climb(500, 34)
    mountain.climb(38, 35)
    book.end(1)
    # Of the 500, 4 stayed: the unit began at 10 and had reached 40, both without them.
    assert heights(book) == {1: (14, 44, 35)}


def test_what_two_threads_set_aside_at_a_time_counts_once():
    mountain = Mountain(10)
    book = PeakBook(mountain)
    book.start(1)
    with ExitStack() as first, ExitStack() as second:
        first.enter_context(book.set_aside())
        mountain.climb(300)
        second.enter_context(book.set_aside())
        mountain.climb(500, 14)
        first.close()
        mountain.climb(400, 14)
    mountain.climb(20, 15)
    book.end(1)
    assert heights(book) == {1: (14, 20, 15)}  # of all that, 4 stayed


def test_a_unit_that_ends_while_the_workbench_measures_ends_without_it():
    mountain = Mountain(10)
    book = PeakBook(mountain)
    book.start(1)
    mountain.climb(40, 30)
    with book.set_aside():
        mountain.climb(500)
        book.end(1)
        book.start(2)
        mountain.climb(30)
    mountain.climb(50, 33)
    book.end(2)
    assert heights(book) == {1: (10, 40, 30), 2: (30, 50, 33)}
