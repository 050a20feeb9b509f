"""The child's side of a supervised run: ``python -m diagnostics.launch.child < plan``.

The plan comes on standard input, which the supervisor keeps open as long as it lives. SIGTERM, and
the end of that pipe, end the run as a cancellation: at once if Python code is running.
"""

from __future__ import annotations

import faulthandler
import os
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
    plan = RunPlan.from_json(sys.stdin.readline())
    cancel = _Cancel()
    signal.signal(signal.SIGTERM, cancel.on_signal)
    threading.Thread(
        target=_follow_supervisor, args=(_take_pipe(),), name="page87-supervisor", daemon=True
    ).start()
    try:
        outcome = run_plan(plan, on_started=cancel.arm, on_ending=cancel.disarm)
    except Page87Error as error:
        print(to_line(error), file=sys.stderr)  # noqa: T201
        return WRONG_INPUT
    return exit_status(outcome)


class _Cancel:
    """Turns SIGTERM into ``RunCancelled``, but only inside the loader's own code.

    Raised while the recording is being begun or completed it would leave that half done.
    """

    def __init__(self) -> None:
        self._armed = False
        self._asked = False

    def arm(self, recorder: Recorder) -> None:
        self._armed = True
        if self._asked:
            raise RunCancelled

    def disarm(self) -> None:
        self._armed = False

    def on_signal(self, number: int, frame: FrameType | None) -> None:
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


def _follow_supervisor(pipe: int) -> None:
    # A read returns when the other end is closed: by the supervisor's own end, however it came.
    while os.read(pipe, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_S)
    os.kill(os.getpid(), signal.SIGKILL)  # nobody else is left to insist


if __name__ == "__main__":
    sys.exit(main())
