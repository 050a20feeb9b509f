"""The recorder: starts the probes, marks the units, writes the recording."""

from __future__ import annotations

import atexit
import functools
import inspect
import os
import platform
import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, cast

from diagnostics.captures import Captures
from diagnostics.ending import Ending
from diagnostics.errors import RecorderBusyError, UsageError
from diagnostics.probes.base import Session
from diagnostics.probes.crew import ProbeCrew
from diagnostics.recording.liveness import writer_identity
from diagnostics.recording.model import LogLevel, Outcome, SettlementStep
from diagnostics.recording.places import new_path
from diagnostics.recording.writer import RecordingWriter
from diagnostics.scribe import Scribe, guarded
from diagnostics.settings import (
    checked_frames,
    checked_lines,
    checked_mapping,
    checked_signal,
    checked_switch,
    checked_text,
    checked_tick,
)
from diagnostics.settlement import Release
from diagnostics.units import UnitBook, activate, current_unit, unit_variable
from diagnostics.version import __version__

Function = TypeVar("Function", bound=Callable[..., Any])
Log = Callable[[LogLevel, str, str], None]

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
    ``settle`` ends the recording with a settlement: a full collection of the garbage and
    ``malloc_trim``, each measured. It is off by default, since it changes what the program does.
    With ``captures`` it looks who holds what old units left behind, each time when that has grown
    and at the end. ``capture_signal`` names a signal ("SIGUSR1") that has it look at the next tick.
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
        settle: bool = False,
        captures: bool = True,
        capture_signal: str | None = None,
        name: str = "",
        command: str = "",
        document: Mapping[str, Any] | None = None,
        versions: Mapping[str, str] | None = None,
        is_workbench_thread: Callable[[int], bool] = lambda thread: False,
    ) -> None:
        self._given_path = Path(path) if path is not None else None
        self._name = checked_text("name", name)
        self._wanted_engine = checked_text("engine", engine)
        self._settings: dict[str, Any] = {
            "engine": self._wanted_engine,
            "frames": checked_frames(frames),
            "lines": checked_lines(lines),
            "types": checked_switch("types", types),
            "tick_s": checked_tick(tick_s),
            "settle": checked_switch("settle", settle),
            "captures": checked_switch("captures", captures),
            "capture_signal": checked_signal("capture_signal", capture_signal),
        }
        self._meta: dict[str, Any] = {
            "command": checked_text("command", command) or shlex.join(sys.argv),
            "document": checked_mapping("document", document) or None,
            "versions": {"page87": __version__, **checked_mapping("versions", versions)},
        }
        self._is_workbench_thread = is_workbench_thread
        self._pid: int | None = None  # of the process that called start() last
        self._settling: int | None = None
        self._started = False
        self._end_lock = threading.RLock()  # a signal handler may stop what is just being stopped

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
        """Create the file and begin. What the caller's input can still spoil fails here.

        Raises what ``record`` names, and ``UsageError`` also where no thread can be started, at the
        interpreter's end for one, and where ``capture_signal`` cannot be awaited.
        """
        global _active
        with _starting:
            if _active is not None:
                raise RecorderBusyError(
                    f"This process is being recorded already, into {_active.path}.",
                    "Stop that recording first, or start the second run in a child process.",
                )
            self._reset()
            writer = RecordingWriter(self.path, self._meta_now())
            self._scribe.open(writer)
            _active = self
        try:
            self._crew.start(self._probes.probes)
            self._scribe.write()
            self._start_thread()
            self._await_signal()
        except BaseException:
            _active = None
            for undo in (self._scribe.end, self._crew.stop, writer.close, self.path.unlink):
                guarded(undo, self.log)
            raise
        self._started = True
        activate(self.book)

    def stop(
        self, error: BaseException | None = None, *, release: Release | None = None
    ) -> Outcome:
        """End the recording; ``error`` is what ended the run, None if it finished.

        ``release`` lets go of the run's result. With the setting ``settle`` it is called, and
        measured, as the settlement's first step; else when the recording is complete.

        Once stopped, a further call (also from another thread) changes nothing and returns the
        same outcome. Raises ``UsageError`` for a recorder that records nothing here. What is no
        ``Exception`` (``KeyboardInterrupt``; ``SystemExit`` in ``release``) is raised once the
        recording is complete. Exceptions in ``release`` are in the log; without ``settle``, where
        the log is complete by then, on standard error.
        """
        if not self.is_started:
            raise UsageError(
                "This recorder records nothing in this process.",
                "Call start() first, in the process that calls stop().",
            )
        global _active
        with self._end_lock:
            if self._ending.outcome is None:
                activate(None)
                try:
                    self._ending.end(error, release, self._settings["settle"])
                finally:
                    _active = None
            return cast(Outcome, self._ending.outcome)

    # -- the settlement --------------------------------------------------------------------------

    def settle(self) -> list[SettlementStep]:
        """Collect the garbage and trim malloc now, in the calling thread, and measure both.

        For services: the recording goes on, and keeps the steps beside those taken before.
        Raises ``UsageError`` for a recorder that records nothing here.
        """
        with self._end_lock:  # who waits here for stop() finds that there is no recording any more
            self._check_running("settle")
            self._scribe.flush()  # what was collected until now is the program's own doing
            self._settling = threading.get_ident()
            try:
                return self._ending.settle()
            finally:
                self._settling = None

    # -- captures --------------------------------------------------------------------------------

    def capture(self) -> bool:
        """Look now, in the calling thread, who holds what old units left behind, and keep it.

        False where nothing can be suspected (neither an engine nor type counts, or captures are
        off), and in a signal's handler that came while the same thread was looking. Raises
        ``UsageError`` for a recorder that records nothing here.
        """
        self._check_running("capture")
        return self._captures is not None and self._captures.take("asked for") is not None

    def request_capture(self) -> None:
        """Have the recorder thread take a capture at its next tick; does not wait for it.

        May be called from anywhere, a signal's handler too. Raises ``UsageError`` before start().
        """
        self._check_begun("request_capture")
        if self._captures is not None:
            self._captures.ask("asked for")

    def _await_signal(self) -> None:
        name = self._settings["capture_signal"]
        if name is None or self._captures is None:
            return
        try:
            self._captures.await_signal(signal.Signals[name])
        except ValueError:
            raise UsageError(
                f"{name} can only be awaited by a recorder that the main thread starts.",
                "Start it there, or call request_capture() instead.",
            ) from None
        except OSError as error:  # SIGKILL, SIGSTOP
            raise UsageError(
                f"{name} cannot be awaited ({error.strerror}).", 'Name another, such as "SIGUSR1".'
            ) from None

    def _check_running(self, call: str) -> None:
        if not self.is_started or self._ending.outcome is not None:
            raise UsageError(
                "This recorder records nothing in this process.",
                f"Call {call}() between start() and stop(), in the process that called start().",
            )

    def _check_begun(self, call: str) -> None:
        if self._pid is None:
            raise UsageError(
                "This recorder has not begun to record.",
                f"Call {call}() after start(), or inside `with`.",
            )

    @property
    def is_started(self) -> bool:
        """Whether it has begun to record in this process."""
        return self._started and self._pid == os.getpid()

    # -- what a run tells ------------------------------------------------------------------------

    def request_cancel(self) -> None:
        """Ask the run to stop: ``RunCancelled`` is raised at its next unit mark.

        Raises ``UsageError`` before start(), as the calls below do.
        """
        self._check_begun("request_cancel")
        self.book.cancel_requested = True

    def describe(self, document: Mapping[str, Any]) -> None:
        """Add to what the recording says about the document, once it was opened.

        Raises ``UsageError`` where JSON cannot hold it.
        """
        self._check_begun("describe")
        told = checked_mapping("document", document)
        self._scribe.describe({**(self._meta["document"] or {}), **told})

    def now_ns(self) -> int:
        """Monotonic nanoseconds since the start of the recording."""
        self._check_begun("now_ns")
        return time.monotonic_ns() - self._start_ns

    def log(self, level: LogLevel, source: str, message: str) -> None:
        """Leave a line in the recording."""
        self._check_begun("log")
        self._scribe.log(level, source, message)

    # -- inside ----------------------------------------------------------------------------------

    def _reset(self) -> None:
        # Imported here: unit marks without a recording must not pay for the probes.
        from diagnostics.probes.standard import standard_probes

        self.path = self._given_path or new_path(self._name or "run")
        self._pid = os.getpid()
        self._start_ns = time.monotonic_ns()
        reasons: list[str] = []
        # Else what the run before fell back to would count as asked for.
        self._settings["engine"] = self._wanted_engine
        self._probes = probes = standard_probes(self._settings, reasons.append)
        if self._settings["engine"] == "default":
            self._settings["engine"] = probes.engine.engine_name if probes.engine else "none"
        self._crew = ProbeCrew(
            Session(
                self.now_ns,
                current_unit,
                self._is_own_thread,
                self.log,
                probes.live_bytes,
                unit_variable,
            )
        )
        self.book = UnitBook(self.now_ns, self._crew.unit_started, self._crew.unit_ended)
        self._scribe = Scribe(self.now_ns, self._crew, self.book, self._settings["tick_s"])
        for reason in reasons:
            self.log("warning", "heap", reason)
        self._captures: Captures | None = None
        if self._settings["captures"]:
            self._captures = Captures(
                self._scribe, self.book, self.now_ns, self._is_own_thread, probes.capture_budget
            )
            self._captures.follow(probes.sampled, probes.growth_source)
        self._ending = Ending(
            self.now_ns, self.log, self._scribe, self.book, probes, self._crew, self._captures
        )
        self._settling = None
        self._started = False

    def _start_thread(self) -> None:
        try:
            self._scribe.start()
        except RuntimeError as error:
            raise UsageError(
                f"No thread can be started for the recording ({error}).",
                "Start it before the program comes to its end, and within its limit of threads.",
            ) from error

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

    def _is_own_thread(self, thread: int) -> bool:
        return thread in (self._scribe.thread_id, self._settling) or self._is_workbench_thread(
            thread
        )

    def abandon(self) -> None:
        """In a forked child: undo the hooks, and never touch the parent's file."""
        self._end_lock = threading.RLock()  # another thread of the parent may have held the old one
        self._crew.abandon()
        if self._captures is not None:
            self._captures.end_signal()
        self._scribe.abandon()


def capture() -> bool:
    """Look now who holds what old units left behind, and keep it in this process's recording.

    False where there is no recording, or nothing can be suspected in it: code that calls this may
    stay as it is when nobody records.
    """
    recorder = _active
    return recorder is not None and recorder.capture()


@atexit.register
def _interpreter_exits() -> None:
    # Somebody called start() and never stop(): the interpreter's own end ends the run. Functions
    # that the program registers for its exit are called before this one, which came first, so what
    # they start to record is ended as well.
    if _active is not None and _active.is_started:
        _active.stop()


def _after_fork_in_child() -> None:
    global _active, _starting
    recorder, _active = _active, None
    _starting = threading.Lock()  # another thread of the parent may have held the old one
    activate(None)
    if recorder is not None:
        recorder.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
