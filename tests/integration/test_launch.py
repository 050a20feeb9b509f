"""Runs end the way they really ended: in this process, and in children that die in many ways."""

import contextlib
import os
import signal
import textwrap
import threading
import time

import pytest

from diagnostics.errors import (
    DocumentError,
    LoaderError,
    Page87Error,
    PasswordError,
    RecorderBusyError,
    RecordingError,
    UsageError,
)
from diagnostics.launch.app import AppSettings
from diagnostics.launch.plan import Measures, RunPlan
from diagnostics.launch.registry import Runs
from diagnostics.launch.supervisor import ChildRun
from diagnostics.launch.thread import ThreadRun
from diagnostics.loaders.base import LoadOptions
from diagnostics.recording.reader import RecordingReader

QUICK = Measures(engine="none")


@pytest.fixture
def recording(tmp_path):
    return tmp_path / "run.p87"


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("".join(f"Line {number} of the notes.\n" for number in range(4000)))
    return path


@pytest.fixture
def script(tmp_path):
    def write(body):
        path = tmp_path / "job.py"
        path.write_text(textwrap.dedent(body))
        return path

    return write


def plan_of(recording, **parts):
    return RunPlan(recording, measures=parts.pop("measures", QUICK), **parts)


def outcome_of(recording):
    with RecordingReader(recording) as reader:
        return reader.outcome()


def run_in_child(plan):
    run = ChildRun(plan)
    run.start()
    run.wait(30)
    assert not run.alive
    assert run.error is None
    return outcome_of(plan.recording)


SLOW_PAGES = """
import time
from diagnostics import units
for page in units(range(1000)):
    time.sleep(0.02)
"""


@pytest.mark.parametrize("kind", [ThreadRun, ChildRun])
def test_a_document_is_read_to_its_end(kind, recording, text):
    run = kind(plan_of(recording, document=text))
    run.start()
    run.wait(30)
    with RecordingReader(recording) as reader:
        assert reader.outcome().state == "finished"
        units = reader.units()
        assert [unit.index for unit in units] == list(range(1, len(units) + 1))
        assert sum(unit.characters for unit in units) == len(text.read_text())
        assert {unit.kind for unit in units} == {"chunk"}
        about = reader.meta()["document"]
        assert (about["name"], about["loader"]) == ("notes.txt", "text")
        assert about["bytes"] == text.stat().st_size


@pytest.mark.parametrize(
    ("body", "state", "detail"),
    [
        ("raise ValueError('bad xref')", "raised", "bad xref"),
        ("import sys; sys.exit(3)", "exited", 3),
        ("import os; os._exit(7)", "exited", 7),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "killed", signal.SIGKILL),
        ("import ctypes; ctypes.string_at(0)", "killed", signal.SIGSEGV),
        ("import os; os.abort()", "killed", signal.SIGABRT),
        ("raise SystemExit", "finished", None),
    ],
)
def test_every_end_of_a_child_is_told_right(recording, script, body, state, detail):
    path = script(
        f"""
        import time
        from diagnostics import units
        for page in units(range(1, 9)):
            if page == 4:
                time.sleep(0.3)  # so that the mark of unit 4 is committed
                {body}
        """
    )
    outcome = run_in_child(plan_of(recording, script=path))
    assert (outcome.state, outcome.last_unit) == (state, 4)
    assert detail in (None, outcome.error_message, outcome.exit_status, outcome.signal)
    if outcome.signal == signal.SIGSEGV:
        assert "job.py" in (outcome.traceback or ""), "faulthandler's stack is kept"
    assert [path.name for path in recording.parent.glob("run*")] == ["run.p87"]


def test_a_child_killed_half_way_leaves_everything_up_to_the_last_tick(recording, script):
    run = ChildRun(plan_of(recording, script=script(SLOW_PAGES)))
    run.start()
    time.sleep(1.0)
    os.kill(run.pid, signal.SIGKILL)
    run.wait(10)
    with RecordingReader(recording) as reader:
        outcome, units = reader.outcome(), reader.units()
    assert outcome.state == "killed"
    assert outcome.signal == signal.SIGKILL
    assert outcome.last_unit == units[-1].index
    assert units[-1].index > 10
    assert [unit.status for unit in units[:-1]] == ["finished"] * (len(units) - 1)


def test_workers_that_a_killed_child_leaves_behind_do_not_hide_its_end(recording, script):
    path = script(
        """
        import os, pathlib, signal, subprocess, sys, time
        from diagnostics import unit
        worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        pathlib.Path(sys.argv[1]).write_text(str(worker.pid))
        with unit("page", 3):
            time.sleep(0.3)
            os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    worker = recording.with_name("worker.txt")
    try:
        # It is over within 30 s, though the worker holds the child's standard error for 60.
        outcome = run_in_child(plan_of(recording, script=path, arguments=(str(worker),)))
    finally:
        os.kill(int(worker.read_text()), signal.SIGKILL)
    assert (outcome.state, outcome.signal, outcome.last_unit) == ("killed", signal.SIGKILL, 3)


def test_code_in_a_child_that_asks_for_input_gets_none(recording, script):
    outcome = run_in_child(plan_of(recording, script=script("print('Name?', input())")))
    assert (outcome.state, outcome.error_type) == ("raised", "EOFError")


def test_cancelling_a_child_ends_it_cleanly(recording, script):
    run = ChildRun(plan_of(recording, script=script(SLOW_PAGES)))
    run.start()
    time.sleep(0.5)
    run.cancel()
    run.wait(10)
    outcome = outcome_of(recording)
    assert outcome.state == "cancelled"
    assert outcome.signal is None, "it ended by itself, without being killed"


def test_a_child_that_hangs_and_ignores_sigterm_is_killed(recording, script):
    path = script(
        """
        import signal, time
        from diagnostics import unit
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        with unit("page", 5):
            while True:
                time.sleep(0.1)
        """
    )
    run = ChildRun(plan_of(recording, script=path))
    run.start()
    time.sleep(0.6)
    run.cancel()
    run.wait(15)
    outcome = outcome_of(recording)
    assert (outcome.state, outcome.signal, outcome.last_unit) == ("cancelled", signal.SIGKILL, 5)


def test_a_child_does_not_outlive_its_supervisor(recording, script):
    import subprocess
    import sys

    code = """
import sys, time
from pathlib import Path
from diagnostics.launch.plan import Measures, RunPlan
from diagnostics.launch.supervisor import ChildRun
run = ChildRun(RunPlan(Path(sys.argv[1]), script=Path(sys.argv[2]), measures=Measures("none")))
run.start()
print(run.pid, flush=True)
time.sleep(60)
"""
    host = subprocess.Popen(
        [sys.executable, "-c", code, recording, script(SLOW_PAGES)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert host.stdout is not None
    assert int(host.stdout.readline())
    time.sleep(0.5)
    host.kill()
    host.wait()
    deadline = time.monotonic() + 10
    while outcome_of(recording).state == "running" and time.monotonic() < deadline:
        time.sleep(0.1)
    assert outcome_of(recording).state == "cancelled"


def test_a_child_that_ignores_sigterm_does_not_outlive_its_supervisor_either(recording, script):
    import signal
    import subprocess
    import sys

    stubborn = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + SLOW_PAGES
    code = f"""
import sys
from diagnostics.launch.plan import Measures, RunPlan
from diagnostics.launch.supervisor import ChildRun
from pathlib import Path
run = ChildRun(RunPlan(Path({str(recording)!r}), script=Path({str(script(stubborn))!r}),
                       measures=Measures("none")))
run.start()
print(run.pid, flush=True)
run.wait()
"""
    host = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert host.stdout is not None
    pid = int(host.stdout.readline())
    time.sleep(0.5)
    host.kill()
    host.wait()
    deadline = time.monotonic() + 10
    while outcome_of(recording).state == "running" and time.monotonic() < deadline:
        time.sleep(0.1)
    state = outcome_of(recording).state
    if state == "running":
        os.kill(pid, signal.SIGKILL)
    assert state == "lost", "nobody was left who could have seen its end"


def test_a_run_in_this_process_stops_at_its_next_unit(recording, script):
    run = ThreadRun(plan_of(recording, script=script(SLOW_PAGES)))
    run.start()
    time.sleep(0.3)
    run.cancel()
    run.wait(10)
    assert not run.alive
    outcome = outcome_of(recording)
    assert outcome.state == "cancelled"
    assert 1 < outcome.last_unit < 1000


def test_one_run_at_a_time_in_this_process_and_children_beside_it(tmp_path, text, script):
    runs = Runs()
    first, second, third = (tmp_path / f"{number}.p87" for number in (1, 2, 3))
    runs.start(plan_of(first, script=script(SLOW_PAGES)), "thread")
    with pytest.raises(RecorderBusyError, match="one run at a time"):
        runs.start(plan_of(second, document=text), "thread")
    runs.start(plan_of(third, document=text), "child")
    runs.wait(third, 30)
    assert runs.can_cancel(first)
    runs.cancel(first)
    runs.wait(first, 10)
    assert not second.exists()
    assert outcome_of(first).state == "cancelled"
    assert outcome_of(third).state == "finished"
    runs.start(plan_of(second, document=text), "thread")
    runs.wait(second, 30)
    assert outcome_of(second).state == "finished"


def test_two_runs_never_share_a_recording(recording, text, script):
    runs = Runs()
    runs.start(plan_of(recording, script=script(SLOW_PAGES)), "child")
    for where in ("child", "thread"):
        with pytest.raises(RecordingError, match="being recorded already"):
            runs.start(plan_of(recording, document=text), where)
    assert runs.can_cancel(recording), "the first is known as before"
    runs.cancel(recording)
    runs.wait(recording, 10)
    assert outcome_of(recording).state == "cancelled"


@pytest.mark.parametrize("kind", [ThreadRun, ChildRun])
def test_a_missing_password_is_told_as_such(kind, recording, tmp_path):
    from pypdf import PdfWriter

    writer = PdfWriter()
    writer.add_blank_page(200, 200)
    writer.encrypt("s3cret")
    writer.write(tmp_path / "secret.pdf")
    with pytest.raises(PasswordError, match="encrypted"):
        kind(plan_of(recording, document=tmp_path / "secret.pdf")).start()
    assert not recording.exists()


@pytest.mark.parametrize("kind", [ThreadRun, ChildRun])
@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("import sys; print('a warning', file=sys.stderr)", "has no load"),
        ("raise SystemExit(0)", "cannot be opened: SystemExit: 0"),
    ],
)
def test_what_a_loaders_module_does_on_import_is_told(
    kind, body, words, recording, text, tmp_path, monkeypatch
):
    name = f"odd_{kind.__name__.lower()}_{len(body)}"
    (tmp_path / f"{name}.py").write_text(body)
    monkeypatch.syspath_prepend(tmp_path)
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", paths)
    with pytest.raises(LoaderError, match=words) as caught:
        kind(plan_of(recording, document=text, loader=f"{name}:load")).start()
    assert "a warning" not in caught.value.message
    assert not recording.exists()


@pytest.mark.parametrize("kind", [ThreadRun, ChildRun])
@pytest.mark.parametrize(
    ("parts", "error", "words"),
    [
        ({"document": "missing.pdf"}, DocumentError, "missing.pdf"),
        ({"document": "notes.txt", "loader": "pypfd"}, LoaderError, "pypfd"),
        ({"document": "notes.txt", "loader": "nowhere:load"}, LoaderError, "nowhere"),
        ({"document": "notes.txt", "measures": Measures("exat")}, UsageError, "exat"),
        ({"script": "missing.py"}, UsageError, "missing.py"),
        ({"script": "notes.txt"}, UsageError, "not a Python script"),
    ],
)
def test_wrong_input_is_an_error_and_leaves_no_recording(
    kind, parts, error, words, recording, text, tmp_path
):
    paths = {key: tmp_path / parts[key] for key in ("document", "script") if key in parts}
    run = kind(plan_of(recording, **{**parts, **paths}))
    with pytest.raises(Page87Error, match=words) as caught:
        run.start()
        run.wait(30)
        assert run.error is None
    assert caught.value.next_step
    assert isinstance(caught.value, error)
    assert not recording.exists()


def test_a_script_sees_what_it_would_see_alone(recording, script, tmp_path, capfd):
    (tmp_path / "helper.py").write_text("ANSWER = 87\n")
    path = script(
        """
        import sys
        import helper
        from diagnostics import units
        import pickle
        class Local: pass
        if __name__ == "__main__":
            assert pickle.loads(pickle.dumps(Local())).__class__ is Local
            assert locals() is globals()
            print(sys.argv[1:], helper.ANSWER, __file__.endswith("job.py"))
            list(units(range(3)))
        """
    )
    outcome = run_in_child(plan_of(recording, script=path, arguments=("--n", "3")))
    assert outcome.state == "finished"
    assert "['--n', '3'] 87 True" in capfd.readouterr().err


def test_a_run_without_units_says_how_to_mark_them(recording, script):
    run_in_child(plan_of(recording, script=script("x = [1]\n")))
    with RecordingReader(recording) as reader:
        assert any("units()" in entry.message for entry in reader.log())


def test_a_script_of_tasks_is_recorded(recording, script):
    path = script(
        """
        import asyncio
        from diagnostics import unit
        async def fetch(number):
            with unit("request", number):
                await asyncio.sleep(0.01)
        async def main():
            await asyncio.gather(*(fetch(n) for n in range(1, 30)))
        asyncio.run(main())
        """
    )
    assert run_in_child(plan_of(recording, script=path)).state == "finished"
    with RecordingReader(recording) as reader:
        assert [unit.index for unit in reader.units()] == list(range(1, 30))


def test_lines_of_a_scripts_own_function_are_profiled(recording, script):
    path = script(
        """
        from diagnostics import units
        def work(n):
            block = b"x" * n
            return len(block)
        for page in units(range(3)):
            work(30_000_000)
        """
    )
    run_in_child(plan_of(recording, script=path, measures=Measures("none", 1, ("job:work",))))
    with RecordingReader(recording) as reader:
        rows = {row.line: row for row in reader.line_profile()}
    grown = next(row for row in rows.values() if 'b"x" * n' in row.source)
    assert grown.hits == 3
    assert grown.increment is not None
    assert grown.increment > 25_000_000


def test_a_password_travels_by_pipe_alone():
    plan = plan_of("r.p87", document="d.pdf", options=LoadOptions(password="s3cret"))
    assert "s3cret" not in plan.command
    assert "s3cret" not in repr(plan)
    assert RunPlan.from_json(plan.to_json()).options.password == "s3cret"


def test_code_that_was_not_named_is_not_started(recording, text, script):
    mine = script("pass")
    settings = AppSettings(loaders=("mine:load",), scripts=(mine,))
    settings.check(plan_of(recording, document=text, loader="pypdf"))
    settings.check(plan_of(recording, document=text, loader="mine:load"))
    settings.check(plan_of(recording, script=mine))
    with pytest.raises(UsageError, match="not named"):
        settings.check(plan_of(recording, document=text, loader="os:listdir"))
    with pytest.raises(UsageError, match="not named"):
        settings.check(plan_of(recording, script=text))


def test_a_line_profile_imports_nothing_that_was_not_named(recording, text):
    def check(settings, function):
        settings.check(plan_of(recording, document=text, measures=Measures(lines=(function,))))

    settings = AppSettings(loaders=("mine:load",))
    check(settings, "pdfminer.converter:PDFLayoutAnalyzer.render_char")  # installed
    check(settings, "json:loads")  # the standard library
    check(settings, "mine:helper")
    check(settings, "mine.py:helper")
    with pytest.raises(UsageError, match="deploy:main is not profiled"):
        check(settings, "deploy:main")
    with pytest.raises(UsageError, match=r"deploy\.py:main is not profiled"):
        check(settings, "deploy.py:main")
    with pytest.raises(UsageError, match=r"mine\.other:main is not profiled"):
        check(settings, "mine.other:main")


def test_settings_travel_through_the_environment(monkeypatch, tmp_path):
    settings = AppSettings((tmp_path / "a.p87",), ("m:f",), (tmp_path / "s.py",))
    for name, value in settings.to_environment().items():
        monkeypatch.setenv(name, value)
    assert AppSettings.from_environment() == settings


def test_the_loser_of_a_race_for_a_name_says_so(recording, script):
    path = script("import time\ntime.sleep(1)")
    runs = [ChildRun(plan_of(recording, script=path)) for _ in range(2)]
    errors = []

    def start(run):
        try:
            run.start()
        except RecordingError as error:
            errors.append(error)

    threads = [threading.Thread(target=start, args=(run,)) for run in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for run in runs:
        run.wait(30)
    assert [error.message for error in errors] == [
        f"{recording} exists already; it was left as it is."
    ]
    assert outcome_of(recording).state == "finished"


def test_sigterm_from_somebody_else_is_no_wish_of_the_user(recording, script):
    run = ChildRun(plan_of(recording, script=script(SLOW_PAGES)))
    run.start()
    os.kill(run.pid, signal.SIGTERM)
    run.wait(10)
    outcome = outcome_of(recording)
    assert (outcome.state, outcome.signal) == ("killed", signal.SIGTERM)


def test_a_recording_that_is_deleted_during_a_run_is_missed(recording, script):
    path = script(f"import os\nos.remove({str(recording)!r})\nraise ValueError")
    run = ChildRun(plan_of(recording, script=path))
    with contextlib.suppress(RecordingError):  # where the run is over before start() returns
        run.start()
    run.wait(30)
    assert run.deleted
    assert "was deleted while it was written" in run.error.message
    assert run.returncode == 3


GROWING = """
    import time
    from diagnostics import units
    class Kept:
        pass
    kept, size = [], 3000
    for page in units(range(1, 400)):
        record = Kept()
        record.text = b"x" * size
        kept.append(record)
        time.sleep(0.02)
"""


@pytest.mark.parametrize("where", ["thread", "child"])
def test_a_capture_is_taken_when_it_is_asked_for(recording, script, where):
    runs = Runs()
    plan = plan_of(recording, script=script(GROWING), measures=Measures(engine="sampled"))
    runs.start(plan, where)
    try:
        wait_until(lambda: unit_count(recording) > 10)
        runs.request_capture(recording)
        wait_until(lambda: captures(recording))
    finally:
        runs.cancel(recording)
        runs.wait(recording, 20)
    reason = {"thread": "asked for", "child": "signal"}[where]
    assert captures(recording)[0].reason == reason
    with RecordingReader(recording) as reader:
        heaviest, *_others = reader.suspects(1)
        assert heaviest.type in ("__main__.Kept", "builtins.bytes")
        assert reader.outcome().state == "cancelled"


def wait_until(there):
    deadline = time.monotonic() + 20
    while not there():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def unit_count(recording):
    with RecordingReader(recording) as reader:
        return reader.unit_count()


def captures(recording):
    with RecordingReader(recording) as reader:
        return reader.captures()
