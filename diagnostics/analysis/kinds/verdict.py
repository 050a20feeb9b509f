"""The verdict: the rules' findings ranked, shares given, and what would decide where they do not.

``judge(reader)`` is the one call. Standard library only: the command line uses it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from diagnostics.analysis.format import counted, format_bytes
from diagnostics.analysis.kinds.drawing import draw_evidence
from diagnostics.analysis.kinds.evidence import Evidence
from diagnostics.analysis.kinds.finding import (
    CAPTURE,
    EARLIER_CAPTURE,
    SETTLE,
    SMALLER_CAPTURE,
    Finding,
    Rerun,
)
from diagnostics.analysis.kinds.holding import holding_kind
from diagnostics.analysis.kinds.libraries import advice
from diagnostics.analysis.kinds.rules import RULES
from diagnostics.analysis.kinds.shares import AFTERMATH, disjoint
from diagnostics.analysis.kinds.table import Kind
from diagnostics.analysis.kinds.unexplained import unexplained
from diagnostics.analysis.sites import library_of
from diagnostics.analysis.suspects import Held
from diagnostics.analysis.whole_run import WholeRun
from diagnostics.recording.reader import RecordingReader

STANDS = 0.5
"""A finding stands from this score on; below it is an alternative."""

_WORTH_SAYING = 0.2
_CLOSE = 0.15  # two rivals whose scores differ by less are not decided
_WEIGHT_OF_SCORE = 0.4  # the rest of a finding's weight goes with its part of the bytes
_AFTERMATH_WEIGHT = 0.5
_RIVALS = (frozenset({1, 2, 7, 6, 16}), frozenset({4, 5, 19, 12}), frozenset({12, 15, 16}))
"""Kinds that explain the same bytes: of those that stand only the strongest gets a share."""

_DECIDED = 0.8
_FEWEST_UNITS = 4
_UNEXPLAINED = 0.25  # of what the process took at most
_UNEXPLAINED_FLOOR = 5_000_000


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a recording shows, in order of weight.

    ``main`` is the verdict; its number is 0 where nothing is wrong. ``stacked`` are further kinds
    that stand beside it, each with its own bytes; ``alternatives`` explain the same bytes less
    well, or do not stand. ``unexplained`` is that one of them, if any, which is a suspect too large
    to be passed over though nobody was seen to hold it. ``confidence`` is 0 to 1. ``fix`` says what
    to do about ``main``, the advice for the libraries involved first; ``stacked_fix`` what of it to
    do besides about each of ``stacked``. ``rerun`` is the measurement that would decide, where the
    evidence does not, else None. ``base`` is what the process took at most, above its start, in
    bytes; ``suspects`` are those of the best capture.
    """

    main: Finding
    stacked: tuple[Finding, ...]
    alternatives: tuple[Finding, ...]
    unexplained: Finding | None
    confidence: float
    fix: tuple[str, ...]
    rerun: Rerun | None
    base: int
    units: int
    unit_kind: str
    suspects: tuple[Held, ...]
    stacked_fix: tuple[tuple[str, ...], ...] = ()

    @property
    def kind(self) -> Kind:
        return self.main.kind

    def bytes_share(self, finding: Finding) -> float:
        """The part of what the process took at most that a finding explains, 0 to 1; those of
        ``main`` and ``stacked`` add up to 1 at most."""
        return min(1.0, finding.bytes / max(self.base, finding.bytes, 1))


def judge(reader: RecordingReader, run: WholeRun | None = None) -> Judgement:
    """The verdict on a recording, finished or not; ``run``, if given, has all of ``reader``.

    Raises ``RecordingError`` on a damaged file.
    """
    return judge_evidence(draw_evidence(reader, run))


def judge_evidence(evidence: Evidence) -> Judgement:
    """The verdict on evidence that was drawn before."""
    findings = [rule(evidence) for rule in RULES.values()]
    standing = [finding for finding in findings if finding.score >= STANDS and finding.bytes]
    if not standing:
        return _nothing_wrong(evidence, findings)
    kept: list[Finding] = []
    beaten: list[Finding] = []
    ranked = sorted(standing, key=lambda f: -_weight(f, standing, evidence.base))
    for finding in ranked:
        (beaten if _has_rival(finding, kept) else kept).append(finding)
    (main, *stacked), explained = disjoint(kept, evidence)
    undecided_suspect = unexplained(evidence, [main, *stacked])
    below = [f for f in findings if _WORTH_SAYING <= f.score < STANDS]
    if undecided_suspect is not None:  # it tells the same, with its line
        below = [f for f in below if f.number != undecided_suspect.number]
        below.append(undecided_suspect)
    alternatives = sorted([*beaten, *explained, *below], key=lambda finding: -finding.score)
    rival = next((f for f in alternatives if _are_rivals(f, main)), None)
    fix = tuple(_fix(main, evidence))
    undecided = rival is not None and main.score - rival.score < _CLOSE
    return Judgement(
        main=main,
        stacked=tuple(stacked),
        alternatives=tuple(alternatives),
        unexplained=undecided_suspect,
        confidence=round(main.score - (_CLOSE if undecided else 0.0), 2),
        fix=fix,
        rerun=_another(_rerun(main, rival if undecided else None), evidence),
        base=evidence.base,
        units=evidence.units,
        unit_kind=evidence.kind,
        suspects=evidence.suspects,
        stacked_fix=tuple(
            tuple(part for part in _fix(finding, evidence) if part not in fix)
            for finding in stacked
        ),
    )


def _weight(finding: Finding, standing: Sequence[Finding], base: int) -> float:
    """How far up a finding belongs: by how well it fits and by its part of the bytes.

    What the end of a run leaves in the allocators is the aftermath of a growth, if one stands that
    is as large: without the growth there would be nothing to give back.
    """
    share = min(1.0, finding.bytes / max(base, finding.bytes))
    weight = finding.score * (_WEIGHT_OF_SCORE + (1 - _WEIGHT_OF_SCORE) * share)
    causes = (f for f in standing if f.number not in AFTERMATH and f.bytes >= finding.bytes / 2)
    if finding.number in AFTERMATH and any(causes):
        weight *= _AFTERMATH_WEIGHT
    return weight


def _are_rivals(one: Finding, other: Finding) -> bool:
    return any({one.number, other.number} <= group for group in _RIVALS)


def _has_rival(finding: Finding, kept: Iterable[Finding]) -> bool:
    return any(_are_rivals(finding, other) for other in kept)


def _rerun(main: Finding, rival: Finding | None) -> Rerun | None:
    """The measurement that would decide, where the evidence does not."""
    if main.score >= _DECIDED and rival is None:
        return None
    return main.rerun or (rival.rerun if rival else None)


def _another(rerun: Rerun | None, evidence: Evidence) -> Rerun | None:
    """``rerun``, or what helps where this run was the same measurement."""
    if rerun != CAPTURE or evidence.engine != "sampled":
        return rerun
    if evidence.capture_cut_off:
        return SMALLER_CAPTURE
    return EARLIER_CAPTURE if evidence.captured_at_end else CAPTURE


def _fix(found: Finding, evidence: Evidence) -> list[str]:
    """The advice for the library that most of the memory came through, then the general one."""
    involved: dict[str, None] = {}
    suspects = sorted(evidence.suspects, key=lambda s: holding_kind(s.chain) != found.number)
    for suspect in suspects:
        for frame in suspect.stack:
            involved.setdefault(library_of(frame.file))
        for link in suspect.chain:
            involved.setdefault(link.type.partition(".")[0].lstrip("_"))
    for name in evidence.packages:
        involved.setdefault(name)
    # A library that registers its objects with weakref, say, knows better how to let them go.
    involved_first = sorted(involved, key=sys.stdlib_module_names.__contains__)
    return [*advice(found.number, involved_first), found.fix]


def _nothing_wrong(evidence: Evidence, findings: Sequence[Finding]) -> Judgement:
    suspect = unexplained(evidence, ())
    known = [f for f in findings if suspect is None or f.number != suspect.number]
    known += [suspect] if suspect is not None else []
    below = sorted((f for f in known if f.score >= _WORTH_SAYING), key=lambda f: -f.score)
    lines, confidence, rerun = _healthy(evidence)
    main = Finding(0, confidence, 0, tuple(lines), "A longer run grows with its units.", rerun)
    if below:
        confidence = min(confidence, round(1.0 - below[0].score, 2))
        rerun = below[0].rerun or rerun
    return Judgement(
        main=replace(main, score=confidence),
        stacked=(),
        alternatives=tuple(below),
        unexplained=suspect,
        confidence=confidence,
        fix=(),
        rerun=_another(rerun, evidence),
        base=evidence.base,
        units=evidence.units,
        unit_kind=evidence.kind,
        suspects=evidence.suspects,
    )


def _healthy(evidence: Evidence) -> tuple[list[str], float, Rerun | None]:
    """Sentences for a run in which nothing stands out, how sure that is, and what was not seen."""
    lines: list[str] = []
    retained, settled, rss = evidence.retained, evidence.settled, evidence.rss
    if evidence.units < _FEWEST_UNITS:
        lines.append(
            f"only {counted(evidence.units, evidence.kind)} ended: too few to tell growth from a"
            " start"
        )
        return lines, 0.2, None
    if retained is not None:
        lines.append(
            f"each {evidence.kind} needs {format_bytes(retained.peak_each)} of Python memory and"
            f" leaves {format_bytes(retained.each)} behind"
        )
    if rss is not None:
        grew = (
            f"grew by {format_bytes(rss.per_unit)} a {evidence.kind} after the warm-up"
            if rss.goes_on
            else "did not go on growing"
        )
        lines.append(
            f"the process took {format_bytes(rss.highest)} above its start at most, and {grew}"
        )
    if settled is not None:
        lines.append(
            f"letting go of everything gave back {format_bytes(settled.result_rss)}, a collection"
            f" {format_bytes(settled.collection_rss)}"
        )
    wants_a_reason = max(_UNEXPLAINED_FLOOR, _UNEXPLAINED * evidence.base)
    # What the newest units hold may be in use; here and there in old ones, it wants a reason.
    if retained is not None and not retained.tail and retained.total >= wants_a_reason:
        lines.append(
            f"but {retained.alive_units} of {retained.units} still held"
            f" {format_bytes(retained.total)} when the last one ended, and nothing tells why"
        )
        return lines, 0.3, CAPTURE
    # One step that an allocator keeps is no growth: at its late pace it must come to as much.
    at_late_pace = rss.late * evidence.units if rss is not None and rss.goes_on else 0.0
    if rss is not None and min(rss.over_units, at_late_pace) >= wants_a_reason:
        lines.append("but that growth goes on, and nothing tells whose it is")
        if retained is None:
            return lines, 0.3, CAPTURE
        return lines, 0.3, None if settled is not None else SETTLE
    if retained is None:
        return lines, 0.5, CAPTURE
    return (lines, 0.9, None) if settled is not None else (lines, 0.7, SETTLE)
