"""The signal that takes a capture, in processes of their own: whenever it comes, nobody is hurt."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest

from diagnostics import record
from diagnostics.errors import UsageError
from diagnostics.recording.reader import RecordingReader

pytestmark = pytest.mark.skipif(
    not hasattr(signal, "SIGUSR1"), reason="this system has no signals for programs to use"
)

SETTING = """
import faulthandler, os, signal, sys, threading, time
from diagnostics import Recorder, capture, record, units
from diagnostics.recording.reader import RecordingReader

faulthandler.dump_traceback_later(20, exit=True)  # a deadlock ends here, and says where
path = sys.argv[1]

def send(number=signal.SIGUSR1):
    os.kill(os.getpid(), number)

def captures():
    with RecordingReader(path) as reader:
        return [one.reason for one in reader.captures()]

def wait_for(condition):
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
"""


def run(path, code, *, env=None):
    """What the program prints, once it has ended well."""
    done = subprocess.run(
        [sys.executable, "-c", SETTING + textwrap.dedent(code), path],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=env,
    )
    assert done.returncode == 0, (done.returncode, done.stderr)
    return done.stdout


def messages(path):
    with RecordingReader(path) as reader:
        return [entry.message for entry in reader.log()]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.p87"


def test_each_signal_takes_one_capture(path):
    run(
        path,
        """
        with record(path, capture_signal="SIGUSR1", tick_s=0.02):
            assert captures() == []
            for count in (1, 2):
                send()
                wait_for(lambda: captures() == ["signal"] * count)
            time.sleep(0.1)
            assert captures() == ["signal"] * 2
        """,
    )


def test_one_that_comes_after_the_last_tick_is_answered_at_the_end(path):
    run(
        path,
        """
        with record(path, capture_signal="SIGUSR1", tick_s=30.0):
            for page in units(range(2)):
                pass
            send()
        assert captures()[0] == "signal"
        """,
    )


def test_signals_and_requests_in_the_same_thread_do_not_wait_for_each_other(path):
    # given a signal every 50 microseconds, in between any two steps of the main thread
    # when the main thread asks for captures all the time
    run(
        path,
        """
        with record(path, engine="none", capture_signal="SIGALRM") as recorder:
            signal.setitimer(signal.ITIMER_REAL, 0.00005, 0.00005)
            end = time.monotonic() + 2
            while time.monotonic() < end:
                recorder.request_capture()
            signal.setitimer(signal.ITIMER_REAL, 0)
        """,
    )

    # then it comes to its end
    with RecordingReader(path) as reader:
        assert "signal" in {one.reason for one in reader.captures()}
        assert reader.outcome().state == "finished"


def test_a_handler_that_asks_while_its_own_thread_is_taking_one_is_told_no(path):
    # given a program that takes a capture itself at each signal, and a heap that takes a while
    # when the signals come every 5 milliseconds during another capture
    said = run(
        path,
        """
        kept, answers = [], []
        signal.signal(signal.SIGALRM, lambda *_: answers.append(capture()))
        with record(path) as recorder:
            for page in units(range(6)):
                kept.append([[str(number)] for number in range(30_000)])
            signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
            outer = recorder.capture()
            signal.setitimer(signal.ITIMER_REAL, 0)
        print(outer, False in answers)
        """,
    )

    # then the one that was being taken is complete, and the log tells of those left out
    assert said == "True True\n"
    assert any("its thread was just taking another" in message for message in messages(path))
    with RecordingReader(path) as reader:
        assert reader.captures()[0].complete


def test_a_signal_while_the_run_is_let_go_of_ends_nothing(path):
    run(
        path,
        """
        recorder = Recorder(path, engine="none", settle=True, capture_signal="SIGUSR1")
        recorder.start()
        recorder.stop(release=send)
        assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL
        """,
    )
    with RecordingReader(path) as reader:
        assert reader.outcome().state == "finished"


def test_a_signal_that_nobody_can_await_is_refused_and_leaves_no_file(path):
    with (
        pytest.raises(UsageError, match="SIGKILL cannot be awaited"),
        record(path, engine="none", capture_signal="SIGKILL"),
    ):
        pass
    assert not path.exists()


def test_the_signal_goes_back_to_who_had_it(path):
    run(
        path,
        """
        signal.signal(signal.SIGUSR1, before := lambda *_: None)
        with record(path, engine="none", capture_signal="SIGUSR1"):
            assert signal.getsignal(signal.SIGUSR1) is not before
        assert signal.getsignal(signal.SIGUSR1) is before
        """,
    )


def test_a_handler_that_the_program_sets_meanwhile_stays(path):
    run(
        path,
        """
        with record(path, engine="none", capture_signal="SIGUSR1"):
            signal.signal(signal.SIGUSR1, own := lambda *_: None)
        assert signal.getsignal(signal.SIGUSR1) is own
        """,
    )


def test_a_recording_that_another_thread_stops_leaves_a_handler_that_does_no_harm(path):
    run(
        path,
        """
        recorder = Recorder(path, engine="none", capture_signal="SIGUSR1")
        recorder.start()
        thread = threading.Thread(target=recorder.stop)
        thread.start()
        thread.join()
        send()
        assert captures() == ["end of the run"]
        """,
    )


def test_a_forked_child_meets_the_signal_as_it_would_alone(path):
    run(
        path,
        """
        with record(path, engine="none", capture_signal="SIGUSR1"):
            child = os.fork()
            if child == 0:
                send()
                os._exit(0)
            assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGUSR1
        """,
    )


FOREIGN_HANDLER = """
#include <signal.h>

static void nothing(int number) { (void)number; }

__attribute__((constructor)) static void install(void) { signal(SIGUSR1, nothing); }
"""


def test_a_handler_from_before_python_cannot_be_put_back_and_is_not_replaced_by_death(
    path, tmp_path
):
    # given a library that has set a handler before Python started
    source, library = tmp_path / "foreign.c", tmp_path / "foreign.so"
    source.write_text(FOREIGN_HANDLER)
    built = subprocess.run(
        ["cc", "-shared", "-fPIC", "-o", library, source], capture_output=True, check=False
    )
    if built.returncode:
        pytest.skip("there is no C compiler")

    # when a recording has used the signal, then a later one still ends nobody
    run(
        path,
        """
        assert signal.getsignal(signal.SIGUSR1) is None
        with record(path, engine="none", capture_signal="SIGUSR1"):
            pass
        send()
        """,
        env={**os.environ, "LD_PRELOAD": str(library)},
    )
    with RecordingReader(path) as reader:
        assert reader.outcome().state == "finished"
