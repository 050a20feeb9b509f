"""The highest resident set of a run, by all who read it. Standard library only."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from diagnostics.recording.model import LedgerReading, ProcessSample, UnitPeak


def highest_rss(
    samples: Iterable[ProcessSample], peaks: Iterable[UnitPeak], ledger: Iterable[LedgerReading]
) -> int | None:
    """The highest resident set that anybody read, in bytes; None where nobody did.

    The process probe, each unit's high-water mark and the ledger look at moments of their own, so
    each may have seen more than the others.
    """
    of_samples = (sample.rss for sample in samples)
    of_units = (peak.rss_peak for peak in peaks)
    of_ledger = (reading.rss for reading in ledger)
    return max(chain(of_samples, of_units, of_ledger), default=None)
