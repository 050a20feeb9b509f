"""A large part of the memory of which nobody was seen to hold it, and which no finding explains."""

from __future__ import annotations

from collections.abc import Iterable

from diagnostics.analysis.format import counted
from diagnostics.analysis.kinds.evidence import Evidence
from diagnostics.analysis.kinds.finding import CAPTURE, Finding
from diagnostics.analysis.kinds.holding import GARBAGE, NO_REFERRER, holding_kind, size_in_words
from diagnostics.analysis.sites import site_label

_LARGE = 0.25  # of what the process took at most
_FLOOR = 5_000_000
_HALF = 0.5
_SCORE = 0.4
_ALIVE = frozenset({"python", "open"})
_HOW = {
    None: "no holder was found",
    NO_REFERRER: "no Python object was found to refer to it",
    GARBAGE: "the search ended in a cycle of references, not at a root",
}


def unexplained(evidence: Evidence, told: Iterable[Finding]) -> Finding | None:
    """The largest suspect without a root, as an undecided finding; None where it is small, of few
    units, or explained by one of the findings that are ``told``."""
    found = [
        suspect
        for suspect in evidence.suspects
        if holding_kind(suspect.chain) in _HOW
        and suspect.units >= _HALF * evidence.units
        and suspect.bytes >= max(_FLOOR, _LARGE * evidence.base)
    ]
    suspect = max(found, key=lambda suspect: suspect.bytes, default=None)
    if suspect is None:
        return None
    if any(f.kind.part in _ALIVE and f.bytes >= _HALF * suspect.bytes for f in told):
        return None
    how, own = holding_kind(suspect.chain), suspect.own_frame
    where = f", allocated in {site_label(own.file, own.line, own.function)}" if own else ""
    survived = evidence.retained.survived if evidence.retained is not None else None
    waits = how == GARBAGE and (survived or 0.0) < _HALF
    return Finding(
        GARBAGE if waits else 1,
        _SCORE,
        suspect.bytes,
        (
            f"{size_in_words(suspect)} of {counted(suspect.units, evidence.kind)}{where}, were"
            f" alive; {_HOW[how]}",
        ),
        "A capture while it is in use shows another holder.",
        CAPTURE,
    )
