"""A whole run in numbers: for the command line, for programs, and for the first screen.

Standard library only, so that a run on the command line ends without waiting for pandas.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields, replace
from heapq import nlargest
from operator import attrgetter
from pathlib import Path
from typing import Any

from diagnostics.analysis.explanation import explain, explanation_json
from diagnostics.analysis.gc_account import GcAccount
from diagnostics.analysis.heap_changes import site_changes
from diagnostics.analysis.object_types import type_growth
from diagnostics.analysis.peak import highest_rss
from diagnostics.analysis.retention import UnitRetention
from diagnostics.analysis.summary_model import (
    CostInfo,
    ErrorInfo,
    Failure,
    GcInfo,
    LineInfo,
    OutcomeInfo,
    ProbeInfo,
    ProcessInfo,
    RecordingInfo,
    SiteInfo,
    Summary,
    TypeInfo,
    UnitPeakInfo,
    UnitsInfo,
    WarningInfo,
)
from diagnostics.analysis.summary_text import summary_text
from diagnostics.analysis.suspects import cut_off
from diagnostics.analysis.units import error_text
from diagnostics.analysis.whole_run import WholeRun
from diagnostics.recording.model import HeapTotal, Outcome, ProbeStatus, Site, UnitPeak
from diagnostics.recording.reader import FrameState, RecordingReader

__all__ = ["FORMAT", "Summary", "recording_bytes", "summarise", "summary_json", "summary_text"]

FORMAT = 1
"""Raised when a key of the JSON form goes or changes its meaning; new keys do not raise it."""

_NS = 1e9
_SITES = 20
_FAILURES = 100
_PEAKS = 5
_RETENTION_KEYS = tuple(field.name for field in fields(UnitRetention))
_retention_values = attrgetter(*_RETENTION_KEYS)


def summarise(reader: RecordingReader) -> Summary:
    """The run in ``reader``, finished or not. Raises ``RecordingError`` on a damaged file."""
    meta = reader.meta()
    outcome = reader.outcome()
    totals = reader.heap_totals()
    probes = reader.probes()
    run = WholeRun.of(reader)
    at_peak, at_end = _heap_at_peak_and_end(reader)
    sites = reader.sites()
    process = _process(reader, run.peaks, totals)
    return Summary(
        recording=RecordingInfo(
            path=str(reader.path),
            bytes=recording_bytes(reader.path),
            version=reader.version,
            name=_text(meta, "name") or reader.path.stem,
            started_at=_text(meta, "started_at") or None,
        ),
        command=_text(meta, "command"),
        document=_mapping(meta, "document") or None,
        outcome=_outcome(outcome),
        units=_units(run, meta),
        process=process,
        gc=_gc(reader, outcome.t_ns),
        sites=_largest(at_end, sites),
        sites_at_peak=_largest(at_peak, sites),
        retention=run.births.retention(),
        shape=run.shape,
        types=[TypeInfo(row.name, row.count, row.growth) for row in type_growth(reader)],
        lines=[
            LineInfo(
                row.function,
                row.file,
                row.line,
                row.source.rstrip(),
                row.rss,
                row.increment,
                row.hits,
            )
            for row in reader.line_profile()
        ],
        probes=[
            ProbeInfo(row.name, row.state, row.detail, row.cost_ns / _NS, row.dropped)
            for row in probes
        ],
        cost=_cost(reader.path, meta, probes, totals, process.cpu_s),
        warnings=[
            WarningInfo(entry.t_ns / _NS, entry.level, entry.source, entry.message)
            for entry in reader.log()
            if entry.level != "info"
        ]
        + [
            WarningInfo(capture.t_ns / _NS, "warning", "captures", how_far)
            for capture, how_far in cut_off(reader)
        ],
        explanation=explain(reader, run, process.rss_peak_bytes),
    )


def summary_json(summary: Summary) -> dict[str, Any]:
    """The summary as JSON can hold it; its keys are a contract (docs/json.md)."""
    # ``asdict`` would copy each value of each unit deeply.
    numbers = asdict(replace(summary, retention=[]))
    numbers["retention"] = [
        dict(zip(_RETENTION_KEYS, _retention_values(unit), strict=True))
        for unit in summary.retention
    ]
    del numbers["explanation"]  # has a form of its own
    return {"format": FORMAT} | numbers | explanation_json(summary.explanation)


def recording_bytes(path: Path) -> int:
    """The size of a recording on disk, its write-ahead log included."""
    parts = (path, path.with_name(f"{path.name}-wal"))
    return sum(part.stat().st_size for part in parts if part.exists())


def _outcome(outcome: Outcome) -> OutcomeInfo:
    error = None
    if outcome.error_type is not None:
        error = ErrorInfo(outcome.error_type, outcome.error_message or "")
    return OutcomeInfo(
        state=outcome.state,
        reason=outcome.reason,
        signal=outcome.signal,
        exit_status=outcome.exit_status,
        last_unit=outcome.last_unit,
        error=error,
        duration_s=outcome.t_ns / _NS,
    )


def _units(run: WholeRun, meta: Mapping[str, Any]) -> UnitsInfo:
    expected = _mapping(meta, "unit_total")
    failed = [unit for unit in run.units if unit.status == "failed"]
    # ``nlargest`` keeps the order of those that are the same.
    highest = nlargest(_PEAKS, run.peaks, key=lambda peak: peak.rss_peak - peak.rss_start)
    rows = run.births.units.rows
    peaks = [
        UnitPeakInfo(
            peak.index, rows[peak.index].label, peak.rss_peak - peak.rss_start, peak.rss_peak
        )
        for peak in highest
    ]
    methods = {peak.method for peak in run.peaks}
    total = expected.get("total", _mapping(meta, "document").get("pages"))
    return UnitsInfo(
        count=len(run.units),
        kind=run.units[0].kind if run.units else str(expected.get("kind", "unit")),
        total=total if isinstance(total, int) else None,
        failed=len(failed),
        failures=[Failure(u.index, u.label, error_text(u) or "") for u in failed[:_FAILURES]],
        peak_bytes_max=peaks[0] if peaks else None,
        peaks=peaks,
        peak_method=", ".join(sorted(methods)) or None,
    )


def _process(
    reader: RecordingReader, peaks: Iterable[UnitPeak], totals: list[HeapTotal]
) -> ProcessInfo:
    samples = reader.process()
    first, last = (samples[0], samples[-1]) if samples else (None, None)
    uss = [sample.uss for sample in samples if sample.uss is not None]
    pss = [sample.pss for sample in samples if sample.pss is not None]
    return ProcessInfo(
        rss_start_bytes=first.rss if first else None,
        rss_peak_bytes=highest_rss(samples, peaks, reader.ledger()),
        rss_end_bytes=last.rss if last else None,
        uss_peak_bytes=max(uss, default=None),
        uss_end_bytes=uss[-1] if uss else None,
        pss_end_bytes=pss[-1] if pss else None,
        heap_peak_bytes=max((total.bytes for total in totals), default=None),
        heap_end_bytes=totals[-1].bytes if totals else None,
        cpu_s=(last.cpu_ns - first.cpu_ns) / _NS if first and last else None,
        major_faults=last.major_faults - first.major_faults if first and last else None,
    )


def _gc(reader: RecordingReader, duration_ns: int) -> GcInfo:
    account = GcAccount()
    account.feed(reader)
    generations = account.generations
    return GcInfo(
        collections={str(number): totals.count for number, totals in generations.items()},
        pause_total_s=account.pause_total_ns / _NS,
        pause_max_s=account.pause_max_ns / _NS,
        share=account.share(duration_ns),
        collected=sum(totals.collected for totals in generations.values()),
        uncollectable=sum(totals.uncollectable for totals in generations.values()),
        own_collections=account.own.count,
    )


def _heap_at_peak_and_end(reader: RecordingReader) -> tuple[FrameState | None, FrameState | None]:
    """The heap by site when its sum was highest (the first time), and at the last frame."""
    known: dict[int, int] = {}
    total = highest = 0
    peak_ns = last_ns = -1
    for frame in reader.changes("heap", after_ns=-1):
        total += sum(site_changes(frame, known).values())
        last_ns = frame.t_ns
        if total > highest:
            highest, peak_ns = total, frame.t_ns
    return reader.state_at("heap", peak_ns), reader.state_at("heap", last_ns)


def _largest(frame: FrameState | None, sites: Mapping[int, Site]) -> list[SiteInfo]:
    """The lines with the most bytes; stacks that end in the same line count together."""
    found: dict[tuple[str, int, str], tuple[int, int]] = {}
    for number, (size, blocks) in frame.values.items() if frame else ():
        site = sites.get(number)
        if site is None:  # 0: the engine's sum of what has no site of its own
            continue
        place = (site.file, site.line, site.function)
        before = found.get(place, (0, 0))
        found[place] = (before[0] + size, before[1] + blocks)
    largest = sorted(found.items(), key=lambda entry: (-entry[1][0], entry[0]))
    return [SiteInfo(*place, *figures) for place, figures in largest[:_SITES]]


def _cost(
    path: Path,
    meta: Mapping[str, Any],
    probes: list[ProbeStatus],
    totals: list[HeapTotal],
    process_cpu_s: float | None,
) -> CostInfo:
    spent_s = sum(probe.cost_ns for probe in probes) / _NS
    sampling = _mapping(meta, "sampling")
    return CostInfo(
        recorder_cpu_s=spent_s,
        recorder_cpu_share=spent_s / process_cpu_s if process_cpu_s else None,
        recording_bytes=recording_bytes(path),
        dropped=sum(probe.dropped for probe in probes),
        engine=_text(_mapping(meta, "settings"), "engine"),
        engine_bytes_max=max((total.engine_bytes for total in totals), default=None),
        sampling_bytes=sampling.get("bytes"),
        live_samples=sampling.get("live_samples"),
    )


def _mapping(meta: Mapping[str, Any], key: str) -> dict[str, Any]:
    """A part of the meta data; empty where it is missing or of another shape."""
    value = meta.get(key)
    return value if isinstance(value, dict) else {}


def _text(meta: Mapping[str, Any], key: str) -> str:
    value = meta.get(key)
    return value if isinstance(value, str) else ""
