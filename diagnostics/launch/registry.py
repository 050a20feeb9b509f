"""The runs that this process has started, known to every session of the app."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from diagnostics.errors import RecorderBusyError, RecordingError
from diagnostics.launch.plan import RunPlan
from diagnostics.launch.supervisor import ChildRun
from diagnostics.launch.thread import ThreadRun

Where = Literal["thread", "child"]


class Runs:
    """Starts runs and finds them again by their recording. Safe to use from several threads.

    What is not here (started by another server, or before this one) is known from its file alone:
    it can be watched, not cancelled.
    """

    def __init__(self, is_workbench_thread: Callable[[int], bool] = lambda thread: False) -> None:
        self._is_workbench_thread = is_workbench_thread
        self._lock = threading.Lock()  # held while a run starts: one start at a time
        self._runs: dict[Path, ThreadRun | ChildRun] = {}

    def start(self, plan: RunPlan, where: Where) -> None:
        """Start a run and return once its recording is there.

        Raises ``Page87Error`` where the input is wrong, and ``RecorderBusyError`` for a second run
        in this process.
        """
        with self._lock:
            self._runs = {path: run for path, run in self._runs.items() if run.alive}
            self._refuse(plan, where)
            run = (
                ThreadRun(plan, self._is_workbench_thread) if where == "thread" else ChildRun(plan)
            )
            self._runs[plan.recording] = run
            try:
                run.start()
            except BaseException:
                del self._runs[plan.recording]
                raise

    def _refuse(self, plan: RunPlan, where: Where) -> None:
        if plan.recording in self._runs:
            raise RecordingError(
                f"{plan.recording} is being recorded already.", "Choose another name."
            )
        busy = next((run for run in self._runs.values() if isinstance(run, ThreadRun)), None)
        if where == "thread" and busy is not None:
            raise RecorderBusyError(
                f"{busy.path.stem} is being recorded in this process just now, and a process"
                " can record one run at a time.",
                "Wait for it, cancel it, or start this one in a child process.",
            )

    def can_cancel(self, path: Path) -> bool:
        """Whether the run behind a recording was started here and still goes on: then it can also
        be asked for a capture."""
        run = self._runs.get(path)
        return run is not None and run.alive

    def is_cancelling(self, path: Path) -> bool:
        """Whether a run was asked to stop and has not yet."""
        run = self._runs.get(path)
        return run is not None and run.alive and run.cancelling

    def cancel(self, path: Path) -> None:
        """Ask a run to stop; does nothing for one that is over or not known here."""
        run = self._runs.get(path)
        if run is not None and run.alive:
            run.cancel()

    def request_capture(self, path: Path) -> None:
        """Ask a run to look who holds what, now; does nothing for one that is over."""
        run = self._runs.get(path)
        if run is not None and run.alive:
            run.request_capture()

    def wait(self, path: Path, timeout_s: float | None = None) -> None:
        """Wait for the end of a run that was started here."""
        run = self._runs.get(path)
        if run is not None:
            run.wait(timeout_s)
