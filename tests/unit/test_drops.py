"""Drops of the heap, and who freed what."""

from hand_built import MB, MS, S, build
from kinds_runs import Run, write

from diagnostics.analysis.drops import heap_drops, label_drops
from diagnostics.recording.model import HeapTotal
from diagnostics.recording.reader import RecordingReader


def totals(*sizes):
    """One reading a tick of 100 ms."""
    return [HeapTotal(place * 100 * MS, size, 0) for place, size in enumerate(sizes)]


def test_a_fall_without_a_collection_is_the_reference_counts():
    [drop] = label_drops(totals(10 * MB, 90 * MB, 20 * MB), [], None)
    assert (drop.before, drop.after, drop.bytes) == (90 * MB, 20 * MB, 70 * MB)
    assert (drop.start_ns, drop.end_ns) == (100 * MS, 200 * MS)
    assert drop.cause == "reference count"
    assert drop.certain


def test_a_collection_that_freed_nothing_is_not_the_cause():
    [drop] = label_drops(totals(90 * MB, 20 * MB), [(50 * MS, 0)], 5_000.0)
    assert drop.cause == "reference count"
    assert drop.certain


def test_a_collection_that_freed_enough_is_the_cause():
    # 10,000 objects of 5 kB are 50 of the 70 MB
    [drop] = label_drops(totals(90 * MB, 20 * MB), [(50 * MS, 10_000)], 5_000.0)
    assert drop.collected == 10_000
    assert drop.cause == "collector"
    assert drop.certain


def test_a_collection_that_freed_too_little_is_not_the_cause():
    # 1,000 objects of 5 kB are 5 of the 70 MB
    [drop] = label_drops(totals(90 * MB, 20 * MB), [(50 * MS, 1_000)], 5_000.0)
    assert drop.cause == "reference count"
    assert not drop.certain


def test_what_an_object_is_worth_is_a_guess_without_a_settlement():
    # 60,000 objects at the usual 1 kB are 60 of the 70 MB
    [drop] = label_drops(totals(90 * MB, 20 * MB), [(50 * MS, 60_000)], None)
    assert drop.cause == "collector"
    assert not drop.certain


def test_collections_outside_of_the_fall_do_not_count():
    collected = [(0, 10_000), (150 * MS, 10_000)]
    [drop] = label_drops(totals(90 * MB, 20 * MB, 20 * MB), collected, 5_000.0)
    assert drop.collected == 0
    assert drop.cause == "reference count"


def test_a_fall_over_several_ticks_is_one_drop():
    found = label_drops(totals(90 * MB, 60 * MB, 20 * MB, 50 * MB, 10 * MB), [], None)
    assert [drop.bytes for drop in found] == [70 * MB, 40 * MB]


def test_a_small_fall_is_noise():
    assert label_drops(totals(90 * MB, 90 * MB - 200_000), [], None) == []


def test_the_drops_of_a_recording(tmp_path):
    # given a heap of 17, 56 and 12 MB at 1, 3 and 6 s, and collections at 3.5 s (40 objects),
    # at 4 s (1 object, and 0 by a summary): at 1 kB each nothing against 44 MB
    with RecordingReader(build(tmp_path / "report.p87")) as reader:
        [drop] = heap_drops(reader)
    assert (drop.start_ns, drop.end_ns, drop.bytes) == (3 * S, 6 * S, 44 * MB)
    assert drop.collected == 41
    assert drop.cause == "reference count"
    assert not drop.certain


def test_the_settlement_tells_what_an_object_is_worth(tmp_path):
    # given pages of 2 MB that are gone at their end, and a collection of 10 objects with 2 MB
    run = Run(pages=3, steps=(("collection", 0, 2 * MB, 10),))
    with RecordingReader(write(tmp_path / "run.p87", run)) as reader:
        found = heap_drops(reader)
    assert [drop.bytes for drop in found] == [2 * MB] * 3
    assert {drop.cause for drop in found} == {"reference count"}  # nothing was collected before
