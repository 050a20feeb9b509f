"""The probes of one recording, kept apart from each other's failures."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from diagnostics.errors import Page87Error
from diagnostics.probes.base import Probe, ProbeMissingError, Session
from diagnostics.recording.model import ProbeStatus
from diagnostics.recording.texts import message_of
from diagnostics.recording.writer import RecordingWriter, is_about_the_file


class ProbeCrew:
    """Calls the hooks of every probe. One that is missing or fails is taken out and reported.

    The order counts: hooks are called in the order in which the probes were started.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._on: tuple[Probe, ...] = ()
        self._stopped = False
        self._ended: list[ProbeStatus] = []

    def start(self, probes: Iterable[Probe]) -> None:
        """Start each probe.

        Raises ``Page87Error`` where a probe cannot do what the user named (a function that is not
        there); the probes started before are stopped then.
        """
        for probe in probes:
            try:
                probe.start(self._session)
            except ProbeMissingError as missing:
                self._ended.append(ProbeStatus(probe.name, "missing", str(missing)))
                self._session.log("warning", probe.name, f"not available here: {missing}")
            except Page87Error:
                self.stop()
                raise
            except Exception as error:  # noqa: BLE001 - whatever a probe does, the run goes on
                self._give_up(probe, error)
            else:
                self._on = (*self._on, probe)

    def unit_started(self, unit: int) -> None:
        if not self._stopped:
            for probe in self._on:
                self._call(probe, probe.unit_started, unit)

    def unit_ended(self, unit: int) -> None:
        if not self._stopped:
            for probe in self._on:
                self._call(probe, probe.unit_ended, unit)

    def tick(self, writer: RecordingWriter, t_ns: int) -> None:
        for probe in self._on:
            self._call(probe, probe.tick, writer, t_ns)

    def stop(self) -> None:
        """Stop measuring; safe to call twice."""
        if not self._stopped:
            self._stopped = True
            for probe in self._on:
                self._call(probe, probe.stop)

    def finish(self, writer: RecordingWriter, t_ns: int) -> None:
        for probe in self._on:
            self._call(probe, probe.tick, writer, t_ns)
            self._call(probe, probe.finish, writer, t_ns)

    def abandon(self) -> None:
        """In a forked child: undo what was hooked into the interpreter."""
        for probe in self._on:
            self._call(probe, probe.abandon)
        self._on = ()

    def statuses(self) -> list[ProbeStatus]:
        """How each probe fares, and what it has cost so far."""
        on = [
            ProbeStatus(probe.name, "on", probe.detail, probe.cost_ns, probe.dropped)
            for probe in self._on
        ]
        return self._ended + on

    def _call(self, probe: Probe, hook: Callable[..., None], *args: Any) -> None:
        try:
            hook(*args)
        except Exception as error:  # whatever a probe does, the run goes on
            if is_about_the_file(error):
                raise  # not the probe's fault
            self._give_up(probe, error)

    def _give_up(self, probe: Probe, error: Exception) -> None:
        self._on = tuple(other for other in self._on if other is not probe)
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(where.filename).name}:{where.lineno}"
        text = f"{type(error).__name__}: {message_of(error)} ({place})"
        try:
            probe.abandon()  # a probe that is out must not go on hooking into the interpreter
        except Exception as second:  # noqa: BLE001 - as above
            text += f"; it could not be unhooked either ({message_of(second)})"
        self._session.log("error", probe.name, f"the probe failed and was taken out: {text}")
        self._ended.append(ProbeStatus(probe.name, "failed", text, probe.cost_ns, probe.dropped))
