"""Settlements of whole runs: loads that are built to give back at exactly one step.

Each run has a process of its own, as under ``page87 run``: what one leaves behind in malloc would
change what the next gives back.
"""

import ctypes
import gc
import subprocess
import sys
import textwrap
import weakref

import pytest

from diagnostics import Recorder, record, units
from diagnostics.analysis.explanation import explain
from diagnostics.analysis.settlement import freed_python, gave_back, last_settlement
from diagnostics.errors import UsageError
from diagnostics.launch.plan import Measures, RunPlan
from diagnostics.launch.thread import ThreadRun
from diagnostics.recording.reader import RecordingReader

MB = 1_000_000

needs_trim = pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="the C library is not glibc"
)

LOADERS = """
import ctypes
import gc

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.restype, libc.free.argtypes = None, [ctypes.c_void_p]
libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]


class Sheet:
    def __init__(self):
        self.text = "page"
        # More than 32 MB: malloc maps it by itself, and gives it back as soon as it is freed.
        self.body = bytearray(b"x") * 40_000_000


def held(path):
    return [Sheet()]


def in_cycles(path):
    gc.disable()
    sheet = Sheet()
    sheet.itself = sheet
    yield "page"


def freed_and_kept_by_malloc(path):
    blocks = [libc.malloc(10_000) for _ in range(4000)]
    for block in blocks:
        libc.memset(block, 1, 10_000)
    blocks.remove(max(blocks))  # what lies below it cannot be given back by itself
    for block in blocks:
        libc.free(block)
    yield "page"


registry = []


def registered(path):
    registry.append(Sheet())
    yield "page"


def failing(path):
    loaded = Sheet()
    yield "page"
    raise ValueError("page 2 is broken")
"""


@pytest.fixture(scope="module")
def workshop(tmp_path_factory):
    folder = tmp_path_factory.mktemp("settlement")
    (folder / "shelf.py").write_text(LOADERS)
    (folder / "document.txt").write_text("text")
    return folder


def page87_run(workshop, *subject):
    """The recording of ``page87 run`` in a process of its own."""
    path = workshop / f"{len(list(workshop.iterdir()))}.p87"
    done = subprocess.run(
        [sys.executable, "-m", "diagnostics", "run", "--quiet", "-o", path, *subject],
        cwd=workshop,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode in (0, 3), done.stderr
    return path


def settlement_of(path):
    with RecordingReader(path) as reader:
        return last_settlement(reader)


@needs_trim
@pytest.mark.parametrize(
    ("loader", "giver"),
    [
        ("held", "result released"),
        ("in_cycles", "collection"),
        ("freed_and_kept_by_malloc", "malloc_trim"),
        ("failing", "result released"),  # the exception's frames held what was loaded
        ("registered", None),
    ],
)
def test_each_load_gives_back_at_its_own_step(workshop, loader, giver):
    report = settlement_of(page87_run(workshop, "--loader", f"shelf:{loader}", "document.txt"))

    assert [step.step for step in report.steps] == ["result released", "collection", "malloc_trim"]
    for step in report.steps:
        expected = 40 if step.step == giver else 0
        assert gave_back(step) / MB == pytest.approx(expected, abs=3), step
    assert report.left_over / MB == pytest.approx(40 if giver is None else 0, abs=8)


def test_the_settlement_tells_python_blocks_and_objects(workshop):
    held = settlement_of(page87_run(workshop, "--loader", "shelf:held", "document.txt"))
    cycles = settlement_of(page87_run(workshop, "--loader", "shelf:in_cycles", "document.txt"))
    kept = settlement_of(page87_run(workshop, "--loader", "shelf:registered", "document.txt"))

    assert freed_python(held.steps[0]) / MB == pytest.approx(40, abs=1)
    assert freed_python(cycles.steps[1]) / MB == pytest.approx(40, abs=1)
    assert 1 <= cycles.steps[1].objects < 1000
    assert kept.left_over_python / MB == pytest.approx(40, abs=2)


def test_the_last_picture_of_the_heap_is_from_before_the_release(workshop):
    with RecordingReader(page87_run(workshop, "--loader", "shelf:held", "document.txt")) as reader:
        *_, last = reader.frames("heap")
        total = reader.heap_totals()[-1]
        [release, *_] = reader.settlement()
        rss = reader.process()[-1].rss

    assert sum(size for size, _ in last.values.values()) / MB == pytest.approx(40, abs=2)
    assert total.bytes / MB == pytest.approx(40, abs=2)
    assert rss / MB == pytest.approx(release.rss_before / MB, abs=2)
    assert last.t_ns <= release.t_ns


def test_a_script_settles_without_a_result(workshop):
    (workshop / "script.py").write_text(
        textwrap.dedent(
            """
            from shelf import gc, Sheet
            gc.disable()
            for _ in range(2):
                sheet = Sheet()
                sheet.itself = sheet
            """
        )
    )
    report = settlement_of(page87_run(workshop, "script.py"))
    assert report.steps[0].step == "collection"
    assert gave_back(report.steps[0]) / MB == pytest.approx(40, abs=3)  # the other is still named


# -- in one process ----------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.p87"


class Loop:
    def __init__(self):
        self.itself = self


def test_peoples_own_recordings_do_not_settle_unless_asked(path, tmp_path):
    gc.disable()
    try:
        with record(path, engine="none"):
            loop = Loop()
            seen = weakref.ref(loop)
            del loop
        assert seen() is not None
        with record(tmp_path / "settled.p87", engine="none", settle=True):
            pass
        assert seen() is None
    finally:
        gc.enable()
    assert settlement_of(path) is None
    assert settlement_of(tmp_path / "settled.p87").steps[0].step == "collection"
    with RecordingReader(tmp_path / "settled.p87") as reader:
        assert reader.gc_events() == []  # it is the settlement's, and stands there


def test_a_service_settles_on_demand_and_goes_on(path):
    with record(path, engine="none", tick_s=5.0) as recorder:
        gc.collect()  # the program's own
        first = recorder.settle()
        second = recorder.settle()
        gc.collect()  # the program's own again
    with RecordingReader(path) as reader:
        steps = reader.settlement()
        own = [event.own for event in reader.gc_events() if event.generation == 2]
    assert steps == first + second
    assert [step.position for step in steps] == list(range(1, len(steps) + 1))
    assert own == [False, True, True, False]


def test_a_recorder_that_does_not_record_cannot_settle(path):
    recorder = Recorder(path, engine="none")
    with pytest.raises(UsageError):
        recorder.settle()
    with recorder:
        pass
    with pytest.raises(UsageError):
        recorder.settle()


@pytest.mark.parametrize("settle", [True, False])
def test_a_run_in_a_thread_settles_as_it_was_planned(path, workshop, settle):
    plan = RunPlan(
        path,
        document=workshop / "document.txt",
        measures=Measures(engine="none", settle=settle),
    )
    run = ThreadRun(plan)
    run.start()
    run.wait()
    assert (settlement_of(path) is not None) is settle


def test_a_result_that_cannot_be_let_go_is_told_and_the_outcome_stays(path):
    recorder = Recorder(path, engine="none", settle=True)
    recorder.start()
    for _ in units([1, 2]):
        pass

    def release():
        raise OSError("the document cannot be closed")

    assert recorder.stop(release=release).state == "finished"
    assert settlement_of(path).steps[0].step == "result released"
    with RecordingReader(path) as reader:
        assert any("the document cannot be closed" in entry.message for entry in reader.log())


@pytest.mark.parametrize("settle", [True, False])
@pytest.mark.parametrize("raised", [SystemExit(3), KeyboardInterrupt()])
def test_what_ends_a_program_while_it_lets_go_is_raised_when_the_recording_is_complete(
    path, settle, raised, capsys
):
    recorder = Recorder(path, engine="none", settle=settle)
    recorder.start()
    for _ in units([1, 2]):
        pass

    def release():
        raise raised

    with pytest.raises(type(raised)) as caught:
        recorder.stop(release=release)
    assert caught.value is raised
    assert recorder.stop().state == "finished"
    with RecordingReader(path) as reader:
        steps = [step.step for step in reader.settlement()]
        told = [entry.message for entry in reader.log()]
        assert reader.outcome().state == "finished"
    assert steps[:2] == (["result released", "collection"] if settle else [])
    # Without a settlement the recording was complete before: the screen takes the message.
    told += capsys.readouterr().err.splitlines()
    assert len([line for line in told if type(raised).__name__ in line]) == 1
    with record(path.with_name("second.p87"), engine="none"):
        pass  # the process is free to record again


def test_the_ledger_is_read_once_more_when_everything_was_let_go_of(workshop):
    path = page87_run(workshop, "--loader", "shelf:held", "document.txt")

    with RecordingReader(path) as reader:
        steps, readings = reader.settlement(), reader.ledger()
        explanation = explain(reader)
        after = reader.outcome().t_ns
    before, last = readings[-2:]
    assert before.t_ns < steps[0].t_ns <= steps[-1].t_ns <= last.t_ns <= after
    assert (before.rss - last.rss) / MB == pytest.approx(40, abs=5)
    assert last.rss / MB == pytest.approx(steps[-1].rss_after / MB, abs=2)
    if last.python is not None and before.python is not None:
        assert (before.python - last.python) / MB == pytest.approx(40, abs=2)
    # The end of the run is before that: what it held is what it is judged by.
    assert explanation.at_end.t_ns == before.t_ns
    assert explanation.after_settlement.t_ns == last.t_ns


def test_the_end_of_a_service_that_settled_on_the_way_is_its_last_reading(path):
    with record(path, engine="none", tick_s=5.0) as recorder:
        recorder.settle()
    with RecordingReader(path) as reader:
        explanation = explain(reader)
        assert explanation.at_end.t_ns == reader.ledger()[-1].t_ns
        assert explanation.after_settlement is None


def test_settle_is_a_switch(path):
    with pytest.raises(UsageError):
        record(path, settle="yes")
