"""The recorder thread: each tick it writes what there is into the recording, and commits."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from diagnostics.probes.crew import ProbeCrew
from diagnostics.recording.model import LogEntry, LogLevel, Outcome, ProbeStatus, UnitRow
from diagnostics.recording.texts import message_of
from diagnostics.recording.writer import RecordingWriter, is_about_the_file
from diagnostics.units import UnitBook

Entry = Callable[[RecordingWriter], None]
"""Writes something at the next tick."""

_ACCOUNT_EVERY_NS = 1_000_000_000

_SHARE = 0.005
"""Of the CPU time of the process, for the ticks; captures have a budget of their own."""

_ALLOWANCE_NS = 30_000_000
"""The first ticks describe the run, its code and its heap, and cost more than those after them."""

_PACED_FROM_S = 0.1
"""Who asks for shorter ticks gets them, and pays for them."""

_LONGEST_PAUSE_S = 0.5
"""The share is exceeded rather than that somebody who watches waits longer."""


class Scribe:
    """Owns the recording's file. Everything that is to be written is left here, or comes from the
    units' book and the probes at each tick.

    ``start`` begins a thread of its own; without it, and after ``end``, the calling thread may
    ``write`` instead. A tick comes every ``tick_s``, later where ticks of 100 ms and
    more take over 0.5 % of the process's CPU time, but at least twice a second (or every
    ``tick_s``, if that is longer). Where the file cannot grow any more, the recording ends and the
    run goes on.
    """

    def __init__(
        self, now_ns: Callable[[], int], crew: ProbeCrew, book: UnitBook, tick_s: float
    ) -> None:
        self._now_ns = now_ns
        self._crew = crew
        self._book = book
        self._tick_s = tick_s
        self.at_tick: list[Callable[[], object]] = []
        """Called in the recorder thread before each tick."""
        self._log: deque[LogEntry] = deque()
        self._entries: deque[Entry] = deque()
        self._thread: threading.Thread | None = None
        self._over = threading.Event()
        # Not an event: a signal's handler may come, and call, between any two steps of a call.
        self._wake: SimpleQueue[None] = SimpleQueue()
        self._waiting: deque[threading.Event] = deque()
        self._cpu_ns = 0
        self._captures_cpu_ns = 0
        self._start_ns = 0  # in CPU time of the process
        self._account_due_ns = 0
        self._lost_ticks = 0
        self._dropped = 0
        self._dropped_kinds: set[str] = set()
        self._written_total: tuple[str, int] | None = None
        self._described: Mapping[str, Any] | None = None

    # -- what is to be written -------------------------------------------------------------------

    def open(self, writer: RecordingWriter) -> None:
        """Write into this file from now on."""
        self._writer = writer

    @property
    def path(self) -> Path:
        """The recording's file."""
        return self._writer.path

    def leave(self, entry: Entry) -> None:
        """Have something written at the next tick; callable from any thread."""
        self._entries.append(entry)

    def log(self, level: LogLevel, source: str, message: str) -> None:
        """Leave a line in the recording; callable from any thread."""
        self._log.append(LogEntry(self._now_ns(), level, source, message))

    def describe(self, document: Mapping[str, Any]) -> None:
        """Replace what the recording says about the document."""
        self._described = document

    # -- the thread ------------------------------------------------------------------------------

    @property
    def thread_id(self) -> int | None:
        """The recorder thread, by ``threading.get_ident()``."""
        return self._thread.ident if self._thread is not None else None

    def start(self) -> None:
        """Begin to write at every tick."""
        self._start_ns = time.process_time_ns()
        self._thread = thread = threading.Thread(
            target=self._run, name="page87-recorder", daemon=True
        )
        thread.start()

    def end(self) -> None:
        """End the thread; what is left is written by ``write_last``."""
        self._over.set()
        self._wake.put(None)
        if self._thread is not None:
            self._thread.join()

    def flush(self) -> None:
        """Let the recorder thread write what there is now, and wait for it.

        Where that thread has ended, or is about to, it returns without: what is left is written at
        the end.
        """
        done = threading.Event()
        self._waiting.append(done)
        self._wake.put(None)
        while not done.wait(self._tick_s) and self._thread is not None:
            if not self._thread.is_alive():
                return

    def _run(self) -> None:
        while not self._over.is_set():
            self._sleep()
            # Taken before the tick: who comes during it waits for the next.
            waiting = [self._waiting.popleft() for _ in range(len(self._waiting))]
            if not self._over.is_set():
                self.write()
            for done in waiting:
                done.set()

    def _sleep(self) -> None:
        """Until the next tick is due, or somebody wants one now."""
        with contextlib.suppress(Empty):
            self._wake.get(timeout=self._pause_s())
            while True:  # one tick serves all who wait
                self._wake.get_nowait()

    def _pause_s(self) -> float:
        """How long until the next tick."""
        if self._tick_s < _PACED_FROM_S:
            return self._tick_s
        earned_ns = time.process_time_ns() - self._start_ns
        spent_ns = self._cpu_ns - self._captures_cpu_ns - _ALLOWANCE_NS
        owed_s = (spent_ns / _SHARE - earned_ns) / 1e9
        return max(self._tick_s, min(owed_s, _LONGEST_PAUSE_S))

    # -- writing ---------------------------------------------------------------------------------

    def write(self) -> None:
        """One tick."""
        if self._lost_ticks:
            self._lost_ticks += 1
            self._book.changes()  # nobody will write them: they must not pile up
            self._log.clear()
            self._entries.clear()
            return
        self._save(self._write_tick)

    def write_last(self) -> None:
        """The last pictures, once the probes have stopped."""
        self._save(self._write_end)

    def write_entries(self) -> None:
        """Only what was left with ``leave``: nothing is measured for it."""
        self._save(self._write_entries)

    def close(self, outcome: Outcome) -> None:
        """Write how the run ended and leave one file, whatever cuts off the last of the log.

        Raises ``sqlite3.Error``.
        """
        with contextlib.ExitStack() as then:
            then.callback(self._writer.close)
            then.callback(self._writer.put_outcome, outcome)
            if not self._lost_ticks:
                self._write_log()
                self._write_account()

    def _save(self, write: Callable[[], None]) -> None:
        """Write and commit; where the file cannot grow, the recording ends here."""
        if self._lost_ticks:
            return
        start = time.thread_time_ns()
        try:
            write()
            self._writer.commit()
        except Exception as problem:  # noqa: BLE001 - the run must outlive whatever we meet
            if is_about_the_file(problem):
                self._cut_off(problem)
            else:
                self._drop(problem)
        self._cpu_ns += time.thread_time_ns() - start

    def _write_tick(self) -> None:
        start = time.thread_time_ns()
        for act in self.at_tick:
            self._keep(act)
        self._captures_cpu_ns += time.thread_time_ns() - start
        t_ns = self._now_ns()
        self._keep(self._write_units)
        self._keep(self._crew.tick, self._writer, t_ns)
        self._write_entries()
        self._write_log()
        if t_ns >= self._account_due_ns:
            self._account_due_ns = t_ns + _ACCOUNT_EVERY_NS
            self._write_account()

    def _write_end(self) -> None:
        self._keep(self._write_units)
        self._keep(self._crew.finish, self._writer, self._now_ns())
        self._write_entries()
        self._write_log()

    def _write_entries(self) -> None:
        while self._entries:
            self._keep(self._entries.popleft(), self._writer)

    def _write_log(self) -> None:
        while self._log:
            entry = self._log.popleft()
            self._keep(self._writer.add_log, entry.t_ns, entry.level, entry.source, entry.message)

    def _write_account(self) -> None:
        """What each probe and the recorder itself have cost so far."""
        own = ProbeStatus("recorder", "on", "", self._cpu_ns, self._lost_ticks + self._dropped)
        for status in (*self._crew.statuses(), own):
            self._keep(self._writer.put_probes, [status])

    def _write_units(self) -> None:
        rows: dict[int, UnitRow] = {}
        withdrawn: set[int] = set()
        for change in self._book.changes():
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
        if self._book.expected != self._written_total and self._book.expected is not None:
            kind, total = self._book.expected
            self._written_total = self._book.expected
            self._writer.put_meta({"unit_total": {"kind": kind, "total": total}})

    def _keep(self, write: Callable[..., object], *args: Any) -> None:
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

    def _cut_off(self, problem: Exception) -> None:
        """The file cannot grow: say so with the space kept for it, and let the run go on."""
        self._lost_ticks = 1
        t_ns = self._now_ns()
        text = f"The recording ends here ({problem}); the run itself went on."
        try:
            self._writer.rollback()
            self._writer.release_reserve()
            self._writer.add_log(t_ns, "error", "recorder", text)
            self._writer.put_meta({"cut_off": {"t_ns": t_ns, "reason": str(problem)}})
            self._writer.commit()
        except Exception:  # noqa: BLE001 - not even the last word: say it on the screen
            complain(f"{self.path} ends here ({problem}); the run goes on.")
        self._crew.stop()

    def abandon(self) -> None:
        """In a forked child: never touch the parent's file."""
        self._writer.abandon()


def guarded(
    call: Callable[[], object], log: Callable[[LogLevel, str, str], None]
) -> BaseException | None:
    """Take a step of the end; where it fails the log says so, and the next can be taken.

    What must go on to the caller once the recording is complete comes back: ``SystemExit``,
    ``KeyboardInterrupt``, and whatever else is no ``Exception``.
    """
    try:
        call()
    except BaseException as problem:  # noqa: BLE001 - the recording has still to be completed
        text = f"{type(problem).__name__}: {message_of(problem)}".removesuffix(": ")
        log("error", "recorder", f"a step at the end of the run failed ({text})")
        return None if isinstance(problem, Exception) else problem
    return None


def complain(message: str) -> None:
    """The last resort, where the recording itself cannot take the message."""
    print(f"page87: {message}", file=sys.stderr)  # noqa: T201
