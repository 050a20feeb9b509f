"""The child's side of a supervised run: ``python -m diagnostics.launch.child < plan``.

The plan comes on standard input, which the supervisor keeps open as long as it lives. A word on
that pipe, and its end, end the run as a cancellation: at once if Python code is running. SIGTERM
from anybody else kills this process as it would any other.
"""

from __future__ import annotations

import faulthandler
import os
import select
import signal
import sys
import threading
import time
from types import FrameType

from diagnostics import Recorder
from diagnostics.errors import Page87Error, RunCancelled
from diagnostics.launch.complaints import to_line
from diagnostics.launch.inline import run_plan
from diagnostics.launch.plan import RunPlan
from diagnostics.launch.verdicts import exit_status

WRONG_INPUT = 2
GRACE_S = 3.0
"""How long a cancelled run may take to end by itself."""


def main() -> int:
    """Run the plan; returns the exit status, and tells wrong input on standard error."""
    faulthandler.enable()  # a crash in native code leaves its Python stack on standard error
    # Unbuffered: what comes behind the plan has to stay in the pipe, to be seen there.
    with open(0, "rb", buffering=0, closefd=False) as plan_pipe:
        plan = RunPlan.from_json(plan_pipe.readline().decode())
    pipe = _take_pipe()
    cancel = _Cancel(pipe)
    signal.signal(signal.SIGTERM, cancel.on_signal)
    threading.Thread(
        target=_follow_supervisor, args=(pipe,), name="page87-supervisor", daemon=True
    ).start()
    try:
        outcome = run_plan(plan, on_started=cancel.arm, on_ending=cancel.disarm)
    except Page87Error as error:
        print(to_line(error), file=sys.stderr)  # noqa: T201
        return WRONG_INPUT
    return exit_status(outcome)


class _Cancel:
    """Turns the supervisor's SIGTERM into ``RunCancelled``, but only inside the loader's own code.

    Raised while the recording is being begun or completed it would leave that half done.
    """

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._armed = False
        self._asked = False

    def arm(self, recorder: Recorder) -> None:
        self._armed = True
        if self._asked:
            raise RunCancelled

    def disarm(self) -> None:
        self._armed = False

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        if not _has_news(self._pipe, timeout_s=0):  # it is not the supervisor who asks
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        self._asked = True
        if self._armed:
            self._armed = False
            raise RunCancelled


def _take_pipe() -> int:
    """The supervisor's pipe under another number.

    The loader's own standard input is empty: code that asks there for an answer gets the end of
    the file, as in any run without a terminal, and does not wait for ever.
    """
    pipe = os.dup(0)  # not inherited by processes that the loader starts
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    return pipe


def _has_news(pipe: int, *, timeout_s: float | None) -> bool:
    """Whether the supervisor wants the run to end, or is gone, however that came.

    Nothing is read, so that everybody who asks gets the same answer.
    """
    waiting = select.poll()  # select() cannot take the high numbers of a loader with many files
    waiting.register(pipe, select.POLLIN)
    return bool(waiting.poll(None if timeout_s is None else timeout_s * 1000))


def _follow_supervisor(pipe: int) -> None:
    _has_news(pipe, timeout_s=None)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_S)
    os.kill(os.getpid(), signal.SIGKILL)  # perhaps nobody else is left to insist


if __name__ == "__main__":
    sys.exit(main())
