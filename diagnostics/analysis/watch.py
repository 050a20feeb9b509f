"""Everything that a screen shows of one recording, brought up to date together."""

from __future__ import annotations

from pathlib import Path

from diagnostics.analysis.gc_account import GcAccount
from diagnostics.analysis.heatmap import HeatTable, SiteHeat
from diagnostics.analysis.series import LiveSeries
from diagnostics.analysis.sites import Grouping
from diagnostics.analysis.units import LiveUnits
from diagnostics.recording.model import Outcome
from diagnostics.recording.reader import RecordingReader

_SCREEN_COLUMNS = 600


class Watch:
    """The accumulators of one recording: the same for one that grows and one that is complete.

    ``update`` reads what is new since the last time, with one short-lived reader, so its cost does
    not depend on how long the run has been going on.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.series = LiveSeries()
        self.units = LiveUnits()
        self.collector = GcAccount()
        self._heats: dict[Grouping, SiteHeat] = {}
        self.outcome: Outcome
        self.update()

    @property
    def is_running(self) -> bool:
        return self.outcome.state == "running"

    def update(self) -> None:
        """Take in what the recording has gained. Raises ``RecordingError`` on a damaged file."""
        with RecordingReader(self.path) as reader:
            self.outcome = reader.outcome()
            self.series.feed(reader)
            self.units.feed(reader)
            self.collector.feed(reader)
            for heat in self._heats.values():
                heat.feed(reader)

    def heat(self, group: Grouping = "line", rows: int = 30) -> HeatTable:
        """The heat table by ``group``; the first call for a grouping reads the whole series."""
        if group not in self._heats:
            self._heats[group] = SiteHeat(group, columns=_SCREEN_COLUMNS)
            with RecordingReader(self.path) as reader:
                self._heats[group].feed(reader)
        return self._heats[group].table(self.outcome.t_ns, rows, live=self.is_running)
