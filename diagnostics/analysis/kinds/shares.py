"""Whose bytes are whose: no byte of what the process took counts for two kinds.

The rules look at a run each by itself, and at different moments of it. What malloc_trim gave back
at the end may be what a leak had held before, and what one unit took at its peak was gone when the
leak was at its highest. So what stands first keeps its bytes, and the others get what is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from diagnostics.analysis.format import format_bytes
from diagnostics.analysis.kinds.evidence import Evidence
from diagnostics.analysis.kinds.finding import Finding
from diagnostics.analysis.kinds.measures import FLOOR_TOTAL, FREED_FLOOR

AFTERMATH = frozenset({8, 9, 10})
"""Kinds of memory that was let go, and that an allocator keeps."""

_EMPTY_ARENAS = 10


def disjoint(ranked: Sequence[Finding], evidence: Evidence) -> tuple[list[Finding], list[Finding]]:
    """``ranked`` findings, the strongest first, each with bytes of its own; and those of which the
    others explain so much that the rest is not worth a word.

    Together they have at most ``evidence.base``, unless one alone has more. What is in the
    allocators comes last, whatever its rank: what it was before explains it.
    """
    own: dict[int, Finding] = {}
    causes = given = 0
    for finding in sorted(ranked, key=lambda finding: finding.number in AFTERMATH):
        freed = finding.number in AFTERMATH
        size = finding.bytes - (_had_been(finding, causes, evidence) if freed else 0)
        if given:
            size = min(size, evidence.base - given)
            if size < (FREED_FLOOR if freed else FLOOR_TOTAL):
                continue
        own[finding.number] = _with_own(finding, size)
        given += size
        causes += 0 if freed else size
    kept = [own[finding.number] for finding in ranked if finding.number in own]
    return kept, [finding for finding in ranked if finding.number not in own]


def _had_been(finding: Finding, causes: int, evidence: Evidence) -> int:
    """How much of an allocator's free memory was alive until all was let go, as part of
    ``causes``: what was not free before, up to the bytes of the causes."""
    before = evidence.slack if finding.number == _EMPTY_ARENAS else evidence.free
    was_free = max(0, before.end) if before is not None else 0
    return min(causes, max(0, finding.bytes - was_free))


def _with_own(finding: Finding, size: int) -> Finding:
    if size == finding.bytes:
        return finding
    counted = format_bytes(finding.bytes - size)
    told = f"{finding.evidence[0]}; the other verdicts explain {counted} of it already"
    return replace(finding, bytes=size, evidence=(told, *finding.evidence[1:]))
