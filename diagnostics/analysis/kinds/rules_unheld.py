"""Rules about memory that nobody in Python holds: kinds 6 to 10."""

from __future__ import annotations

from diagnostics.analysis.format import counted, format_bytes
from diagnostics.analysis.kinds.evidence import Evidence
from diagnostics.analysis.kinds.finding import CAPTURE, COLLECT, SETTLE, Finding, Rerun, silent
from diagnostics.analysis.kinds.holding import NO_REFERRER, share
from diagnostics.analysis.kinds.measures import (
    FLOOR_TOTAL,
    FREED_FLOOR,
    after_release,
    empty_arenas,
    free_in_malloc,
    garbage,
    held_bytes,
    kept_by_units,
)

_HALF = 0.5
_TEETH = 4.0  # times what is alive otherwise: memory that waits is most of the memory
_MANY_UNITS = 5.0  # units' worth of garbage
_LARGE_TOOTH = 50_000_000
_FREED_SHARE = 0.25  # of what the process took at most
_LARGER = 1.25  # than the first units may be those after them: what these need is for the next too
_REUSED = 0.8  # of what the loader usually needs: so much free memory is for the next unit
_TRIMMED_REUSED = 0.5
_WITH_SNAPSHOTS = 0.4  # does not stand: freed memory may be all the observer's
_FAR_ABOVE = 3.0  # times the live bytes in them: arenas that are nearly empty


def missing_decref(evidence: Evidence) -> Finding:
    """Kind 6: objects stay without any referrer, and no collection frees them."""
    kept, settled = kept_by_units(evidence), evidence.settled
    if kept < FLOOR_TOTAL or settled is None or settled.left_python is None:
        return silent(6)
    unreferred = share(evidence, NO_REFERRER)
    without_chain = share(evidence, None) if evidence.suspects else 1.0
    stayed = min(kept, max(0, settled.left_python))
    if evidence.retained is not None:  # imports are left as well, and are not what units left
        stayed = min(stayed, evidence.retained.later)
    size = min(stayed, round(kept * (unreferred + without_chain)))
    if size < max(FLOOR_TOTAL, _HALF * kept * (unreferred + without_chain)):
        return silent(6)
    lines = [
        f"{format_bytes(stayed)} of Python memory were still alive when all was let go and"
        f" collected, of {format_bytes(kept)} that the units left"
    ]
    looked_in_vain = bool(evidence.suspects) and evidence.capture_complete is True
    if unreferred:
        lines.append(f"{format_bytes(held_bytes(evidence, NO_REFERRER))} have no Python referrer")
    elif looked_in_vain:
        lines.append("a complete capture at that time found nobody who holds them")
    if unreferred >= _HALF:
        score = 0.9
    elif looked_in_vain and evidence.captured_at_end:
        score = 0.8
    else:
        score = 0.4
    return Finding(
        6,
        score,
        size,
        tuple(lines),
        "Another version of the extension leaves as much behind.",
        None if unreferred else CAPTURE,
    )


def cycles_waiting(evidence: Evidence) -> Finding:
    """Kind 7: garbage in cycles piles up until the collector comes, if it comes."""
    kept, collector, settled = kept_by_units(evidence), evidence.collector, evidence.settled
    waiting = garbage(evidence)
    unit_peak = evidence.retained.peak_each if evidence.retained else 0
    lines: list[str] = []
    size, score = 0, 0.0
    if settled is not None and waiting >= FLOOR_TOTAL:
        lines.append(
            f"a collection at the end freed {counted(settled.objects, 'object')} and"
            f" {format_bytes(settled.collection_python)} of Python memory"
        )
        piled_up = unit_peak and waiting >= max(FREED_FLOOR, _MANY_UNITS * unit_peak)
        if kept and waiting >= _HALF * kept and not collector.full:
            lines.append(
                f"units had left {format_bytes(kept)}, and no full collection came in the second"
                " half of the run"
            )
            size, score = min(waiting, kept), 0.9
        elif kept and waiting >= _HALF * kept:
            size, score = min(waiting, kept), 0.75
        elif piled_up and not collector.plateau:
            size, score = waiting, 0.7
    usual = max(collector.after_it, unit_peak)
    if not score and collector.largest >= max(_LARGE_TOOTH, _TEETH * usual):
        # The collector keeps up: a sawtooth with the same tips is what it is there for.
        line = (
            f"the collector freed {format_bytes(collector.largest)} at once and left"
            f" {format_bytes(collector.after_it)}: most of the memory was waiting for it"
        )
        size, score, lines = collector.largest, 0.4, [*lines, line]
    if settled is None and not score and kept and not evidence.suspects and not collector.full:
        lines = ["no full collection came in the second half of the run"]
        return Finding(7, 0.4, kept, tuple(lines), _WITH_COLLECTION, SETTLE)
    if not score:
        return silent(7)
    return Finding(7, score, size, tuple(lines), _WITH_COLLECTION, COLLECT)


_WITH_COLLECTION = "With a full collection after each unit as much stays alive."


def freed_and_returnable(evidence: Evidence) -> Finding:
    """Kind 8: malloc keeps what was freed, and malloc_trim gives it back."""
    settled = evidence.settled
    if settled is None or settled.trim_rss is None:
        return silent(8)
    trimmed = settled.trim_rss - evidence.own_freed
    if trimmed < _least_freed(evidence, _TRIMMED_REUSED):
        return silent(8)
    over = after_release(evidence)
    score = 0.9 if trimmed >= _HALF * over else 0.55
    lines = [
        f"malloc_trim gave back {format_bytes(trimmed)} of the {format_bytes(over)} that the"
        " process still held over its start when all was released and collected"
    ]
    if evidence.engine == "exact":
        score = _WITH_SNAPSHOTS
        lines.append("the snapshots of the exact engine had a part of it that nobody counts")
    return Finding(
        8,
        score,
        trimmed,
        tuple(lines),
        "The process is as large after malloc_trim as before.",
        _WITHOUT_SNAPSHOTS if evidence.engine == "exact" else None,
    )


_WITHOUT_SNAPSHOTS = Rerun(
    "A run with the sampled engine, which takes no snapshots, shows what the loader freed itself.",
    {"engine": "sampled"},
)


def freed_and_pinned(evidence: Evidence) -> Finding:
    """Kind 9: malloc's free memory lies between survivors, and cannot be given back."""
    pinned, settled = free_in_malloc(evidence), evidence.settled
    if pinned is None or settled is None:
        return silent(9)
    trimmed = settled.trim_rss or 0
    if pinned < _least_freed(evidence, _REUSED) or trimmed >= _HALF * pinned:
        return silent(9)
    return Finding(
        9,
        0.85,
        pinned,
        (
            f"{format_bytes(pinned)} are free inside malloc and still resident when all was let go;"
            f" malloc_trim gave back {format_bytes(trimmed)}",
        ),
        "Another allocator keeps as much.",
    )


def arenas_pinned(evidence: Evidence) -> Finding:
    """Kind 10: pymalloc's arenas are nearly empty, and each has a survivor in it."""
    empty, left = empty_arenas(evidence), evidence.left
    if empty is None or left is None:
        return silent(10)
    alive = max(0, left.python or 0)
    if empty < max(_least_freed(evidence, _REUSED), _FAR_ABOVE * alive):
        return silent(10)
    return Finding(
        10,
        0.9 if evidence.settled else 0.6,
        empty,
        (
            f"{format_bytes(empty)} lie empty in the arenas of pymalloc, Python's allocator for"
            f" small objects; {format_bytes(alive)} of Python memory are alive above the start",
        ),
        "The arenas shrink when a collection has run.",
        None if evidence.settled else SETTLE,
    )


def _least_freed(evidence: Evidence, reused: float) -> float:
    """From how much free memory on it is not only there for the next unit: ``reused`` is the part
    of the usual need that is."""
    need, unit_need = evidence.need or 0, evidence.unit_need or 0
    return max(FREED_FLOOR, _FREED_SHARE * evidence.base, reused * need, _LARGER * unit_need)
