"""Bytes a unit costs, read twice: from what Page 87 says, and from a run without Page 87."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import mean, median
from typing import Any

from diagnostics.recording.reader import RecordingReader

_WARM = 2
"""First units, which fill caches."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A run under Page 87: its ``--json``, and its recording."""

    result: dict[str, Any]
    recording: Path

    @property
    def units(self) -> int:
        count: int = self.result["units"]["count"]
        return count

    def resident_around(self, t_s: float) -> list[int]:
        """The resident set at the last sample of the process before ``t_s`` and the first after."""
        with RecordingReader(self.recording) as reader:
            samples = reader.process()
        before = [sample.rss for sample in samples if sample.t_ns <= t_s * 1e9]
        after = [sample.rss for sample in samples if sample.t_ns > t_s * 1e9]
        return [*before[-1:], *after[:1]]

    def given_back(self, *names: str) -> int:
        """What these steps of the settlement took off the resident set."""
        steps = [step for step in self.result["settlement"] if step["step"] in names]
        assert len(steps) == len(names), self.result["settlement"]
        return sum(step["rss_before"] - step["rss_after"] for step in steps)


@dataclass(frozen=True, slots=True)
class Bare:
    """A run without Page 87: one gauge before the first unit, after each, and at the end."""

    start: int
    units: list[int]
    end: int
    collected: int
    trimmed: int
    objects: int


@dataclass(frozen=True, slots=True)
class Measure:
    """``gauge`` is what the bare run reads (see ``bare/diagnostics``)."""

    gauge: str
    recorded: Callable[[Recorded], float]
    bare: Callable[[Bare], float]


def _slope(values: Sequence[int]) -> float:
    """Bytes a unit between the end of the warm-up and the last unit but one, which has let go of
    what it only used."""
    return (values[-2] - values[_WARM - 1]) / (len(values) - 1 - _WARM)


def _rise(values: Sequence[int]) -> float:
    """The same where single values jump: the median of the slopes between all pairs."""
    settled = list(enumerate(values))[_WARM:]
    return float(median((b - a) / (n - m) for (m, a), (n, b) in combinations(settled, 2)))


def _retention(run: Recorded) -> float:
    retained: list[int] = [unit["retained_bytes"] for unit in run.result["retention"]]
    return mean(retained[_WARM:-1])


def _opened(run: Recorded) -> float:
    return float(run.result["retention"][0]["retained_bytes"])


def _growth(run: Recorded) -> float:
    with RecordingReader(run.recording) as reader:
        peaks = sorted(reader.unit_peaks(), key=lambda peak: peak.index)
    return _rise([peak.rss_end for peak in peaks])


def _band(run: Recorded) -> float:
    return float(run.result["shape"]["bytes_per_unit"])


def _children(run: Recorded) -> float:
    with RecordingReader(run.recording) as reader:
        return max(row.children or 0 for row in reader.ledger()) / run.units


def _kept(run: Recorded) -> float:
    last, first = run.result["settlement"][-1], run.result["process"]["rss_start_bytes"]
    with RecordingReader(run.recording) as reader:
        totals = reader.heap_totals()
    own = totals[-1].engine_bytes - totals[0].engine_bytes
    return float(last["rss_after"] - first - own) / run.units


RETENTION = Measure("python", _retention, lambda run: _slope(run.units))
"""Live Python bytes that a unit leaves."""

GROWTH = Measure("rss", _growth, lambda run: _rise(run.units))
"""What a unit adds to the resident set."""

BAND = Measure("python", _band, lambda run: _slope(run.units[:100]))
"""Live Python bytes of a unit in a cache that takes more than 100."""

OPENED = Measure("python", _opened, lambda run: run.units[0] - run.start)
"""Live Python bytes that the first unit leaves, since it opens the document."""

PEAK = Measure(
    "python peak",
    lambda run: float(run.result["units"]["peak_bytes_max"]["bytes"]),
    lambda run: max(run.units),
)
"""What the dearest unit needed at one time."""

CHILDREN = Measure("children", _children, lambda run: run.units[-1] / len(run.units))
"""What a unit adds to the child processes."""

COLLECTED = Measure(
    "rss",
    lambda run: run.given_back("collection", "malloc_trim") / run.units,
    lambda run: (run.end - run.trimmed) / len(run.units),
)
"""What a collection at the end gives back, for each unit; some of it by way of malloc."""

TRIMMED = Measure(
    "rss",
    lambda run: run.given_back("malloc_trim") / run.units,
    lambda run: (run.collected - run.trimmed) / len(run.units),
)
"""What ``malloc_trim`` at the end gives back, for each unit."""

KEPT = Measure("rss", _kept, lambda run: (run.trimmed - run.start) / len(run.units))
"""What stays in the process when all was let go, without Page 87's own tables, for each unit."""
