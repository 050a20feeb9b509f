"""A run in numbers, as plain data. The field names are the keys of the JSON form, but for the
explanation, which has its own (``explanation.ExplanationInfo``).

Sizes are bytes, times seconds. None means that it was not measured or not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from diagnostics.analysis.explanation import Explanation
from diagnostics.analysis.retention import UnitRetention
from diagnostics.analysis.shape import Shape
from diagnostics.recording.model import OutcomeState, ProbeState


@dataclass(frozen=True, slots=True)
class RecordingInfo:
    """The file: where it lies, its size with the write-ahead log, the version of its format."""

    path: str
    bytes: int
    version: int
    name: str
    started_at: str | None


@dataclass(frozen=True, slots=True)
class ErrorInfo:
    type: str
    message: str


@dataclass(frozen=True, slots=True)
class OutcomeInfo:
    state: OutcomeState
    reason: str
    signal: int | None
    exit_status: int | None
    last_unit: int
    error: ErrorInfo | None
    duration_s: float


@dataclass(frozen=True, slots=True)
class Failure:
    index: int
    label: str
    error: str


@dataclass(frozen=True, slots=True)
class UnitPeakInfo:
    """``bytes`` is the unit's own peak: its highest resident set above where it began.
    ``rss_bytes`` is that highest resident set itself."""

    index: int
    label: str
    bytes: int
    rss_bytes: int


@dataclass(frozen=True, slots=True)
class UnitsInfo:
    """``count`` units were begun of ``total`` expected. ``failures`` names the first 100 of the
    ``failed``; ``peaks`` the five highest, ``peak_bytes_max`` being the first of them."""

    count: int
    kind: str
    total: int | None
    failed: int
    failures: list[Failure]
    peak_bytes_max: UnitPeakInfo | None
    peaks: list[UnitPeakInfo]
    peak_method: str | None


@dataclass(frozen=True, slots=True)
class ProcessInfo:
    rss_start_bytes: int | None
    rss_peak_bytes: int | None
    rss_end_bytes: int | None
    uss_peak_bytes: int | None
    uss_end_bytes: int | None
    pss_end_bytes: int | None
    heap_peak_bytes: int | None
    heap_end_bytes: int | None
    cpu_s: float | None
    major_faults: int | None


@dataclass(frozen=True, slots=True)
class GcInfo:
    """``collections`` by generation ("0", "1", "2"), ``share`` the part of the run they took.
    ``own_collections`` were set off by the workbench itself and are in no other figure."""

    collections: dict[str, int]
    pause_total_s: float
    pause_max_s: float
    share: float
    collected: int
    uncollectable: int
    own_collections: int


@dataclass(frozen=True, slots=True)
class SiteInfo:
    """A line of code and what it allocated that was alive."""

    file: str
    line: int
    function: str
    bytes: int
    blocks: int


@dataclass(frozen=True, slots=True)
class TypeInfo:
    name: str
    count: int
    growth: int


@dataclass(frozen=True, slots=True)
class LineInfo:
    function: str
    file: str
    line: int
    source: str
    rss_bytes: int | None
    increment_bytes: int | None
    hits: int | None


@dataclass(frozen=True, slots=True)
class ProbeInfo:
    name: str
    state: ProbeState
    detail: str
    cost_s: float
    dropped: int


@dataclass(frozen=True, slots=True)
class CostInfo:
    """What recording took: CPU in any thread, the file, the heap engine's memory at its most, and
    the measurements that were lost. ``recorder_cpu_share`` is its part of the process's CPU time;
    ``sampling_bytes`` the mean distance of two picks at the end, ``live_samples`` their number."""

    recorder_cpu_s: float
    recorder_cpu_share: float | None
    recording_bytes: int
    dropped: int
    engine: str
    engine_bytes_max: int | None
    sampling_bytes: float | None
    live_samples: int | None


@dataclass(frozen=True, slots=True)
class WarningInfo:
    t_s: float
    level: str
    source: str
    message: str


@dataclass(frozen=True, slots=True)
class Summary:
    """``sites`` are the largest at the end, ``sites_at_peak`` when the Python heap was largest;
    ``types`` those that grew most. ``retention`` has every unit, in order; it is empty where the
    engine does not know the birth unit, and ``shape`` then says so."""

    recording: RecordingInfo
    command: str
    document: dict[str, Any] | None
    outcome: OutcomeInfo
    units: UnitsInfo
    process: ProcessInfo
    gc: GcInfo
    sites: list[SiteInfo]
    sites_at_peak: list[SiteInfo]
    retention: list[UnitRetention]
    shape: Shape
    types: list[TypeInfo]
    lines: list[LineInfo]
    probes: list[ProbeInfo]
    cost: CostInfo
    warnings: list[WarningInfo]
    explanation: Explanation
