"""How far a run is, read from its recording."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from diagnostics.analysis.format import format_bytes, format_count, format_seconds
from diagnostics.recording.model import Outcome
from diagnostics.recording.reader import RecordingReader


@dataclass(frozen=True, slots=True)
class Progress:
    """One moment of a run. ``units`` were begun of ``total`` (None if nobody knows)."""

    outcome: Outcome
    units: int
    kind: str
    total: int | None
    rss: int | None

    @classmethod
    def of(cls, reader: RecordingReader) -> Self:
        """The progress of the recording in ``reader``, as of its last tick."""
        told = reader.meta().get("unit_total")
        expected = told if isinstance(told, dict) else {}
        total = expected.get("total")
        last, count = reader.last_unit(), reader.unit_count()
        sample = reader.last_process()
        return cls(
            outcome=reader.outcome(),
            units=count,
            kind=last.kind if last is not None else str(expected.get("kind", "page")),
            total=total if isinstance(total, int) else None,
            rss=sample.rss if sample is not None else None,
        )

    @property
    def share(self) -> float | None:
        """The part that is done, 0 to 1; None where the number of units is not known."""
        if not self.total:
            return None
        done = self.units if self.outcome.state == "finished" else max(0, self.units - 1)
        return min(1.0, done / self.total)

    @property
    def text(self) -> str:
        """ "page 87 of 128 · 412 MB · 12.4 s"."""
        of_total = f" of {format_count(self.total)}" if self.total else ""
        parts = [f"{self.kind} {format_count(self.units)}{of_total}"]
        if self.rss is not None:
            parts.append(format_bytes(self.rss))
        parts.append(format_seconds(self.outcome.t_ns / 1e9))
        return " · ".join(parts)
