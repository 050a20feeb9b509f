"""A run in this process, in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import Context
from pathlib import Path

from diagnostics import Recorder
from diagnostics.errors import Page87Error
from diagnostics.launch.inline import run_plan
from diagnostics.launch.plan import RunPlan

_START_PATIENCE_S = 30.0


class ThreadRun:
    """Runs a plan beside the program that hosts it.

    ``is_workbench_thread`` tells which of the host's threads are not part of the run.
    """

    def __init__(
        self, plan: RunPlan, is_workbench_thread: Callable[[int], bool] = lambda thread: False
    ) -> None:
        self.path: Path = plan.recording
        self.cancelling = False
        self.error: Page87Error | None = None
        self._plan = plan
        self._is_workbench_thread = is_workbench_thread
        self._recorder: Recorder | None = None
        self._begun = threading.Event()
        self._thread = threading.Thread(
            # A context of its own: no unit of the caller may be current in it.
            target=lambda: Context().run(self._run),
            name="page87-loader",
            daemon=True,
        )

    def start(self) -> None:
        """Start, and return once the recording is there.

        Raises ``Page87Error`` when the input turned out to be wrong before the first unit.
        """
        self._thread.start()
        self._begun.wait(_START_PATIENCE_S)
        if self.error is not None:
            raise self.error

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def cancel(self) -> None:
        """Ask the run to stop at its next unit; code in this process cannot be stopped sooner."""
        self.cancelling = True
        recorder = self._recorder
        if recorder is not None:
            recorder.request_cancel()

    def request_capture(self) -> None:
        """Have the run's recorder look who holds what; does nothing before and after."""
        recorder = self._recorder
        if recorder is not None:
            recorder.request_capture()

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait for the end of the run."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        try:
            run_plan(
                self._plan,
                on_started=self._has_started,
                is_workbench_thread=self._is_workbench_thread,
            )
        except Page87Error as error:
            self.error = error
        finally:
            self._recorder = None  # the registry keeps this run; its recorder may go
            self._begun.set()

    def _has_started(self, recorder: Recorder) -> None:
        self._recorder = recorder
        if self.cancelling:
            recorder.request_cancel()
        self._begun.set()
