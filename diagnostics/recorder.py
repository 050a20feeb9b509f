"""The recorder: starts the probes, marks the units, writes the recording."""

from __future__ import annotations

import atexit
import functools
import inspect
import os
import platform
import shlex
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, cast

from diagnostics.errors import RecorderBusyError, UsageError
from diagnostics.outcomes import outcome_of
from diagnostics.probes.base import Budget, Probe, Session
from diagnostics.probes.crew import ProbeCrew
from diagnostics.recording.liveness import writer_identity
from diagnostics.recording.model import LogEntry, LogLevel, Outcome, ProbeStatus, UnitRow
from diagnostics.recording.places import new_path
from diagnostics.recording.texts import message_of
from diagnostics.recording.writer import RecordingWriter, is_about_the_file
from diagnostics.settings import (
    checked_frames,
    checked_lines,
    checked_mapping,
    checked_text,
    checked_tick,
)
from diagnostics.units import UnitBook, activate, current_unit, unit_variable
from diagnostics.version import __version__

Function = TypeVar("Function", bound=Callable[..., Any])

_SNAPSHOT_SHARE = 0.05
"""Snapshots of the exact engine and type counts together may take this share of the run."""

_TYPES_SHARE = 0.01
"""Type counts alone, beside an engine that takes no snapshots."""

_active: Recorder | None = None
_starting = threading.Lock()


def record(
    path: str | os.PathLike[str] | None = None,
    *,
    engine: str = "default",
    frames: int | None = None,
    lines: str | Iterable[str] = (),
    **options: Any,
) -> Recorder:
    """Record what runs inside ``with``, or inside each call of the decorated function.

    ``path``: the new file; without one it goes to the user's folder of recordings. ``engine``: the
    heap engine, "sampled", "exact" or "none"; by default "sampled" where it was built, else
    "exact". ``frames``: how many frames of each allocation stack (up to 64 sampled, 25 exact).
    ``lines``: functions for the line profile, "module:function". The other options are those of
    ``Recorder``.

    Raises ``RecordingError`` when the file exists or cannot be made, ``RecorderBusyError`` when
    this process records already, ``UsageError`` for an unknown engine or function and for
    settings that make no sense.
    """
    return Recorder(path, engine=engine, frames=frames, lines=lines, **options)


class Recorder:
    """Recordings of this process, from ``start`` to ``stop``; a context manager and a decorator.

    ``name``, ``command`` and ``document`` are kept in the recording's meta. ``tick_s`` is the
    time between commits. ``is_workbench_thread`` tells of a thread id whether it belongs to the
    program around the run (a server that hosts it), so that its doings are not counted.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        engine: str = "default",
        frames: int | None = None,
        lines: str | Iterable[str] = (),
        types: bool = True,
        tick_s: float = 0.1,
        name: str = "",
        command: str = "",
        document: Mapping[str, Any] | None = None,
        versions: Mapping[str, str] | None = None,
        is_workbench_thread: Callable[[int], bool] = lambda thread: False,
    ) -> None:
        self._given_path = Path(path) if path is not None else None
        self._name = checked_text("name", name)
        self._settings: dict[str, Any] = {
            "engine": checked_text("engine", engine),
            "frames": checked_frames(frames),
            "lines": checked_lines(lines),
            "types": types,
            "tick_s": checked_tick(tick_s),
        }
        self._meta: dict[str, Any] = {
            "command": checked_text("command", command) or shlex.join(sys.argv),
            "document": checked_mapping("document", document) or None,
            "versions": {"page87": __version__, **checked_mapping("versions", versions)},
        }
        self._is_workbench_thread = is_workbench_thread
        self._thread: threading.Thread | None = None
        self._described: dict[str, Any] | None = None
        self._started = False
        self._outcome: Outcome | None = None
        self._ending = threading.RLock()  # a signal handler may stop what is just being stopped

    # -- start and stop --------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        error_traceback: TracebackType | None,
    ) -> None:
        if self._pid == os.getpid():  # a forked child leaves its parent's recording alone
            self.stop(error)

    def __call__(self, function: Function) -> Function:
        if inspect.isclass(function):
            raise TypeError("a class cannot be recorded: decorate the method that does the work")
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(
                "a generator runs while it is iterated: put the loop over it inside"
                " `with record(...)`, or decorate the function that iterates it"
            )

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def recorded_coroutine(*args: Any, **kwargs: Any) -> Any:
                with self:
                    return await function(*args, **kwargs)

            return cast(Function, recorded_coroutine)

        @functools.wraps(function)
        def recorded(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return cast(Function, recorded)

    def start(self) -> None:
        """Create the file and begin. Everything that the caller's input can spoil fails here."""
        global _active
        with _starting:
            if _active is not None:
                raise RecorderBusyError(
                    f"This process is being recorded already, into {_active.path}.",
                    "Stop that recording first, or start the second run in a child process.",
                )
            self._reset()
            probes = self._make_probes()
            self._writer = RecordingWriter(self.path, self._meta_now())
            _active = self
        try:
            self._crew.start(probes)
            self._tick()
            self._thread = thread = threading.Thread(
                target=self._run, name="page87-recorder", daemon=True
            )
            thread.start()
        except BaseException:
            _active = None
            self._crew.stop()
            self._writer.close()
            self.path.unlink()
            raise
        atexit.register(self._interpreter_exits)
        self._started = True
        activate(self.book)

    def stop(self, error: BaseException | None = None) -> Outcome:
        """End the recording; ``error`` is what ended the run, None if it finished.

        Once stopped, a further call (also from another thread) changes nothing and returns the
        same outcome. Raises ``UsageError`` for a recorder that records nothing here.
        """
        if not self._started or self._pid != os.getpid():
            raise UsageError(
                "This recorder records nothing in this process.",
                "Call start() first, in the process that calls stop().",
            )
        with self._ending:
            if self._outcome is None:
                self._end(error)
            return cast(Outcome, self._outcome)

    def _end(self, error: BaseException | None) -> None:
        global _active
        activate(None)
        self._outcome = outcome_of(error, self.now_ns(), self.book.last_index)
        try:
            self.book.close(error)
            self._crew.stop()
            self._stop_event.set()
            if self._thread is not None:
                self._thread.join()
            atexit.unregister(self._interpreter_exits)
            self._outcome = replace(self._outcome, t_ns=self.now_ns())
            self._finish(self._outcome)
        except Exception as problem:  # noqa: BLE001 - the run has its own end, whatever ours is
            what = message_of(problem)
            _complain(f"the end of {self.path} is missing ({what}); what came before is kept.")
        finally:
            _active = None

    def request_cancel(self) -> None:
        """Ask the run to stop: ``RunCancelled`` is raised at its next unit mark."""
        self.book.cancel_requested = True

    def describe(self, document: Mapping[str, Any]) -> None:
        """Add to what the recording says about the document, once it was opened.

        Raises ``UsageError`` where JSON cannot hold it.
        """
        told = checked_mapping("document", document)
        self._described = {**(self._meta["document"] or {}), **told}

    def now_ns(self) -> int:
        """Monotonic nanoseconds since the start of the recording."""
        return time.monotonic_ns() - self._start_ns

    def log(self, level: LogLevel, source: str, message: str) -> None:
        """Leave a line in the recording."""
        self._log.append(LogEntry(self.now_ns(), level, source, message))

    def _reset(self) -> None:
        self.path = self._given_path or new_path(self._name or "run")
        self._pid = os.getpid()
        self._start_ns = time.monotonic_ns()
        self._crew = ProbeCrew(
            Session(self.now_ns, current_unit, self._is_own_thread, self.log, unit_variable)
        )
        self.book = UnitBook(self.now_ns, self._crew.unit_started, self._crew.unit_ended)
        self._log: deque[LogEntry] = deque()
        self._thread = None
        self._stop_event = threading.Event()
        self._cpu_ns = 0
        self._lost_ticks = 0
        self._dropped = 0
        self._dropped_kinds: set[str] = set()
        self._started = False
        self._outcome = None
        self._written_total: tuple[str, int] | None = None
        self._described = None

    def _meta_now(self) -> dict[str, Any]:
        return {
            **self._meta,
            "name": self._name or self.path.stem,
            "settings": self._settings,
            "python": platform.python_version(),
            "platform": platform.platform(),
            "started_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "writer": writer_identity(),
        }

    def _interpreter_exits(self) -> None:
        # Somebody called start() and never stop(): the interpreter's own end ends the run.
        if self._pid == os.getpid():
            self.stop()

    # -- probes ----------------------------------------------------------------------------------

    def _make_probes(self) -> list[Probe]:
        # Imported here: unit marks without a recording must not pay for the probes.
        from diagnostics.probes.collector import GcProbe
        from diagnostics.probes.heap import DEFAULT, default_engine, make_engine
        from diagnostics.probes.mappings import MappingProbe
        from diagnostics.probes.object_types import TypeProbe
        from diagnostics.probes.process import ProcessProbe

        settings = self._settings
        if settings["engine"] == DEFAULT:
            settings["engine"], why_not_sampled = default_engine()
            if why_not_sampled:
                self.log("warning", "heap", why_not_sampled)
        process = ProcessProbe()
        budget = Budget(_SNAPSHOT_SHARE, set_aside=process.set_aside)
        # The process probe comes first: a unit's peak is read before others take memory to measure.
        probes: list[Probe] = [process, GcProbe(), MappingProbe()]
        if settings["lines"]:
            from diagnostics.probes.lines import LineProbe

            probes.append(LineProbe(settings["lines"]))
        engine = make_engine(settings["engine"], frames=settings["frames"], budget=budget)
        if engine is not None:
            probes.append(engine)
        if settings["types"]:  # after the engine: the first picture of the heap should come first
            alone = engine is None or engine.engine_name != "exact"
            probes.append(
                TypeProbe(budget=Budget(_TYPES_SHARE, set_aside=process.set_aside))
                if alone
                else TypeProbe(budget=budget)
            )
        return probes

    def _is_own_thread(self, thread: int) -> bool:
        own = self._thread.ident if self._thread is not None else None
        return thread == own or self._is_workbench_thread(thread)

    # -- the recorder thread ---------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stop_event.wait(self._settings["tick_s"]):
            self._tick()

    def _tick(self) -> None:
        if self._lost_ticks:
            self._lost_ticks += 1
            self.book.changes()  # nobody will write them: they must not pile up
            self._log.clear()
            return
        start = time.thread_time_ns()
        try:
            self._write()
            self._writer.commit()
        except Exception as problem:  # noqa: BLE001 - this thread must outlive whatever it meets
            if is_about_the_file(problem):
                self._cut_off(problem)
            else:
                self._drop(problem)
        self._cpu_ns += time.thread_time_ns() - start

    def _write(self) -> None:
        t_ns = self.now_ns()
        self._keep(self._write_units)
        self._keep(self._crew.tick, self._writer, t_ns)
        self._write_account()

    def _keep(self, write: Callable[..., None], *args: Any) -> None:
        """Write; what cannot be stored is left out, so that the rest is not lost with it."""
        try:
            write(*args)
        except Exception as problem:  # one bad value must not cost the others
            if is_about_the_file(problem):
                raise
            self._drop(problem)

    def _drop(self, problem: Exception) -> None:
        self._dropped += 1
        kind = type(problem).__name__
        if kind not in self._dropped_kinds:
            self._dropped_kinds.add(kind)
            text = f"something could not be stored and was left out ({kind}: {message_of(problem)})"
            self.log("error", "recorder", text)

    def _write_units(self) -> None:
        rows: dict[int, UnitRow] = {}
        withdrawn: set[int] = set()
        for change in self.book.changes():
            if isinstance(change, UnitRow):
                rows[change.index] = change
                withdrawn.discard(change.index)
            else:
                rows.pop(change, None)
                withdrawn.add(change)
        self._writer.drop_units(withdrawn)
        try:
            self._writer.put_units(rows.values())
        except Exception as problem:  # one of them cannot be stored: which one?
            if is_about_the_file(problem):
                raise
            for row in rows.values():
                self._keep(self._writer.put_units, [row])
        described, self._described = self._described, None
        if described is not None:
            self._writer.put_meta({"document": described or None, "opened": True})
        if self.book.expected != self._written_total and self.book.expected is not None:
            kind, total = self.book.expected
            self._written_total = self.book.expected
            self._writer.put_meta({"unit_total": {"kind": kind, "total": total}})

    def _write_account(self) -> None:
        """The log, and what each probe and the recorder itself have cost so far."""
        while self._log:
            entry = self._log.popleft()
            self._keep(self._writer.add_log, entry.t_ns, entry.level, entry.source, entry.message)
        own = ProbeStatus("recorder", "on", "", self._cpu_ns, self._lost_ticks + self._dropped)
        for status in (*self._crew.statuses(), own):
            self._keep(self._writer.put_probes, [status])

    def _finish(self, outcome: Outcome) -> None:
        start = time.thread_time_ns()
        try:
            if not self._lost_ticks:
                t_ns = self.now_ns()
                self._keep(self._write_units)
                self._keep(self._crew.finish, self._writer, t_ns)
                self._cpu_ns += time.thread_time_ns() - start
                self._write_account()
            self._writer.put_outcome(outcome)
        finally:
            self._writer.close()

    def _cut_off(self, problem: Exception) -> None:
        """The file cannot grow: say so with the space kept for it, and let the run go on."""
        self._lost_ticks = 1
        t_ns = self.now_ns()
        text = f"The recording ends here ({problem}); the run itself went on."
        try:
            self._writer.rollback()
            self._writer.release_reserve()
            self._writer.add_log(t_ns, "error", "recorder", text)
            self._writer.put_meta({"cut_off": {"t_ns": t_ns, "reason": str(problem)}})
            self._writer.commit()
        except Exception:  # noqa: BLE001 - not even the last word: say it on the screen
            _complain(f"{self.path} ends here ({problem}); the run goes on.")
        self._crew.stop()

    # -- fork ------------------------------------------------------------------------------------

    def abandon(self) -> None:
        """In a forked child: undo the hooks, and never touch the parent's file."""
        self._ending = threading.RLock()  # another thread of the parent may have held the old one
        self._crew.abandon()
        # Closing the connection here, even at the child's end, would fold or delete the log that
        # the parent still writes: it is kept alive for ever.
        import ctypes

        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._writer.connection))
        self._writer.release_reserve()  # closes the child's handle only


def _after_fork_in_child() -> None:
    global _active, _starting
    recorder, _active = _active, None
    _starting = threading.Lock()  # another thread of the parent may have held the old one
    activate(None)
    if recorder is not None:
        recorder.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def _complain(message: str) -> None:
    """The last resort, where the recording itself cannot take the message."""
    print(f"page87: {message}", file=sys.stderr)  # noqa: T201
