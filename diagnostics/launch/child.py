"""The child's side of a supervised run: ``python -m diagnostics.launch.child < plan``.

The plan comes on standard input, which stays open as long as the supervisor lives. SIGTERM, and
the end of standard input, end the run as a cancellation: at once if Python code is running.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import threading
from types import FrameType

from diagnostics import Recorder
from diagnostics.errors import Page87Error, RunCancelled
from diagnostics.launch.inline import run_plan
from diagnostics.launch.plan import RunPlan
from diagnostics.launch.verdicts import exit_status

WRONG_INPUT = 2


def main() -> int:
    """Run the plan; returns the exit status, and tells wrong input on standard error."""
    faulthandler.enable()  # a crash in native code leaves its Python stack on standard error
    plan = RunPlan.from_json(sys.stdin.readline())
    cancel = _Cancel()
    signal.signal(signal.SIGTERM, cancel.on_signal)
    threading.Thread(target=_follow_supervisor, name="page87-supervisor", daemon=True).start()
    try:
        outcome = run_plan(plan, on_started=cancel.arm, on_ending=cancel.disarm)
    except Page87Error as error:
        print(error.message, error.next_step, sep="\n", file=sys.stderr)  # noqa: T201
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


def _follow_supervisor() -> None:
    # A read returns when the other end is closed: by the supervisor's own end, however it came.
    # Read below Python's buffers: a thread blocked in them would block the interpreter's exit.
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main())
