"""Sums that several rules need, and the floors below which all of them are silent."""

from __future__ import annotations

from itertools import pairwise

from diagnostics.analysis.kinds.evidence import Evidence, Left
from diagnostics.analysis.kinds.holding import GARBAGE, NO_REFERRER, bytes_by_kind, share
from diagnostics.analysis.retention import FLOOR_BYTES
from diagnostics.analysis.suspects import Held

FLOOR_EACH = FLOOR_BYTES
"""What a unit leaves below this may be chance, or a crumb that nobody misses."""

FLOOR_TOTAL = 1_000_000
"""Less than this in a whole run is no trouble, however steady."""

NATIVE_FLOOR = 16_000_000
"""What native memory may grow by: buffers and allocators take such steps in healthy runs."""

FREED_FLOOR = 16_000_000
"""Less free memory than this in an allocator is for what comes next."""

_STEADILY = 0.5
_RESIDUE = 0.1
_LITTLE = 0.2
_SEVERAL = 3  # units: what one or two left behind tells nothing of the next
_NEARLY_ALL = 0.85
_LIVE_ON = frozenset({"module", "class", "closure"})
"""Roots that releasing a loader's result does not touch: names, and functions that are kept."""

_GROWS = 1.15  # times as many units at the end of each quarter as of the one before
_NOT_EVERY_UNIT = frozenset({11, 13, 18})  # kinds of which only some units leave something


def kept_by_units(evidence: Evidence) -> int:
    """Python bytes that the units left behind, where units of all ages did; else 0.

    Where birth units are not known, what live Python memory gained after the warm-up, if it rises
    with the units to the end.
    """
    retained = evidence.retained
    if retained is not None:
        # A young collection may have come upon the first units, and on no others.
        nearly_all = retained.tail >= _NEARLY_ALL * retained.units and retained.each >= FLOOR_EACH
        return retained.total if retained.shape.kind == "triangle" or nearly_all else 0
    python = evidence.python
    if python is None or not python.goes_on or python.per_unit < FLOOR_EACH:
        return 0
    return python.over_units


def held_bytes(evidence: Evidence, kind: int) -> int:
    """The bytes that are held in the way of a kind: its part of what units left behind, or what
    its own steady suspects hold where not all units leave something."""
    kept = kept_by_units(evidence)
    if kept and evidence.captured_at_end and evidence.retained is not None:
        kept = min(kept, evidence.retained.later)  # what went before the capture is not in it
    if kept:
        return round(kept * share(evidence, kind))
    least = 0.0 if kind in _NOT_EVERY_UNIT else _STEADILY
    found = [
        suspect
        for suspect in evidence.suspects
        if suspect.units >= _SEVERAL
        and suspect.steadiness >= least
        and suspect.bytes >= FLOOR_EACH * suspect.units
    ]
    return bytes_by_kind(found)[kind]


def let_go(evidence: Evidence) -> bool:
    """Whether the program itself freed what the units had left, before it ended."""
    retained = evidence.retained
    return retained is not None and retained.later < _RESIDUE * retained.total


def garbage(evidence: Evidence) -> int:
    """Python bytes that nobody held and that waited for the collector at the end.

    What had a chain from a root before the result was let go is not among them, though the
    collector may have had to free it afterwards; nor is what would have been left alive by a full
    collection that came while units went on.
    """
    settled = evidence.settled
    if settled is None:
        return 0
    kept = kept_by_units(evidence)
    if not evidence.suspects:
        waited = settled.collection_python
    else:
        unreferred = _unreferred(evidence)
        held = kept * (1.0 - share(evidence, None) - unreferred)
        # A young collection can come between the capture and the settlement: what nobody referred
        # to in the first and is gone in the second went that way.
        gone = kept * unreferred - max(0, settled.left_python or 0) - settled.result_python
        seen = evidence.captured_at_end and settled.left_python is not None
        waited = max(0, settled.collection_python - round(held), round(gone) if seen else 0)
    return round(waited * (1.0 - _survived(evidence)))


def held_meanwhile(evidence: Evidence) -> float:
    """The part of what units left, 0 to 1, that somebody held as long as units went on, and nobody
    any more when a capture looked for its holder: a full collection left it alive, and it went when
    all was let go."""
    settled, kept = evidence.settled, kept_by_units(evidence)
    if settled is None or settled.left_python is None or not evidence.captured_at_end or not kept:
        return 0.0
    gone = 1.0 - min(1.0, max(0, settled.left_python) / kept)
    return min(_unreferred(evidence), gone) * _survived(evidence)


def _unreferred(evidence: Evidence) -> float:
    """The part of all suspects' bytes that a capture found nobody to hold."""
    return share(evidence, NO_REFERRER) + share(evidence, GARBAGE)


def _survived(evidence: Evidence) -> float:
    retained = evidence.retained
    return retained.survived or 0.0 if retained is not None else 0.0


def ever_more(evidence: Evidence) -> bool:
    """Whether more units were alive at once after each quarter of the run, while old ones went."""
    retained = evidence.retained
    if retained is None or not retained.lag:
        return False
    if not 0 < retained.tail < _NEARLY_ALL * retained.units:
        return False
    return all(later >= _GROWS * max(1, sooner) for sooner, later in pairwise(retained.lag))


def empty_arenas(evidence: Evidence) -> int | None:
    """What pymalloc's arenas held beyond their live blocks in the end; None where nobody looked
    and letting go may have changed it."""
    left = _left(evidence)
    return left.slack if left is not None else None


def free_in_malloc(evidence: Evidence) -> int | None:
    """malloc's free memory in the end that malloc_trim did not give back and that can still be
    resident; None where nobody looked."""
    left, settled = _left(evidence), evidence.settled
    if left is None or left.native_free is None or settled is None:
        return None
    python = left.python if settled.left_python is None else settled.left_python
    others = sum(max(0, size or 0) for size in (python, left.slack, left.native))
    trimmed = 0 if left.after_settlement else settled.trim_rss or 0
    # Memory that was trimmed still counts as free: no more can be resident than is left.
    return min(left.native_free - trimmed, settled.left_rss - others)


def _left(evidence: Evidence) -> Left | None:
    """The last reading, if it tells how things were in the end."""
    left, settled = evidence.left, evidence.settled
    if left is None or left.after_settlement or settled is None:
        return left
    freed = settled.result_python + settled.collection_python
    return left if freed <= _LITTLE * evidence.base else None


def released_native(evidence: Evidence) -> int | None:
    """How much of what native memory had grown by was given up when all was let go; None where
    the run was not settled or nobody looked afterwards."""
    native, left, settled = evidence.native, evidence.left, evidence.settled
    if native is None or settled is None:
        return None
    if left is not None and left.after_settlement and left.native is not None:
        return max(0, native.end - left.native)
    # What malloc_trim gave back was free in malloc, and nobody's cache.
    return settled.result_rss + settled.collection_rss + (settled.trim_rss or 0)


def outlives_release(evidence: Evidence, suspect: Held) -> bool:
    """Whether what holds ``suspect`` was still there when the result had been released and
    collected: its root is none that this touches, and as much Python memory was alive afterwards.

    What goes with such a suspect stays as well, and tells nothing of who else may hold it.
    """
    settled = evidence.settled
    if settled is None or settled.left_python is None or not suspect.chain:
        return False
    lives_on = suspect.chain[0].root in _LIVE_ON
    return lives_on and settled.left_python >= _STEADILY * suspect.bytes


def after_release(evidence: Evidence) -> int:
    """RSS above the start when the result was released and collected, before malloc_trim."""
    if evidence.settled is None:
        return 0
    return max(0, evidence.settled.left_rss + (evidence.settled.trim_rss or 0))
