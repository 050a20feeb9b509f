"""The recorder in its real setting: a process of its own, threads, tasks, forks, failures."""

import os
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from diagnostics import Recorder, record, unit, units
from diagnostics.ending import Ending
from diagnostics.errors import RecorderBusyError, RecordingError, UsageError
from diagnostics.probes.crew import ProbeCrew
from diagnostics.recording.model import UnitRow
from diagnostics.recording.reader import RecordingReader
from diagnostics.scribe import Scribe


def run(code, *args, check=True, env=None):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, args)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=env,
    )
    assert done.returncode == 0 or not check, done.stderr
    return done


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.p87"


def test_a_loop_over_units_is_recorded(path):
    with record(path, tick_s=0.02):
        kept = [b"x" * 100_000 for _ in units(range(5), kind="page")]
    assert len(kept) == 5
    with RecordingReader(path) as reader:
        assert [(u.index, u.kind, u.status) for u in reader.units()] == [
            (n, "page", "finished") for n in range(1, 6)
        ]
        assert reader.meta()["unit_total"] == {"kind": "page", "total": 5}
        assert reader.outcome().state == "finished"
        assert reader.outcome().last_unit == 5
        assert len(reader.process()) >= 2
        assert {p.name: p.state for p in reader.probes()} == {
            "process": "on",
            "gc": "on",
            "mappings": "on",
            "ledger": "on",
            "types": "on",
            "heap": "on",
            "recorder": "on",
        }
    assert [p.name for p in path.parent.iterdir()] == ["run.p87"]


def test_an_exception_is_the_outcome_and_reaches_the_caller(path):
    with pytest.raises(ZeroDivisionError), record(path, engine="none"):
        for page in units(range(1, 9)):
            if page == 3:
                1 / 0  # noqa: B018
    with RecordingReader(path) as reader:
        outcome = reader.outcome()
        assert (outcome.state, outcome.last_unit) == ("raised", 3)
        assert (outcome.error_type, outcome.error_message) == (
            "ZeroDivisionError",
            "division by zero",
        )
        assert "in test_an_exception_is_the_outcome" in (outcome.traceback or "")
        assert [u.status for u in reader.units()] == ["finished", "finished", "failed"]


@pytest.mark.parametrize(
    ("ending", "state", "status"),
    [
        ("raise SystemExit(0)", "finished", 0),
        ("raise SystemExit(7)", "exited", 7),
        ("raise SystemExit('no config')", "exited", 1),
        ("raise KeyboardInterrupt", "cancelled", None),
    ],
)
def test_other_endings(path, ending, state, status):
    code = f"""
    import sys
    from diagnostics import record
    with record(sys.argv[1], engine="none"):
        {ending}
    """
    run(code, path, check=False)
    with RecordingReader(path) as reader:
        outcome = reader.outcome()
        assert (outcome.state, outcome.exit_status) == (state, status)


def test_recording_twice_at_once_is_refused(path, tmp_path):
    with record(path, engine="none"):
        with (
            pytest.raises(RecorderBusyError, match="recorded already"),
            record(tmp_path / "second.p87"),
        ):
            pass
        with unit("page", 1):
            pass
    assert not (tmp_path / "second.p87").exists()
    with RecordingReader(path) as reader:
        assert reader.outcome().state == "finished"
        assert len(reader.units()) == 1


def test_one_after_the_other_is_fine(tmp_path):
    for number in range(3):
        with record(tmp_path / f"{number}.p87", engine="none"), unit("page"):
            pass
    for number in range(3):
        with RecordingReader(tmp_path / f"{number}.p87") as reader:
            assert [u.index for u in reader.units()] == [1]


def test_decorated_functions_are_recorded_each_time_they_are_called(tmp_path, monkeypatch):
    monkeypatch.setenv("PAGE87_RECORDINGS", str(tmp_path))

    @record(engine="none", name="ingest")
    def ingest(n):
        return sum(units(range(n)))

    assert ingest(4) == 6
    assert ingest(3) == 3
    found = list(tmp_path.iterdir())
    assert len(found) == 2
    counts = []
    for file in found:
        with RecordingReader(file) as reader:
            counts.append(len(reader.units()))
    assert sorted(counts) == [3, 4]


def test_wrong_input_leaves_no_file_behind(path):
    with pytest.raises(UsageError, match="exact"):
        Recorder(path, engine="exakt").start()
    with pytest.raises(Exception, match="no_such_module"):
        Recorder(path, lines=["no_such_module:f"]).start()
    assert not path.exists()
    path.write_text("precious")
    with pytest.raises(RecordingError):
        Recorder(path, engine="none").start()
    assert path.read_text() == "precious"
    with record(path.with_name("after.p87"), engine="none"):
        pass  # a failed start leaves the process free to record


def test_a_probe_that_fails_is_taken_out_and_the_run_goes_on(path, monkeypatch):
    from diagnostics.probes.collector import GcProbe

    def broken(self, unit):
        raise OSError("the counter is gone")

    monkeypatch.setattr(GcProbe, "unit_started", broken)
    with record(path, engine="none"):
        assert list(units("abc")) == ["a", "b", "c"]
    with RecordingReader(path) as reader:
        states = {p.name: (p.state, p.detail) for p in reader.probes()}
        assert states["gc"][0] == "failed"
        assert "the counter is gone" in states["gc"][1]
        assert any("taken out" in entry.message for entry in reader.log())
        assert len(reader.units()) == 3
        assert reader.outcome().state == "finished"


def test_a_forked_child_leaves_its_parents_recording_alone(path, tmp_path):
    code = """
    import os, sys, tracemalloc, gc
    from diagnostics import record, unit, units
    with record(sys.argv[1], tick_s=0.02):
        hooks = len(gc.callbacks)
        for page in units(range(1, 4)):
            if page == 2:
                child = os.fork()
                if child == 0:
                    assert not tracemalloc.is_tracing() and len(gc.callbacks) < hooks
                    with unit("page", 99):
                        pass
                    with record(sys.argv[2], engine="none"), unit("page", 5):
                        pass
                    sys.exit(0)  # a full interpreter exit, with every finaliser
                assert os.waitpid(child, 0)[1] == 0
    """
    run(code, path, tmp_path / "child.p87")
    with RecordingReader(path) as reader:
        assert [u.index for u in reader.units()] == [1, 2, 3]
        assert reader.outcome().state == "finished"
    with RecordingReader(tmp_path / "child.p87") as reader:
        assert [u.index for u in reader.units()] == [5]
        assert reader.outcome().state == "finished"


def test_an_interpreter_that_exits_while_recording_ends_the_recording(path):
    code = """
    import sys
    from diagnostics import Recorder, unit
    Recorder(sys.argv[1], engine="none").start()
    with unit("page", 12):
        pass
    """
    run(code, path)
    with RecordingReader(path) as reader:
        assert reader.outcome().state == "finished"
        assert [u.index for u in reader.units()] == [12]


def test_a_recording_that_begins_as_the_interpreter_exits_has_its_end_too(path):
    # given a program that starts to record in one of its last functions
    code = """
    import atexit, sys
    from diagnostics import Recorder, unit
    from diagnostics.errors import UsageError
    def last():
        try:
            Recorder(sys.argv[1], engine="none").start()
        except UsageError as refused:
            print(refused.message)
        with unit("page", 12):
            pass
    atexit.register(last)
    """
    done = run(code, path)

    # then it is complete; or refused, where Python starts no thread any more (3.12)
    assert done.stderr == ""
    if done.stdout:
        assert "No thread can be started" in done.stdout
        assert not path.exists()
    else:
        with RecordingReader(path) as reader:
            assert reader.outcome().state == "finished"
            assert [u.index for u in reader.units()] == [12]


def test_a_program_may_stop_its_recording_as_the_interpreter_exits(path):
    code = """
    import atexit, sys
    from diagnostics import Recorder, unit
    recorder = Recorder(sys.argv[1], engine="none")
    atexit.register(lambda: print(recorder.stop(ValueError("from the exit")).state))
    recorder.start()
    """
    assert run(code, path).stdout == "raised\n"
    with RecordingReader(path) as reader:
        assert reader.outcome().error_message == "from the exit"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the limit of processes is Unix's")
def test_where_no_thread_can_be_started_nothing_is_left_behind(path):
    code = """
    import sys, threading
    from diagnostics import Recorder
    from diagnostics.errors import UsageError
    threading.stack_size(1 << 46)  # more than the machine can map: every start of a thread fails
    recorder = Recorder(sys.argv[1])
    for _ in range(2):
        try:
            recorder.start()
        except UsageError as refused:
            print(refused.message)
    threading.stack_size(0)
    recorder.start()
    print(recorder.stop().state)
    """
    *refused, state = run(code, path).stdout.splitlines()
    assert refused == ["No thread can be started for the recording (can't start new thread)."] * 2
    assert state == "finished"


def test_an_interrupt_at_the_end_is_raised_once_the_recording_is_complete(path):
    # given a recording that is still searching for holders when the user presses Ctrl-C
    code = """
    import gc, signal, sys
    from diagnostics import record, units
    kept = []
    gc.disable()  # Python drops what is raised in a collector's callback
    try:
        with record(sys.argv[1]):
            for page in units(range(5)):
                kept.append([[str(number)] for number in range(60_000)])
            signal.signal(signal.SIGALRM, signal.default_int_handler)
            signal.setitimer(signal.ITIMER_REAL, 0.03)
    except KeyboardInterrupt:
        print("interrupted")
    """
    assert run(code, path).stdout == "interrupted\n"
    with RecordingReader(path) as reader:
        assert reader.outcome().state == "finished"
        assert [u.status for u in reader.units()] == ["finished"] * 5
        assert any("KeyboardInterrupt" in entry.message for entry in reader.log())
    assert [p.name for p in path.parent.iterdir()] == ["run.p87"]


@pytest.mark.parametrize(
    ("call", "given"),
    [
        ("stop", ()),
        ("settle", ()),
        ("capture", ()),
        ("request_capture", ()),
        ("request_cancel", ()),
        ("describe", ({"name": "report.pdf"},)),
        ("now_ns", ()),
        ("log", ("info", "loader", "half way")),
    ],
)
def test_a_call_before_the_start_is_refused_in_words(path, call, given):
    with pytest.raises(UsageError, match="start"):
        getattr(record(path, engine="none"), call)(*given)
    assert not path.exists()


def test_an_interrupt_in_the_very_last_step_costs_no_outcome(path, monkeypatch):
    recorder = Recorder(path, engine="none")
    recorder.start()
    with unit("page"):
        pass

    def interrupted(_scribe):
        raise KeyboardInterrupt

    write_entries = Scribe.write_entries

    def last_entries(scribe):  # what comes after them is the close
        write_entries(scribe)
        monkeypatch.setattr(Scribe, "_write_account", interrupted)

    monkeypatch.setattr(Scribe, "write_entries", last_entries)
    with pytest.raises(KeyboardInterrupt):
        recorder.stop()
    assert recorder.stop().state == "finished"
    with RecordingReader(path) as reader:
        assert reader.outcome().state == "finished"


def test_the_probes_work_for_as_long_as_the_recorder_thread_ticks(path, monkeypatch):
    alive = []
    stop = ProbeCrew.stop

    def looking(crew):
        alive.append([t for t in threading.enumerate() if t.name == "page87-recorder"])
        stop(crew)

    monkeypatch.setattr(ProbeCrew, "stop", looking)
    with record(path, engine="none"):
        pass
    assert alive[0] == []


def test_a_settlement_that_had_to_wait_for_the_end_is_told_so(path, monkeypatch):
    recorder = Recorder(path, engine="none")
    recorder.start()
    said = []

    def settle():
        try:
            recorder.settle()
        except UsageError as error:
            said.append(error)

    end = Ending.end

    def ending(*args):
        thread.start()
        time.sleep(0.2)  # it has come to the lock by then
        end(*args)

    thread = threading.Thread(target=settle)
    monkeypatch.setattr(Ending, "end", ending)
    recorder.stop()
    thread.join()
    assert "records nothing" in str(said[0])


def test_threads_and_tasks_land_on_their_own_units(path):
    code = """
    import asyncio, sys, threading
    from diagnostics import record, unit
    def thread_work(number):
        with unit("page", number):
            threading.Event().wait(0.03)
    async def task_work(number):
        with unit("page", number):
            await asyncio.sleep(0.02)
    async def main():
        await asyncio.gather(*(task_work(n) for n in range(1, 20)))
    with record(sys.argv[1], engine="none", tick_s=0.01):
        threads = [threading.Thread(target=thread_work, args=(n,)) for n in range(20, 28)]
        for t in threads: t.start()
        asyncio.run(main())
        for t in threads: t.join()
    """
    run(code, path)
    with RecordingReader(path) as reader:
        rows = reader.units()
        assert [u.index for u in rows] == list(range(1, 28))
        assert {u.status for u in rows} == {"finished"}
        assert len(reader.unit_peaks()) == 27


def test_the_recorder_works_without_psutil_and_says_so(path):
    code = """
    import sys
    sys.modules["psutil"] = None  # as where it is not installed
    from diagnostics import record, units
    with record(sys.argv[1], engine="none"):
        assert list(units("ab")) == ["a", "b"]
    """
    run(code, path)
    with RecordingReader(path) as reader:
        states = {p.name: p.state for p in reader.probes()}
        assert states["process"] == "missing"
        assert reader.outcome().state == "finished"


IMPORT_COST = """
import resource, sys, time
def rss():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()
before, start = rss(), time.process_time()
from diagnostics import record, unit, units
took, grown = time.process_time() - start, rss() - before
heavy = {"pandas", "numpy", "plotly", "streamlit"} & set(sys.modules)
print(took, grown, *sorted(heavy))
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="RSS is read from procfs")
def test_the_import_is_cheap(tmp_path):
    # With compiled files kept, as in any installation; the first import writes them.
    env = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path)}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    costs = [run(IMPORT_COST, env=env).stdout.split() for _ in range(6)]
    assert all(len(cost) == 2 for cost in costs), "something heavy was imported"
    # CPU time, for the machine may be busy; the best of six, for its caches may be cold.
    assert min(float(cost[0]) for cost in costs) < 0.1
    assert min(int(cost[1]) for cost in costs) < 10_000_000


def test_texts_that_utf8_has_no_bytes_for_are_recorded(path):
    with pytest.raises(LookupError), record(path, engine="none"):
        with unit("p\ud800", label="l\ud800"):
            pass
        with unit("page", label="plain"):
            raise LookupError("m\ud800")
    with RecordingReader(path) as reader:
        assert [(u.kind, u.label, u.error_message) for u in reader.units()] == [
            ("p\\ud800", "l\\ud800", None),
            ("page", "plain", "m\\ud800"),
        ]
        assert reader.outcome().error_message == "m\\ud800"


@pytest.mark.parametrize("bad", [2**63, 10**30, float("nan"), object()])
def test_a_row_that_cannot_be_stored_costs_neither_the_others_nor_the_thread(path, bad):
    with record(path, engine="none", types=False, tick_s=0.01) as recorder:
        for number in (1, 2):
            with unit("page"):
                pass
            recorder.book._changes.append(UnitRow(number + 10, "page", "bad", 0, characters=bad))
            time.sleep(0.1)
        assert any(thread.name == "page87-recorder" for thread in threading.enumerate())
    with RecordingReader(path) as reader:
        assert [u.index for u in reader.units()] == [1, 2]
        assert reader.outcome().state == "finished"
        log = [entry.message for entry in reader.log() if entry.source == "recorder"]
        assert len(log) == 1
        assert "left out" in log[0]
        assert {p.name: p.dropped for p in reader.probes()}["recorder"] == 2


def test_a_speechless_exception_is_the_outcome_and_the_process_can_record_again(path):
    class SpeechlessError(Exception):
        def __str__(self):
            raise RuntimeError

    with pytest.raises(SpeechlessError), record(path, engine="none"), unit("page"):
        raise SpeechlessError
    with RecordingReader(path) as reader:
        assert reader.outcome().error_message == "<message not available: RuntimeError>"
    with record(path.with_name("second.p87"), engine="none"):
        pass


def test_stop_needs_a_start_and_may_be_called_twice(path):
    recorder = Recorder(path, engine="none")
    with pytest.raises(UsageError, match="start"):
        recorder.stop()
    recorder.start()
    outcomes = []
    threads = [threading.Thread(target=lambda: outcomes.append(recorder.stop())) for _ in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == [recorder.stop(ValueError())] * 2
    assert outcomes[0].state == "finished"


def test_generators_and_classes_cannot_be_decorated():
    def generator():
        yield

    async def async_generator():
        yield

    for target, advice in [(generator, "loop"), (async_generator, "loop"), (Path, "method")]:
        with pytest.raises(TypeError, match=advice):
            record()(target)


@pytest.mark.parametrize(
    "wrong",
    [
        {"document": {"a": object()}},
        {"document": {"a": float("nan")}},
        {"document": 5},
        {"versions": {("a", "b"): "1"}},
        *({"tick_s": tick} for tick in ("1", None, True, 0, -1, 61, float("nan"))),
        {"frames": "3"},
        {"frames": 1.5},
        {"lines": [5]},
        {"engine": 5},
    ],
)
def test_settings_that_make_no_sense_are_refused_and_leave_no_file(path, wrong):
    with pytest.raises(UsageError), record(path, **{"engine": "none", **wrong}):
        pass
    assert list(path.parent.iterdir()) == []


def test_a_path_with_a_nul_is_refused(tmp_path):
    with pytest.raises(RecordingError, match="null"), record(tmp_path / "a\0b", engine="none"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_plain_string_is_one_function_of_the_line_profile(path):
    with record(path, engine="none", lines="textwrap:dedent"):
        textwrap.dedent("  a")
    with RecordingReader(path) as reader:
        assert reader.meta()["settings"]["lines"] == ["textwrap:dedent"]


@pytest.mark.skipif(sys.platform == "win32", reason="closes descriptors as daemons on Unix do")
def test_a_loader_that_closes_descriptors_ends_as_it_would_alone(path):
    code = """
    import os, sys
    from diagnostics import record, units
    with record(sys.argv[1], engine="none", tick_s=0.02):
        for page in units(range(1, 4)):
            if page == 1:
                os.closerange(3, 61)
    print("done")
    """
    done = run(code, path)
    assert done.stdout == "done\n"
    assert "the program closed the recording's descriptors" in done.stderr
    assert "Bad file descriptor" not in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="closes descriptors as daemons on Unix do")
def test_files_that_got_the_numbers_of_ours_are_not_written_into(path, tmp_path):
    code = """
    import os, sys, time
    from diagnostics import record, units
    with record(sys.argv[1], engine="none", tick_s=0.02):
        for page in units(range(1, 10)):
            if page == 1:
                os.closerange(3, 61)
                for number in range(50):
                    os.open(f"{sys.argv[2]}/{number}", os.O_CREAT | os.O_RDWR)
            time.sleep(0.01)
    """
    run(code, path, tmp_path)
    files = [tmp_path / str(number) for number in range(50)]
    assert [file.stat().st_size for file in files] == [0] * 50
