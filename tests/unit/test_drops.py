"""Drops of the heap, and who freed what."""

from hand_built import MB, MS, S, build
from kinds_runs import Run, write

from diagnostics.analysis.drops import Collected, collections, heap_drops, label_drops
from diagnostics.recording.model import GcEvent, GcSummary, HeapTotal
from diagnostics.recording.reader import RecordingReader
from diagnostics.recording.writer import RecordingWriter


def totals(*sizes):
    """One reading a tick of 100 ms."""
    return [HeapTotal(place * 100 * MS, size, 0) for place, size in enumerate(sizes)]


def collected(at_ms, objects, freed=None):
    return Collected(at_ms * MS, objects, freed)


def test_a_fall_without_a_collection_is_the_reference_counts():
    [drop] = label_drops(totals(10 * MB, 90 * MB, 20 * MB), [], None)
    assert (drop.before, drop.after, drop.bytes) == (90 * MB, 20 * MB, 70 * MB)
    assert (drop.start_ns, drop.end_ns) == (100 * MS, 200 * MS)
    assert drop.cause == "reference count"
    assert drop.certain


def test_a_collection_that_freed_nothing_is_not_the_cause():
    [drop] = label_drops(totals(90 * MB, 20 * MB), [collected(50, 0)], 5_000.0)
    assert drop.cause == "reference count"
    assert drop.certain


def test_a_collection_that_freed_enough_is_the_cause():
    # 10,000 objects of 5 kB are 50 of the 70 MB
    [drop] = label_drops(totals(90 * MB, 20 * MB), [collected(50, 10_000)], 5_000.0)
    assert drop.collected == 10_000
    assert drop.freed == 50 * MB
    assert drop.cause == "collector"
    assert drop.certain


def test_a_collection_that_freed_too_little_is_not_the_cause():
    # 1,000 objects of 5 kB are 5 of the 70 MB
    [drop] = label_drops(totals(90 * MB, 20 * MB), [collected(50, 1_000)], 5_000.0)
    assert drop.cause == "reference count"
    assert not drop.certain


def test_what_an_object_is_worth_is_a_guess_without_a_settlement():
    # 60,000 objects at the usual 1 kB are 60 of the 70 MB
    [drop] = label_drops(totals(90 * MB, 20 * MB), [collected(50, 60_000)], None)
    assert drop.cause == "collector"
    assert not drop.certain


def test_what_was_counted_needs_no_estimate():
    # 10,000 objects that were worth 100 bytes each, whatever an object is worth elsewhere
    [drop] = label_drops(totals(90 * MB, 20 * MB), [collected(50, 10_000, 1 * MB)], 5_000.0)
    assert drop.freed == 1 * MB
    assert drop.cause == "reference count"
    assert drop.certain


def test_few_objects_that_held_much_are_the_cause_where_it_was_counted():
    # 5 objects with 60 of the 70 MB, in a program whose objects nobody has weighed
    [drop] = label_drops(totals(90 * MB, 20 * MB), [collected(50, 5, 60 * MB)], None)
    assert drop.cause == "collector"
    assert drop.certain


def test_counted_and_estimated_collections_add_up():
    # 20 MB counted, and 4,000 objects of 5 kB: 40 of the 70 MB
    within = [collected(20, 7, 20 * MB), collected(50, 4_000)]
    [drop] = label_drops(totals(90 * MB, 20 * MB), within, 5_000.0)
    assert drop.freed == 40 * MB
    assert drop.collected == 4_007
    assert drop.cause == "collector"


def test_collections_outside_of_the_fall_do_not_count():
    around = [collected(0, 10_000), collected(150, 10_000)]
    [drop] = label_drops(totals(90 * MB, 20 * MB, 20 * MB), around, 5_000.0)
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


def test_the_heap_at_both_ends_of_a_collection_says_what_it_freed(tmp_path):
    # given a collection from 3.5 s on for 0.1 s that took 30 MB, one that grew by what its
    # callbacks allocated, one that nobody weighed, and small ones that freed 2 MB together
    writer = RecordingWriter(tmp_path / "run.p87", {})
    writer.add_gc_events(
        [
            GcEvent(3500 * MS, 100 * MS, 2, 40, 0, 0, False, 80 * MB, 50 * MB),
            GcEvent(4500 * MS, 0, 2, 1, 0, 0, False, 50 * MB, 50 * MB + 700),
            GcEvent(5500 * MS, 0, 2, 3, 0, 0),
        ]
    )
    writer.add_gc_summaries([GcSummary(4 * S, 0, 9, 0, 0, 14, 0, 2 * MB)])
    writer.close()
    with RecordingReader(tmp_path / "run.p87") as reader:
        assert collections(reader) == [
            (3600 * MS, 40, 30 * MB),
            (4 * S, 14, 2 * MB),
            (4500 * MS, 1, 0),
            (5500 * MS, 3, None),
        ]
