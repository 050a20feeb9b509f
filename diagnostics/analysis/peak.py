"""The highest resident set of a run, by all who read it. Standard library only."""

from __future__ import annotations

from collections.abc import Iterable

from diagnostics.recording.model import UnitPeak
from diagnostics.recording.reader import RecordingReader


def highest_rss(reader: RecordingReader, peaks: Iterable[UnitPeak]) -> int | None:
    """The highest resident set that anybody read, in bytes; None where nobody did.

    ``peaks`` are those of all units of ``reader``.

    The process probe, each page's high-water mark and the ledger look at moments of their own, so
    each may have seen more than the others.
    """
    readings = [sample.rss for sample in reader.process()]
    readings += [peak.rss_peak for peak in peaks]
    readings += [reading.rss for reading in reader.ledger()]
    return max(readings, default=None)
