"""Rules about the document itself: kinds 14, 15, 16."""

from __future__ import annotations

from diagnostics.analysis.format import format_bytes, format_share
from diagnostics.analysis.kinds.evidence import Evidence, Spike
from diagnostics.analysis.kinds.finding import CHILD, STREAM, Finding, silent
from diagnostics.analysis.kinds.holding import RESULT, in_words, largest
from diagnostics.analysis.kinds.libraries import libraries
from diagnostics.analysis.kinds.measures import (
    FLOOR_EACH,
    FLOOR_TOTAL,
    held_bytes,
    kept_by_units,
    let_go,
    released_native,
)

_HALF = 0.5
_SPIKE_FLOOR = 10_000_000
_OPEN_FLOOR = 10_000_000
_OPEN_SHARE = 0.25  # of what the process took at most
_TIMES_THE_FILE = 3.0
_RESULT_EACH = 4 * FLOOR_EACH  # a page of text has a tenth of it
_NATIVE_OPEN_FLOOR = 32_000_000
_FIRST_UNIT_TIMES = 10.0
_PHANTOM_FLOOR = 20_000_000


def one_unit_peak(evidence: Evidence) -> Finding:
    """Kind 14: one unit needs far more than its neighbours, and gives it back."""
    seen = [evidence.spike, evidence.retained.spike if evidence.retained else None]
    spikes = [
        spike
        for spike in seen
        if spike and spike.bytes >= _SPIKE_FLOOR and spike.kept < _HALF * spike.bytes
    ]
    if not spikes:
        return silent(14)
    spike = max(spikes, key=lambda spike: spike.bytes)
    large = spike.bytes >= _OPEN_SHARE * evidence.base
    return Finding(
        14,
        0.9 if large else 0.6,
        spike.bytes,
        (
            f"{spike.label} took {format_bytes(spike.bytes)} above where it began"
            f" ({spike.method}), the median of the others is {format_bytes(spike.usual)};"
            f" {_kept(spike, evidence)}",
        ),
        f"{spike.label} needs as much as its neighbours when it is loaded alone.",
        CHILD,
    )


def _kept(spike: Spike, evidence: Evidence) -> str:
    """What a spike left: of Python's memory, as the birth units tell it, where they know it. What
    the resident set stays above that is in the allocators."""
    python = evidence.retained.spike if evidence.retained else None
    size = format_bytes(max(0, spike.kept))
    if python is None or python.label != spike.label:
        return f"the process kept {size}"
    of_python = f"{format_bytes(python.kept)} of its Python memory stayed"
    if spike is python or spike.kept <= python.kept:
        return of_python
    return f"{of_python}, and the process had {size} more when it ended than when it began"


def whole_document(evidence: Evidence) -> Finding:
    """Kind 15: all of the document is in memory, from its opening on or as the result."""
    found = [_opened(evidence), _first_unit(evidence), _native_opened(evidence), _result(evidence)]
    return max(found, key=lambda finding: (finding.score, finding.bytes))


def phantom_dimensions(evidence: Evidence) -> Finding:
    """Kind 16: rows as wide as the sheet's declared range, with nothing in them."""
    size = max(kept_by_units(evidence), evidence.base if not evidence.retained else 0)
    for known in evidence.known:
        entry = libraries()[known.entry]
        if 16 not in entry.kinds or not entry.wide_bytes or known.widest < entry.wide_bytes:
            continue
        size = max(size, known.bytes, evidence.base)
        if size >= _PHANTOM_FLOOR:
            line = (
                f"rows of {format_bytes(known.widest)} each were made by {entry.library}:"
                f" {known.widest // 8:,} cells wide; the run took {format_bytes(size)}"
            )
            return Finding(16, 0.95, size, (line, *_against_file(evidence, size)), _REAL_RANGE)
    return silent(16)


_REAL_RANGE = "The sheet's real range is as wide as the declared one."


def _opened(evidence: Evidence) -> Finding:
    opened = evidence.opened or 0
    if opened < _least(evidence):
        return silent(15)
    return Finding(
        15,
        0.85,
        opened,
        (
            f"{format_bytes(opened)} of Python memory were there before the first {evidence.kind}"
            f" began and still when the last one ended, {_part(evidence, opened)}",
            *_against_file(evidence, opened),
        ),
        _AS_STREAM,
        STREAM,
    )


def _first_unit(evidence: Evidence) -> Finding:
    retained = evidence.retained
    if retained is None or evidence.units < 2 or retained.shape.kind == "triangle":
        return silent(15)
    first = retained.first
    if first < max(_least(evidence), _FIRST_UNIT_TIMES * retained.each):
        return silent(15)
    return Finding(
        15,
        0.75,
        first,
        (
            f"the first {evidence.kind} left {format_bytes(first)} of Python memory that was still"
            f" there when the last one ended, the others {format_bytes(retained.each)} each",
            *_against_file(evidence, first),
        ),
        _AS_STREAM,
        STREAM,
    )


def _native_opened(evidence: Evidence) -> Finding:
    native, released = evidence.native, released_native(evidence)
    if native is None:
        return silent(15)
    stays = min(native.open, native.end)
    let_go = released is not None and released >= _HALF * stays
    document = evidence.document_bytes
    # What imports and start-up take looks alike; it does not go with the result, though.
    if stays < max(_NATIVE_OPEN_FLOOR, _least(evidence)) or not (let_go or document):
        return silent(15)
    if document and stays < _TIMES_THE_FILE * document:
        return silent(15)
    return Finding(
        15,
        0.75 if let_go else 0.5,
        stays,
        (
            f"{format_bytes(stays)} of native memory were there before the first {evidence.kind}"
            f" began and still when the last one ended, {_part(evidence, stays)}",
            *_against_file(evidence, stays),
        ),
        _AS_STREAM,
        STREAM,
    )


def _result(evidence: Evidence) -> Finding:
    size, suspect = held_bytes(evidence, RESULT), largest(evidence, RESULT)
    if suspect is None or size < FLOOR_TOTAL or let_go(evidence):
        return silent(15)
    each = size / max(1, evidence.units)
    score = 0.8
    if size < _least(evidence):
        if each < _RESULT_EACH or size < _TIMES_THE_FILE * (evidence.document_bytes or 0):
            return silent(15)
        # Little beside the rest, though more than a unit's text. A module's list goes on growing
        # with the next document; what a function collects may be all that it was asked for.
        score = 0.6 if suspect.chain[0].root == "module" else 0.35
    return Finding(
        15,
        score,
        size,
        (
            f"what is collected holds {format_bytes(size)}, {_part(evidence, size)},"
            f" {format_bytes(each)} a {evidence.kind}: {in_words(suspect.chain)}",
            *_against_file(evidence, size),
        ),
        "A loader that yields instead of collecting holds as much.",
        STREAM,
    )


_AS_STREAM = "The same document read as a stream takes as much."


def _least(evidence: Evidence) -> float:
    document = evidence.document_bytes or 0
    return max(_OPEN_FLOOR, _OPEN_SHARE * evidence.base, _TIMES_THE_FILE * document)


def _part(evidence: Evidence, size: int) -> str:
    if not evidence.base:
        return "more than the process grew"
    return f"{format_share(min(1.0, size / evidence.base))} of what the process took at most"


def _against_file(evidence: Evidence, size: int) -> list[str]:
    """How large the document's file is beside the ``size`` of the line before."""
    document = evidence.document_bytes
    if not document:
        return []
    if size >= 2 * document:
        beside = f"{size / document:,.0f} times less"
    else:
        beside = "more than half of that" if document <= size else "more than that"
    return [f"the document has {format_bytes(document)}: {beside}"]
