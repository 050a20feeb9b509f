"""What the summary and the verdict both go by: read from a recording and worked out once.

Standard library only, so that a run on the command line ends without waiting for pandas.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from diagnostics.analysis.retention import Births, EndedUnit
from diagnostics.analysis.settlement import final_settlement
from diagnostics.analysis.shape import Shape, shape_of_births
from diagnostics.recording.model import SettlementStep, UnitPeak, UnitRow
from diagnostics.recording.reader import RecordingReader


@dataclass(frozen=True, slots=True)
class WholeRun:
    """A run from its start to where its recording ends.

    ``units`` are all that began, ``peaks`` those that are known of them, both in order; ``ended``
    are the units that ``births.ended()`` gives. ``steps`` are those of the settlement that the run
    ended with, empty without one.
    """

    births: Births
    units: list[UnitRow]
    peaks: list[UnitPeak]
    ended: list[EndedUnit]
    shape: Shape
    steps: tuple[SettlementStep, ...]

    @classmethod
    def of(cls, reader: RecordingReader) -> Self:
        """Raises ``RecordingError`` on a damaged file."""
        births = Births.of(reader)
        units, ended = births.units.in_order(), births.ended()
        return cls(
            births=births,
            units=units,
            # A unit may have begun since.
            peaks=[peak for peak in reader.unit_peaks() if peak.index in births.units.rows],
            ended=ended,
            shape=shape_of_births(births, ended),
            steps=final_settlement(reader.settlement(), units),
        )
