"""Everything that a screen shows of one recording, brought up to date together."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, TypeVar

from diagnostics.analysis.address import AddressHeat, BinHeat
from diagnostics.analysis.birth import BirthHeat, BirthTable
from diagnostics.analysis.gc_account import GcAccount
from diagnostics.analysis.heatmap import HeatTable, SiteHeat
from diagnostics.analysis.ledger import LiveLedger
from diagnostics.analysis.retention import Births
from diagnostics.analysis.series import LiveSeries
from diagnostics.analysis.shape import Shape, shape_of_births
from diagnostics.analysis.sites import Grouping
from diagnostics.analysis.units import LiveUnits
from diagnostics.recording.model import Outcome
from diagnostics.recording.reader import RecordingReader

_SCREEN_COLUMNS = 600
_SCREEN_ROWS = 400


class Picture(Protocol):
    """What can be kept up to date from a recording."""

    def feed(self, reader: RecordingReader) -> None: ...


P = TypeVar("P", bound=Picture)


class Watch:
    """The accumulators of one recording: the same for one that grows and one that is complete.

    ``update`` reads what is new since the last time, with one short-lived reader, so its cost does
    not depend on how long the run has been going on. A picture is built from the beginning when it
    is asked for first, and kept up to date from then on.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.series = LiveSeries()
        self.units = LiveUnits()
        self.collector = GcAccount()
        self._pictures: dict[str, Picture] = {}
        self._shape: Shape | None = None
        self._shape_due = 0  # at that many units it is worked out again
        self.outcome: Outcome
        self.update()

    @property
    def is_running(self) -> bool:
        return self.outcome.state == "running"

    @property
    def unit_kind(self) -> str:
        """What the units of this run are: "page" where nothing is known yet."""
        units = self.units.figures()
        return units[0].kind if units else "page"

    def update(self) -> None:
        """Take in what the recording has gained. Raises ``RecordingError`` on a damaged file."""
        with RecordingReader(self.path) as reader:
            self.outcome = reader.outcome()
            self.series.feed(reader)
            self.units.feed(reader)
            self.collector.feed(reader)
            for picture in self._pictures.values():
                picture.feed(reader)

    def heat(self, group: Grouping = "line", rows: int = 30) -> HeatTable:
        """Code sites against time."""
        heat = self._picture(f"sites by {group}", SiteHeat(group, columns=_SCREEN_COLUMNS))
        return heat.table(self.outcome.t_ns, rows, live=self.is_running)

    def births(self) -> BirthTable:
        """Birth units against time; empty, with the reason, where the engine does not know them."""
        heat = self._picture("births", BirthHeat(columns=_SCREEN_COLUMNS, rows=_SCREEN_ROWS))
        return heat.table(self.outcome.t_ns, live=self.is_running)

    def ledger(self) -> LiveLedger:
        """The parts of the resident memory over time."""
        return self._picture("ledger", LiveLedger())

    def shape(self) -> Shape:
        """What the birth-unit picture shows, in one sentence.

        It compares all units with one another, so of a long run that goes on it is worked out once
        in half a percent more units, not at each refresh.
        """
        births = self._picture("retention", Births())
        count = len(births.units.rows)
        if self._shape is None or not self.is_running or count >= self._shape_due:
            self._shape = shape_of_births(births, births.ended())
            self._shape_due = count + count // 200
        return self._shape

    def addresses(self) -> HeatTable:
        """Mappings of the process against time."""
        heat = self._picture("addresses", AddressHeat(columns=_SCREEN_COLUMNS))
        return heat.table(self.outcome.t_ns)

    def bins(self, mapping: int) -> HeatTable:
        """The 64 KiB bins of one mapping against time."""
        heat = self._picture(f"bins of {mapping}", BinHeat(mapping, columns=_SCREEN_COLUMNS))
        return heat.table(self.outcome.t_ns)

    def _picture(self, name: str, fresh: P) -> P:
        """The picture called ``name``: the one that is kept, else ``fresh``, read up to now."""
        kept = self._pictures.get(name)
        if isinstance(kept, type(fresh)):
            return kept
        self._pictures[name] = fresh
        with RecordingReader(self.path) as reader:
            fresh.feed(reader)
        return fresh
