"""The end of a recording: every step is taken, whatever the steps before it raise."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from diagnostics.captures import Captures
from diagnostics.outcomes import outcome_of
from diagnostics.probes.crew import ProbeCrew
from diagnostics.recording.model import LogLevel, Outcome, SettlementStep
from diagnostics.recording.texts import message_of
from diagnostics.recording.writer import RecordingWriter
from diagnostics.scribe import Scribe, complain, guarded
from diagnostics.settlement import Release, Settlement, without_collections
from diagnostics.units import UnitBook

if TYPE_CHECKING:  # importing it takes what code that only carries unit marks must not pay for
    from diagnostics.probes.standard import ProbeSet

Log = Callable[[LogLevel, str, str], None]


class Ending:
    """Ends one recording, and takes its settlements.

    ``outcome`` is None until the recording ends.
    """

    def __init__(
        self,
        now_ns: Callable[[], int],
        log: Log,
        scribe: Scribe,
        book: UnitBook,
        probes: ProbeSet,
        crew: ProbeCrew,
        captures: Captures | None,
    ) -> None:
        self._now_ns = now_ns
        self._log = log
        self._scribe = scribe
        self._book = book
        self._probes = probes
        self._crew = crew
        self._captures = captures
        self._next_step = 1
        self._raised: list[BaseException] = []
        self.outcome: Outcome | None = None

    def end(self, error: BaseException | None, release: Release | None, settles: bool) -> None:
        """Complete the recording; ``error`` is what ended the run.

        ``release`` is called in the settlement, where there is one, else when the recording is
        complete. What must go on to the caller (``KeyboardInterrupt``, ``SystemExit``) is raised
        then.
        """
        self.outcome = outcome_of(error, self._now_ns(), self._book.last_index)
        try:
            # What the end itself allocates must not set off a collection: what the program has
            # left to its collector is the settlement's to measure.
            with without_collections() if settles else nullcontext():
                self._last_pictures(error, settles)
                if settles:
                    self._take(lambda: self._let_go(release))
            self.outcome = replace(self.outcome, t_ns=self._now_ns())
            self._close(self.outcome)
            if release is not None and not settles:
                self._take(release, lambda _level, _source, text: complain(text))
        finally:
            if self._captures is not None:
                self._captures.end_signal()  # until here it would have ended the program
        raised, self._raised = self._raised, []
        if raised:
            raise raised.pop(0)

    def settle(self) -> list[SettlementStep]:
        """Collect the garbage and trim malloc while the recording goes on; the recorder thread
        keeps the steps."""
        steps = list(self._settlement().steps())
        self._next_step += len(steps)
        self._scribe.leave(lambda writer: writer.put_settlement(steps))
        self._scribe.flush()
        return steps

    def _take(self, step: Callable[[], object], log: Log | None = None) -> None:
        problem = guarded(step, log or self._log)
        if problem is not None:
            self._raised.append(problem)

    def _last_pictures(self, error: BaseException | None, settles: bool) -> None:
        """They show what the run holds at its end."""
        self._take(lambda: self._book.close(error))
        if self._captures is not None:
            self._take(self._captures.take_last)
        if settles and self._probes.engine is not None:
            self._take(self._probes.engine.keep_counting)
        self._take(self._scribe.end)
        self._take(self._scribe.end)  # an interrupt may have ended the wait for the other writer
        self._take(self._crew.stop)  # after it: a tick asks the probes
        self._take(self._scribe.write_last)
        self._take(self._scribe.write_entries)  # of which an interrupt may have left some

    def _let_go(self, release: Release | None) -> None:
        """The settlement at the end of a run. The recorder thread is gone, so this one writes."""
        let_go = functools.partial(self._take, release) if release is not None else None
        try:
            for step in self._settlement().steps(let_go):
                self._write(functools.partial(_put_step, step))
            reading = self._probes.ledger.look()  # where what is left lies
            if reading is not None:
                self._write(lambda writer: writer.put_ledger(reading))
        finally:
            if self._probes.engine is not None:
                self._probes.engine.stop_counting()

    def _write(self, entry: Callable[[RecordingWriter], None]) -> None:
        self._scribe.leave(entry)
        self._scribe.write_entries()

    def _settlement(self) -> Settlement:
        return Settlement(
            self._now_ns,
            self._live_python,
            lambda text: self._log("info", "settlement", text),
            self._next_step,
        )

    def _live_python(self) -> int | None:
        engine = self._probes.engine
        live = engine.live_bytes() if engine is not None else None
        return None if live is None else live[0]

    def _close(self, outcome: Outcome) -> None:
        try:
            self._scribe.close(outcome)
        except Exception as problem:  # noqa: BLE001 - the run has its own end, whatever ours is
            why = f"the end of {self._scribe.path} is missing ({message_of(problem)})"
            complain(f"{why}; what came before is kept.")
        except BaseException as problem:  # noqa: BLE001 - the outcome is written: it may go on
            self._raised.append(problem)


def _put_step(step: SettlementStep, writer: RecordingWriter) -> None:
    writer.put_settlement([step])
