"""The verdict for people in a terminal, and for programs. Standard library only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from textwrap import indent
from typing import Any

from diagnostics.analysis.format import (
    format_bytes,
    format_share,
    sentence_case,
    span,
)
from diagnostics.analysis.kinds.finding import Finding
from diagnostics.analysis.kinds.holding import blocks_in_words, in_words
from diagnostics.analysis.kinds.verdict import Judgement
from diagnostics.analysis.sites import site_label
from diagnostics.analysis.suspects import Held
from diagnostics.recording.model import Frame

UNDECIDED = 0.4
"""Below this confidence a "nothing wrong" means that the evidence does not decide."""

_SURE, _FAIRLY = 0.8, 0.6
_SHOWN_SUSPECTS = 3
_SHOWN_FRAMES = 4
_SHOWN_ALTERNATIVES = 3
_MARGIN = "  "


def verdict_json(judgement: Judgement) -> dict[str, Any]:
    """The verdict as ``--json`` prints it (docs/verdict.md)."""
    return {
        **_finding_json(judgement, judgement.main),
        "confidence": judgement.confidence,
        "fix": list(judgement.fix),
        "stacked": [_finding_json(judgement, finding) for finding in judgement.stacked],
        "alternatives": [_finding_json(judgement, finding) for finding in judgement.alternatives],
        "rerun": {"why": judgement.rerun.why, "options": dict(judgement.rerun.options)}
        if judgement.rerun
        else None,
    }


def verdict_lines(judgement: Judgement) -> Iterator[str]:
    """The verdict, its evidence, the fix, and what would decide where the evidence does not."""
    main = judgement.main
    sure = confidence_in_words(judgement.confidence)
    if main.number == 0 and judgement.confidence < UNDECIDED:
        yield "Verdict           The evidence does not decide"
    elif main.number == 0:
        yield f"Verdict           Nothing wrong ({sure})"
    else:
        yield (f"Verdict           {sentence_case(main.title)} ({sure}): {_size(judgement, main)}")
    yield from (f"{_MARGIN}{sentence_case(line)}" for line in main.evidence)
    yield from _fix_lines(judgement.fix)
    for finding, fix in zip(judgement.stacked, judgement.stacked_fix, strict=True):
        yield f"And               {sentence_case(finding.title)}: {_size(judgement, finding)}"
        yield from (f"{_MARGIN}{sentence_case(line)}" for line in finding.evidence[:1])
        yield from _fix_lines(fix)
    if judgement.unexplained is not None:
        yield f"And, not decided  {_size(judgement, judgement.unexplained)}"
        yield from (f"{_MARGIN}{line}" for line in judgement.unexplained.evidence)
    if judgement.rerun is not None:
        others = what_it_may_also_be(judgement)
        if others:
            yield f"It may also be    {', or '.join(finding.title for finding in others)}"
        yield f"To decide         {judgement.rerun.why}"


def _fix_lines(fix: Iterable[str]) -> Iterator[str]:
    advice = [indent(part, _MARGIN) for part in fix if part]
    if advice:
        yield "Fix"
    yield from advice


def what_it_may_also_be(judgement: Judgement) -> tuple[Finding, ...]:
    """The rivals to tell beside the verdict, the likeliest first; none where it is decided."""
    return judgement.alternatives[:_SHOWN_ALTERNATIVES] if judgement.rerun is not None else ()


def suspect_lines(judgement: Judgement) -> Iterator[str]:
    """The first suspects: what is alive, where it was allocated, what holds it."""
    suspects = judgement.suspects
    if suspects:
        yield "Suspects"
    for suspect in suspects[:_SHOWN_SUSPECTS]:
        what = blocks_in_words(suspect)
        born = span(judgement.unit_kind, suspect.first_unit, suspect.last_unit)
        yield f"{_MARGIN}{format_bytes(suspect.bytes):>8} in {what}, born in {born}"
        yield from (f"{_MARGIN * 2}{line}" for line in _allocation(suspect))
        for chain, alike in suspect.chains[:1]:
            others = f" ({alike} like it)" if alike > 1 else ""
            yield f"{_MARGIN * 2}held by {in_words(chain)}{others}"


def _allocation(suspect: Held) -> Iterator[str]:
    """The line that people can change, as the Leaks page names it, with its callers; then the line
    further in that allocated."""
    own = suspect.own_frame
    if own is None:
        return
    place = len(suspect.stack) - suspect.stack[::-1].index(own)
    callers = suspect.stack[max(0, place - _SHOWN_FRAMES) : place]
    yield f"allocated in {' ← '.join(_labels(reversed(callers)))}"
    if place < len(suspect.stack):
        yield f"through {' ← '.join(_labels(reversed(suspect.stack[place:][-_SHOWN_FRAMES:])))}"


def _labels(frames: Iterable[Frame]) -> list[str]:
    return [site_label(frame.file, frame.line, frame.function) for frame in frames]


def confidence_in_words(confidence: float) -> str:
    """0.9 as "sure", 0.7 as "fairly sure", below that "not sure"."""
    if confidence >= _SURE:
        return "sure"
    return "fairly sure" if confidence >= _FAIRLY else "not sure"


def _size(judgement: Judgement, finding: Finding) -> str:
    share = format_share(judgement.bytes_share(finding))
    return f"{format_bytes(finding.bytes)}, {share} of what the process took at most"


def _finding_json(judgement: Judgement, finding: Finding) -> dict[str, Any]:
    return {
        "kind": finding.number,
        "title": finding.title,
        "confidence": round(finding.score, 2),
        "bytes": finding.bytes,
        "bytes_share": round(judgement.bytes_share(finding), 4),
        "evidence": list(finding.evidence),
        "disproof": finding.disproof,
    }
