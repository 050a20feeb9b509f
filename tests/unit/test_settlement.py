"""The steps of letting go, taken for real; and the settlement told in words and drawn."""

import ctypes
import gc

import pytest
from hand_built import build

from diagnostics.analysis.explanation import explain
from diagnostics.analysis.settlement import (
    SettlementReport,
    final_settlement,
    last_settlement,
    left_over_sentence,
    sentence,
    sentences,
    settlement_table,
    split,
)
from diagnostics.figures.settlement import settlement
from diagnostics.probes.malloc import malloc_reader
from diagnostics.recording.model import (
    LedgerReading,
    Outcome,
    ProcessSample,
    SettlementStep,
    UnitRow,
)
from diagnostics.recording.reader import RecordingReader
from diagnostics.recording.writer import RecordingWriter
from diagnostics.settlement import Settlement, without_collections

MB = 1_000_000
S = 1_000_000_000

needs_glibc = pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="the C library is not glibc 2.33 or later"
)


def step(position, name, before, after, *, python=None, objects=0, uncollectable=0):
    python_before, python_after = python or (None, None)
    return SettlementStep(
        position,
        name,
        position * S,
        before * MB,
        after * MB,
        python_before and python_before * MB,
        python_after and python_after * MB,
        objects,
        uncollectable,
    )


RELEASE = step(1, "result released", 150, 109, python=(60, 19), objects=12)
COLLECTION = step(2, "collection", 109, 106, python=(19, 16), objects=12_345)
TRIM = step(3, "malloc_trim", 106, 38, python=(16, 16))
REPORT = SettlementReport((RELEASE, COLLECTION, TRIM), 7 * MB)


# -- the steps ---------------------------------------------------------------------------------


def settled(release=None, live_python=lambda: None):
    said = []
    steps = Settlement(lambda: 5, live_python, said.append).steps(release)
    return list(steps), said


@needs_glibc
def test_each_step_is_measured_where_it_happens():
    kept = [bytearray(b"x" * 40 * MB)]  # so large that it is given back as soon as it is freed

    steps, said = settled(kept.clear)

    assert [step.step for step in steps] == ["result released", "collection", "malloc_trim"]
    assert [step.position for step in steps] == [1, 2, 3]
    assert steps[0].rss_before - steps[0].rss_after == pytest.approx(40 * MB, abs=MB)
    assert said == []


@pytest.fixture
def collector():
    """The collector as it is usually set, and put back as it was."""
    was_enabled, thresholds = gc.isenabled(), gc.get_threshold()
    gc.enable()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*thresholds)
    (gc.enable if was_enabled else gc.disable)()


def collections_while_objects_come(number):
    phases = []

    def note(phase, info):
        phases.append(phase)

    gc.callbacks.append(note)
    try:
        kept = [[] for _ in range(number)]
    finally:
        gc.callbacks.remove(note)
    assert len(kept) == number
    return phases.count("start")


def test_nothing_sets_off_a_collection_meanwhile(collector):
    with without_collections():
        assert collections_while_objects_come(10_000) == 0
    assert collections_while_objects_come(10_000) > 0


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_is_afterwards_as_it_was_before(collector, enabled):
    if not enabled:
        gc.disable()
    with without_collections():
        pass
    assert gc.isenabled() is enabled
    assert gc.get_threshold()[:2] == (700, 10)


def test_a_program_that_disables_the_collector_meanwhile_is_obeyed(collector):
    with without_collections():
        gc.disable()  # as a finalizer, or another thread, may
    assert not gc.isenabled()
    assert gc.get_threshold()[:2] == (700, 10)


def test_a_program_that_enables_the_collector_meanwhile_is_obeyed(collector):
    gc.disable()
    with without_collections():
        gc.enable()
        assert collections_while_objects_come(10_000) == 0
    assert gc.isenabled()


def test_a_program_that_sets_a_threshold_meanwhile_is_obeyed(collector):
    with without_collections():
        gc.set_threshold(50, 5, 5)
    assert gc.get_threshold()[:2] == (50, 5)


def test_a_step_is_taken_when_it_is_asked_for():
    kept = ["held"]
    steps = Settlement(lambda: 5, lambda: None, print).steps(kept.clear)
    assert kept == ["held"]
    assert next(steps).step == "result released"
    assert kept == []


class Node:
    pass


def test_a_collection_tells_what_it_freed_and_what_it_had_to_leave():
    gc.collect()
    gc.disable()
    try:
        for _ in range(1000):
            pair = [Node(), Node()]
            pair[0].other, pair[1].other = pair[1], pair[0]
        del pair
        [collection, *_], _ = settled()
    finally:
        gc.enable()
    assert collection.objects == pytest.approx(2000, abs=50)
    assert collection.uncollectable == 0


def test_the_release_counts_the_blocks_that_it_freed():
    kept = [object() for _ in range(50_000)]
    [release, *_], _ = settled(kept.clear)
    assert release.objects == pytest.approx(50_000, abs=500)


def test_live_python_bytes_are_read_around_each_step():
    counts = iter(range(100, 0, -10))
    [release, collection, *_], _ = settled(lambda: None, lambda: next(counts))
    assert (release.python_before, release.python_after) == (100, 90)
    assert (collection.python_before, collection.python_after) == (80, 70)


def test_frozen_objects_are_told():
    gc.freeze()
    try:
        _, said = settled()
    finally:
        gc.unfreeze()
    assert len(said) == 1
    assert "gc.freeze" in said[0]


@needs_glibc
def test_malloc_is_read_as_it_is():
    library = ctypes.CDLL(None)
    library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    library.free.argtypes = [ctypes.c_void_p]
    read = malloc_reader()

    before = read()
    blocks = [library.malloc(50_000) for _ in range(400)]
    full = read()
    for block in blocks[::2]:
        library.free(block)
    half = read()
    for block in blocks[1::2]:
        library.free(block)

    assert full.used - before.used == pytest.approx(20 * MB, rel=0.02)
    assert half.used - before.used == pytest.approx(10 * MB, rel=0.03)
    assert half.free - full.free == pytest.approx(10 * MB, rel=0.03)


# -- in words ----------------------------------------------------------------------------------


def test_a_settlement_in_sentences():
    assert sentences(REPORT) == [
        "Releasing the result gave back 41.0 MB.",
        "A collection gave back 12,345 objects and 3.0 MB.",
        "malloc_trim gave back 68.0 MB.",
        "31.0 MB more than at the start stay, 16.0 MB of them live Python blocks.",
    ]


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (
            step(1, "result released", 90, 90, python=(50, 9), objects=7),
            "Releasing the result gave back nothing; it freed 41.0 MB of Python blocks.",
        ),
        (step(1, "result released", 90, 90), "Releasing the result gave back nothing."),
        (step(2, "collection", 90, 90, python=(50, 50)), "A collection gave back nothing."),
        (
            step(2, "collection", 90, 90, python=(50, 49), objects=1, uncollectable=3),
            "A collection gave back 1 object; it freed 1.0 MB of Python blocks; 3 objects could"
            " not be collected.",
        ),
        (step(3, "malloc_trim", 90, 91), "malloc_trim gave back nothing."),
    ],
)
def test_a_step_in_words(one, text):
    assert sentence(one) == text


@pytest.mark.parametrize(
    ("start", "text"),
    [(38, "Nothing more than at the start stays."), (40, "2.0 MB less than at the start stay.")],
)
def test_what_stays_in_words(start, text):
    assert left_over_sentence(SettlementReport((TRIM,), start * MB)) == text


def test_a_service_that_settled_several_times_has_several_settlements():
    again = [step(4, "collection", 50, 49), step(5, "malloc_trim", 49, 48)]
    alone = [step(6, "collection", 48, 48), step(7, "collection", 48, 48)]
    assert split([RELEASE, COLLECTION, TRIM, *again, *alone]) == [
        (RELEASE, COLLECTION, TRIM),
        tuple(again),
        (alone[0],),
        (alone[1],),
    ]


@pytest.mark.parametrize(
    ("last_unit", "final"),
    [
        (UnitRow(1, "page", "page 1", 0, 5 * S, "finished"), True),
        (UnitRow(1, "page", "page 1", 0, None, "running"), True),
        (UnitRow(1, "page", "page 1", 0, 7 * S, "finished"), False),
        (UnitRow(1, "page", "page 1", 8 * S, None, "running"), False),
    ],
)
def test_a_settlement_is_the_final_one_if_no_unit_comes_after_it(last_unit, final):
    again = (step(6, "collection", 50, 49), step(7, "malloc_trim", 49, 48))
    found = final_settlement([RELEASE, COLLECTION, TRIM, *again], [last_unit])
    assert found == (again if final else ())


def test_without_a_settlement_there_is_no_final_one():
    assert final_settlement([], []) == ()


def test_a_recording_tells_its_last_settlement(tmp_path):
    path = tmp_path / "run.p87"
    writer = RecordingWriter(path, {})
    writer.put_process(ProcessSample(0, 7 * MB, None, None, 0, 0, 1, 0))
    writer.put_process(ProcessSample(S, 150 * MB, None, None, 0, 0, 1, 0))
    writer.put_settlement([RELEASE, COLLECTION, TRIM])
    writer.close()
    with RecordingReader(path) as reader:
        assert last_settlement(reader) == REPORT
    with RecordingReader(build(tmp_path / "old.p87")) as reader:
        assert last_settlement(reader) is None


def reading(t_ns, rss):
    counted = dict.fromkeys(("file_backed", "shared"), 0)
    unknown = ("python", "python_small", "arenas", "native_used", "native_free", "children")
    return LedgerReading(
        t_ns, rss, rss, **counted, **dict.fromkeys((*unknown, "group_anonymous", "group_cache"))
    )


@pytest.mark.parametrize(("readings", "after_s"), [((0.5, 4), 4), ((0.5,), None), ((), None)])
def test_the_ledger_after_the_settlement_is_a_reading_after_the_settlement(
    tmp_path, readings, after_s
):
    # given steps that end at 3 s, and a ledger that may have failed before its last reading
    path = tmp_path / "run.p87"
    writer = RecordingWriter(path, {"settings": {"settle": True, "engine": "none"}})
    writer.put_process(ProcessSample(0, 150 * MB, None, None, 0, 0, 1, 0))
    for t_s in readings:
        writer.put_ledger(reading(round(t_s * S), 150 * MB if t_s < 1 else 38 * MB))
    writer.put_settlement([RELEASE, COLLECTION, TRIM])
    writer.put_outcome(Outcome("finished", "The loader returned.", 5 * S, 0))
    writer.close()
    with RecordingReader(path) as opened:
        found = explain(opened).after_settlement
    assert (found and found.t_ns) == (after_s and after_s * S)


def test_the_table_has_a_row_a_step():
    table = settlement_table(REPORT)
    assert list(table["step"]) == ["result released", "collection", "malloc_trim"]
    assert list(table["gave_back"]) == [41 * MB, 3 * MB, 68 * MB]
    assert list(table["freed_python"]) == [41 * MB, 3 * MB, 0]


@pytest.mark.parametrize("dark", [False, True])
def test_the_waterfall_leads_from_the_runs_end_to_what_stays(dark):
    figure = settlement(REPORT, dark=dark)

    [fall] = figure.data
    assert fall.measure == ("absolute", "relative", "relative", "relative", "total")
    assert list(fall.y) == [150 * MB, -41 * MB, -3 * MB, -68 * MB, 0]
    assert fall.text == ("150 MB", "-41.0 MB", "-3.0 MB", "-68.0 MB", "38.0 MB")
    assert fall.hovertext[1:4] == tuple(map(sentence, REPORT.steps))
    assert figure.layout.shapes[0].y0 == 7 * MB
    assert "(bytes)" in figure.layout.yaxis.title.text


def test_a_run_that_did_not_settle_says_so():
    assert settlement(None).layout.annotations[0].text == "This run did not settle."
