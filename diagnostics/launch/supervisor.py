"""A run in a child process: own interpreter, survives whatever the loader does to it."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from diagnostics.errors import Page87Error, RecordingError
from diagnostics.launch.child import GRACE_S, WRONG_INPUT
from diagnostics.launch.complaints import from_output
from diagnostics.launch.plan import RunPlan
from diagnostics.launch.relay import Relay
from diagnostics.launch.verdicts import is_of_a_run, outcome_of_death
from diagnostics.recording.reader import RecordingReader, set_outcome

_START_PATIENCE_S = 30.0
_LAST_WORDS_S = 0.5


class ChildRun:
    """Runs a plan in ``python -m diagnostics.launch.child`` and sees to its outcome.

    The child's output goes to this process's standard error; its standard input is empty. Ctrl-C
    on the terminal reaches the supervisor alone. The child ends with its supervisor.
    """

    def __init__(self, plan: RunPlan) -> None:
        self.path: Path = plan.recording
        self.cancelling = False
        self.deleted = False
        self.error: Page87Error | None = None
        self._plan = plan
        self._recorded = False
        # Not the watcher's own end: a join() that Ctrl-C interrupts takes the thread for ended in
        # Python 3.11, and the next one returns at once.
        self._over = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="page87-supervisor", daemon=True)

    def start(self) -> None:
        """Start, and return once the recording is there or the child is gone.

        Raises ``Page87Error`` when the child found its input wrong.
        """
        if self.path.exists():
            raise RecordingError(
                f"{self.path} exists already; it was left as it is.", "Choose another name."
            )
        self._process = subprocess.Popen(
            [sys.executable, "-m", "diagnostics.launch.child"],
            stdin=subprocess.PIPE,
            stdout=sys.stderr,
            stderr=subprocess.PIPE,
            process_group=0,
        )
        assert self._process.stdin is not None
        assert self._process.stderr is not None
        # Before that it can only say why it does not start, and that becomes the error.
        self._relay = Relay(self._process.stderr, sys.stderr, only_if=self._records)
        with contextlib.suppress(BrokenPipeError):  # it died at once; its status tells more
            self._process.stdin.write(self._plan.to_json().encode() + b"\n")
            self._process.stdin.flush()
        self._watcher.start()
        deadline = time.monotonic() + _START_PATIENCE_S
        while self.alive and not self._has_begun() and time.monotonic() < deadline:
            time.sleep(0.02)
        if not self.alive and self.error is not None:
            raise self.error

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """The child's status as ``subprocess`` gives it; None while it lives."""
        return self._process.returncode

    @property
    def alive(self) -> bool:
        return self._watcher.ident is not None and not self._over.is_set()

    def cancel(self) -> None:
        """Ask the child to stop, and kill it if it has not after three seconds."""
        if self.cancelling:
            return
        self.cancelling = True
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):  # it has ended by itself just now
            self._process.stdin.write(b"\n")  # by this it knows whose SIGTERM it is
            self._process.stdin.flush()
        self._process.terminate()
        threading.Thread(target=self._insist, name="page87-supervisor", daemon=True).start()

    def request_capture(self) -> None:
        """Have the child's recorder look who holds what, if it awaits a signal for that."""
        name = self._meta().get("settings", {}).get("capture_signal")
        if self.alive and name in signal.Signals.__members__:
            self._process.send_signal(signal.Signals[name])

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait for the end of the run, its outcome written."""
        self._over.wait(timeout_s)

    def _records(self) -> bool:
        """Whether the recording is there, and this child's: another run may take the name."""
        if not self._recorded:
            writer = self._meta().get("writer")
            self._recorded = isinstance(writer, dict) and writer.get("pid") == self.pid
        return self._recorded and self.path.exists()

    def _has_begun(self) -> bool:
        """Whether the child records, and its input turned out to be right."""
        return self._records() and "opened" in self._meta()

    def _meta(self) -> dict[str, Any]:
        try:
            with RecordingReader(self.path) as reader:
                return reader.meta()
        except RecordingError:  # not there, or only just being made
            return {}

    def _insist(self) -> None:
        try:
            self._process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def _watch(self) -> None:
        try:
            self._see_it_end()
        finally:
            self._over.set()

    def _see_it_end(self) -> None:
        # The process is waited for, not the end of its output: workers that it leaves behind when
        # it is killed hold the pipe open.
        returncode = self._process.wait()
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        said = self._relay.last_words(_LAST_WORDS_S)
        if self._records():
            self._write_outcome(returncode, said)
        else:
            self.error = self._why_nothing_was_recorded(returncode, said)

    def _why_nothing_was_recorded(self, returncode: int, said: str) -> Page87Error:
        told = from_output(said) if returncode == WRONG_INPUT else None
        if told is not None:
            return told
        if self._recorded or is_of_a_run(returncode):
            self.deleted = True
            return RecordingError(
                f"{self.path} was deleted while it was written, so nothing is left of it.",
                "Start the run again.",
            )
        if self.cancelling:
            return Page87Error("The run was stopped before it could record.", "Start it again.")
        return Page87Error(
            f"The child process ended with status {returncode} before it could record.\n"
            + said.strip(),
            "Run the loader by itself, without page87, to see whether it starts at all.",
        )

    def _write_outcome(self, returncode: int, said: str) -> None:
        try:
            with RecordingReader(self.path) as reader:
                last = reader.outcome()
            if last.state in ("running", "lost"):
                death = outcome_of_death(returncode, last, cancelled=self.cancelling)
                # After a crash what it said holds the stack that faulthandler left.
                set_outcome(self.path, replace(death, traceback=said or None))
        except RecordingError as error:
            self.error = error
