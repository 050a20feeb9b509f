"""What a person reads in the terminal after a run."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable, Iterator

from diagnostics.analysis.cost_text import cost_in_words, losses
from diagnostics.analysis.explanation import Explanation
from diagnostics.analysis.format import (
    counted,
    format_bytes,
    format_count,
    format_seconds,
    format_share,
)
from diagnostics.analysis.kinds import Judgement
from diagnostics.analysis.ledger import line_of
from diagnostics.analysis.settlement import sentences
from diagnostics.analysis.sites import site_label
from diagnostics.analysis.summary_model import OutcomeInfo, SiteInfo, Summary
from diagnostics.analysis.verdict_text import confidence_in_words, suspect_lines, verdict_lines

_SHOWN_SITES = 5
_SHOWN_FAILURES = 5
_SHOWN_CHARACTERS = 2_000

_COLUMNS = 80
_MARGIN = "  "
_HEAD = re.compile(r"\S.{16} (?=\S)| *[+-]?[\d.]+ [kMGTP]?B  ")
"""What stays to the left of a broken line: a label of 18 columns, or a size."""
_AT_LINKS = re.compile(r" (?=[→←+] )")
_AT_WORDS = re.compile(r" (?![^()]*\))")
"""Where a line may break: at the links of a chain and the terms of a sum, then between words, but
not inside parentheses."""
_LONG = 60  # columns: a part of a line that is longer may break itself

_CONTROLS = {
    code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"
}


def summary_text(summary: Summary, *, details: bool = False) -> str:
    """A run as text for a terminal: how it ended, the verdict, memory, peaks and the top lines.

    Of a healthy run the verdict is one line, and neither peaks nor lines of code are listed.
    ``details`` lists all of it, and adds the ledger and the settlement.
    """
    explanation = summary.explanation
    everything = details or not _is_healthy(explanation.judgement)
    blocks = [
        headline(summary),
        _fitted(_verdict(explanation.judgement, everything)),
        _fitted(_memory(summary)),
        _peaks(summary) if everything else (),
        _failures(summary),
        _fitted(_sites(summary)) if everything else (),
        _fitted(_line_profile(summary)) if details or summary.lines else (),
        _fitted(_ledger(explanation)) if details else (),
        _fitted(_settlement(explanation)) if details else (),
        _fitted(_problems(summary)),
        _recording(summary),
    ]
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


def _is_healthy(judgement: Judgement) -> bool:
    """Whether nothing is wrong, and the evidence is good enough to say so."""
    return judgement.main.number == 0 and confidence_in_words(judgement.confidence) != "not sure"


def _verdict(judgement: Judgement, everything: bool) -> Iterator[str]:
    lines = verdict_lines(judgement)
    if not everything:
        yield next(lines)
        return
    yield from lines
    if not _is_healthy(judgement):  # what a healthy run keeps is nothing to be suspected of
        yield from suspect_lines(judgement)


def _ledger(explanation: Explanation) -> Iterator[str]:
    peak, end = explanation.at_peak, explanation.at_end
    if peak is None or end is None:
        return
    yield "What the resident set is made of"
    if peak.t_ns != end.t_ns:
        yield f"  at its peak     {line_of(peak)}"
    if explanation.missed:
        yield f"    {explanation.missed}"
    yield f"  at the end      {line_of(end)}"
    if end.note:
        yield f"  {end.note}"


def _settlement(explanation: Explanation) -> Iterator[str]:
    if explanation.settlement is not None:
        yield "Letting go at the end"
        yield from (f"  {sentence}" for sentence in sentences(explanation.settlement))


def _memory(summary: Summary) -> Iterator[str]:
    process, gc = summary.process, summary.gc
    if process.rss_end_bytes is not None and process.rss_start_bytes is not None:
        growth = process.rss_end_bytes - process.rss_start_bytes
        yield (
            f"Memory (RSS)      from {format_bytes(process.rss_start_bytes)} "
            f"to {format_bytes(process.rss_end_bytes)} ({format_bytes(growth, signed=True)}), "
            f"{format_bytes(process.rss_peak_bytes or 0)} at its peak"
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
        f"{format_seconds(gc.pause_total_s)} ({format_share(gc.share)} of the run), "
        f"longest {format_seconds(gc.pause_max_s)}"
    )


def _peaks(summary: Summary) -> Iterator[str]:
    units = summary.units
    if units.peaks:
        yield f"Highest peaks, above where the {units.kind} began"
        for peak in units.peaks:
            yield f"  {format_bytes(peak.bytes, signed=True):>10}  {peak.label}"


def _failures(summary: Summary) -> Iterator[str]:
    units = summary.units
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


def _line_profile(summary: Summary) -> Iterator[str]:
    """The lines of the functions that were named which added most, or how to get a line profile."""
    ran = [line for line in summary.lines if line.hits is not None]
    if not ran:
        yield f"Line profile      {_no_profile(summary)}"
        return
    yield "Line profile: what lines added to the process's memory, over all their runs"
    ran.sort(key=lambda line: -(line.increment_bytes or 0))
    for line in ran[:_SHOWN_SITES]:
        size = format_bytes(line.increment_bytes or 0, signed=True)
        where = site_label(line.file, line.line, line.function.rpartition(":")[2])
        yield f"  {size:>10}  {where} ({counted(line.hits or 0, 'run')})"


def _no_profile(summary: Summary) -> str:
    if summary.lines:
        return "the functions that were named never ran"
    probe = next((probe for probe in summary.probes if probe.name == "lines"), None)
    if probe is not None and probe.state != "on":
        return f"none: {probe.detail}"
    return "none; page87 run --lines script.py:function follows a function line by line"


def _problems(summary: Summary) -> Iterator[str]:
    for probe in summary.probes:
        if probe.state in ("missing", "failed"):
            yield f"Probe {probe.name} {probe.state}: {probe.detail}"
    for warning in summary.warnings:
        yield f"{warning.level.capitalize()}: {_shortened(warning.message)}"


def _recording(summary: Summary) -> Iterator[str]:
    cost = summary.cost
    yield f"Recording         {summary.recording.path}"
    yield from _fitted(
        [
            f"{'':18}{format_bytes(cost.recording_bytes)} on disk",
            f"Recording took    {cost_in_words(cost)}",
            *(f"{'Lost':18}{sentence}" for sentence in losses(summary.probes, cost)),
        ]
    )


def _signal_name(number: int | None) -> str:
    if number is None:
        return "a signal"
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _fitted(lines: Iterable[str]) -> Iterator[str]:
    """The lines, broken where they are too long for a terminal; rows of code stay rows."""
    for text in lines:
        for line in text.split("\n"):
            yield from _broken(line)


def _broken(line: str) -> Iterator[str]:
    """A line in pieces of at most 80 columns, as far as its words and paths allow it."""
    left = _HEAD.match(line)
    head = left.end() if left else 0
    indent = line[: len(line) - len(line.lstrip())]
    margin = " " * head if head else indent + _MARGIN
    first, *others = _parts(line[head:])
    piece = line[:head] + first
    for part in others:
        if len(piece) + 1 + len(part) > _COLUMNS and piece.strip():
            yield piece.rstrip()
            piece = margin + part
        else:
            piece = f"{piece} {part}"
    yield piece


def _parts(text: str) -> Iterator[str]:
    """A text in parts between which it may break; one space stood between each two."""
    for part in _AT_LINKS.split(text):
        yield from _AT_WORDS.split(part) if len(part) > _LONG else (part,)
