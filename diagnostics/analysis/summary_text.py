"""What a person reads in the terminal after a run."""

from __future__ import annotations

import signal
from collections.abc import Iterator

from diagnostics.analysis.format import (
    counted,
    format_bytes,
    format_count,
    format_seconds,
    format_share,
)
from diagnostics.analysis.sites import site_label
from diagnostics.analysis.summary_model import OutcomeInfo, SiteInfo, Summary

_SHOWN_SITES = 5
_SHOWN_FAILURES = 5
_SHOWN_CHARACTERS = 2_000

_CONTROLS = {
    code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"
}


def summary_text(summary: Summary) -> str:
    """A run in some twenty lines: how it ended first, then memory, peaks and the top lines."""
    blocks = (headline(summary), _memory(summary), _peaks(summary), _sites(summary), _end(summary))
    return printable("\n\n".join(text for block in blocks if (text := "\n".join(block))))


def printable(text: str) -> str:
    """``text`` with its control characters spelled out: a terminal would obey them."""
    return text.translate(_CONTROLS)


def _shortened(message: str) -> str:
    left_out = len(message) - _SHOWN_CHARACTERS
    if left_out <= 0:
        return message
    return f"{message[:_SHOWN_CHARACTERS]}… ({counted(left_out, 'character')} more, see --json)"


def outcome_phrase(outcome: OutcomeInfo) -> str:
    """How a run ended, in a few words: "finished", "raised ValueError", "killed by SIGKILL"."""
    if outcome.state == "killed":
        return f"killed by {_signal_name(outcome.signal)}"
    if outcome.state == "raised" and outcome.error is not None:
        return f"raised {outcome.error.type}"
    if outcome.state == "exited":
        return f"left with exit status {outcome.exit_status}"
    if outcome.state == "running":
        return "still running"
    return outcome.state


def headline(summary: Summary) -> Iterator[str]:
    document = summary.document or {}
    subject = str(document.get("name") or summary.recording.name)
    if document.get("loader"):
        subject += f" with {document['loader']}"
    units, outcome = summary.units, summary.outcome
    work = counted(units.count, units.kind)
    if units.total is not None and units.total != units.count:
        work = f"{format_count(units.count)} of {counted(units.total, units.kind)}"
    yield f"{subject}: {outcome_phrase(outcome)}, {work} in {format_seconds(outcome.duration_s)}"
    if outcome.state != "finished":
        yield outcome.reason
    if outcome.error is not None and outcome.error.message:
        yield f"{outcome.error.type}: {_shortened(outcome.error.message)}"


def _memory(summary: Summary) -> Iterator[str]:
    process, gc = summary.process, summary.gc
    if process.rss_end_bytes is not None and process.rss_start_bytes is not None:
        growth = process.rss_end_bytes - process.rss_start_bytes
        yield (
            f"Memory (RSS)      {format_bytes(process.rss_start_bytes)} at the start, "
            f"{format_bytes(process.rss_peak_bytes or 0)} at its peak, "
            f"{format_bytes(process.rss_end_bytes)} at the end "
            f"({format_bytes(growth, signed=True)})"
        )
    if process.heap_peak_bytes is not None and process.heap_end_bytes is not None:
        yield (
            f"Python heap       {format_bytes(process.heap_peak_bytes)} at its peak, "
            f"{format_bytes(process.heap_end_bytes)} at the end"
        )
    if summary.retention:
        yield f"Birth units       {summary.shape.sentence}"
    yield (
        f"Garbage collector {counted(sum(gc.collections.values()), 'collection')}, "
        f"{format_seconds(gc.pause_total_s)} in all ({format_share(gc.share)} of the run), "
        f"longest {format_seconds(gc.pause_max_s)}"
    )


def _peaks(summary: Summary) -> Iterator[str]:
    units = summary.units
    if units.peaks:
        yield f"Highest peaks, above where the {units.kind} began"
        for peak in units.peaks:
            yield f"  {format_bytes(peak.bytes, signed=True):>10}  {peak.label}"
    if units.failed:
        yield f"{counted(units.failed, units.kind)} failed"
        for failure in units.failures[:_SHOWN_FAILURES]:
            yield f"  {failure.label}: {_shortened(failure.error)}"
        if units.failed > _SHOWN_FAILURES:
            yield f"  and {format_count(units.failed - _SHOWN_FAILURES)} more"


def _sites(summary: Summary) -> Iterator[str]:
    yield from _site_list("Lines that hold most at the end", summary.sites)
    if _places(summary.sites_at_peak) != _places(summary.sites):
        yield from _site_list("Lines that held most at the heap's peak", summary.sites_at_peak)


def _site_list(title: str, sites: list[SiteInfo]) -> Iterator[str]:
    if sites:
        yield title
    for site in sites[:_SHOWN_SITES]:
        where = site_label(site.file, site.line, site.function)
        yield f"  {format_bytes(site.bytes):>10}  {where} ({counted(site.blocks, 'block')})"


def _places(sites: list[SiteInfo]) -> list[tuple[str, int]]:
    return [(site.file, site.line) for site in sites[:_SHOWN_SITES]]


def _end(summary: Summary) -> Iterator[str]:
    for probe in summary.probes:
        if probe.state in ("missing", "failed"):
            yield f"Probe {probe.name} {probe.state}: {probe.detail}"
    for warning in summary.warnings:
        yield f"{warning.level.capitalize()}: {_shortened(warning.message)}"
    cost = summary.cost
    lost = f", {counted(cost.dropped, 'measurement')} lost" if cost.dropped else ""
    yield (
        f"Recording         {summary.recording.path} ({format_bytes(cost.recording_bytes)}; "
        f"recording took {format_seconds(cost.recorder_cpu_s)} of CPU{lost})"
    )


def _signal_name(number: int | None) -> str:
    if number is None:
        return "a signal"
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
