"""Rules about memory with a bound, or with one that is missing: kinds 13, 18."""

from __future__ import annotations

from diagnostics.analysis.format import counted, format_bytes, format_count
from diagnostics.analysis.kinds.evidence import Evidence
from diagnostics.analysis.kinds.finding import CAPTURE, Finding, silent
from diagnostics.analysis.kinds.holding import in_words, largest, share, size_in_words
from diagnostics.analysis.kinds.measures import FLOOR_TOTAL, ever_more, held_bytes

_SURE, _LIKELY, _MAYBE = 0.9, 0.7, 0.4
_BAND_FROM = 4  # units; a few are read-ahead
_BAND_BYTES = 5_000_000
_HALF = 0.5
_NO_LIMIT = "cache without a known limit"
_SET_LIMIT = (
    "Give the cache a limit, such as lru_cache(maxsize=16), or empty it after each document:"
    " cache_clear()."
)


def bounded_cache(evidence: Evidence) -> Finding:
    """Kind 13: a fixed number of the newest units stays alive; or what a cache holds, whose limit
    was not seen, since all units are in it."""
    retained, suspect = evidence.retained, largest(evidence, 13)
    cached = share(evidence, 13)
    if retained is None or retained.total < FLOOR_TOTAL or ever_more(evidence):
        return silent(13)
    band = retained.shape.kind == "band"
    width = retained.shape.width or retained.tail
    bounded = band or 0 < retained.tail < retained.units
    lines = []
    if suspect is not None and cached >= _HALF:
        lines.append(f"{size_in_words(suspect)} are held through {in_words(suspect.chain)}")
    if bounded and width >= _BAND_FROM:
        lines.append(
            f"the newest {counted(width, evidence.kind)} of {retained.units} stay alive, with"
            f" {format_bytes(retained.total)}; older ones are gone"
        )
    limit_seen = len(lines) == 2 or cached < _HALF
    if len(lines) == 2:
        score = _SURE
    elif cached >= _HALF:
        score = _LIKELY
        lines.append("its limit has not been reached yet, or it has none")
    elif lines and retained.total >= _BAND_BYTES:
        # What is left of a sawtooth looks alike, unless something is seen to hold it.
        score = _LIKELY if band and cached else _MAYBE
    else:
        return silent(13)
    return Finding(
        13,
        score,
        retained.total,
        tuple(lines),
        "A run over twice as many units ends with twice as many of them alive.",
        None if cached else CAPTURE,
        named="" if limit_seen else _NO_LIMIT,
        advice="" if limit_seen else _SET_LIMIT,
    )


def queue_without_backpressure(evidence: Evidence) -> Finding:
    """Kind 18: units wait for a consumer, and more of them the longer the run goes on."""
    retained, suspect = evidence.retained, largest(evidence, 18)
    size = held_bytes(evidence, 18)
    lines: list[str] = []
    score = 0.0
    if suspect is not None and size >= FLOOR_TOTAL:
        lines.append(f"{format_bytes(size)} wait in {in_words(suspect.chain)}")
        score = _SURE
    waiting = retained is not None and retained.tail >= _BAND_FROM and ever_more(evidence)
    if retained is not None and waiting and retained.total >= _BAND_BYTES:
        counts = ", ".join(format_count(count) for count in retained.lag)
        lines.append(
            f"ever more units were alive at once, after each quarter of the run: {counts}; the"
            " oldest go first"
        )
        size = max(size, retained.total)
        score = max(score, _LIKELY)
    if not lines:
        return silent(18)
    return Finding(
        18,
        score,
        size,
        tuple(lines),
        "With a bound on the queue as much stays alive.",
        None if suspect else CAPTURE,
    )
