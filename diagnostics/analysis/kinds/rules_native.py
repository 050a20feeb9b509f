"""Rules about memory outside of Python's heap: kinds 4, 5, 17, 19."""

from __future__ import annotations

from diagnostics.analysis.format import counted, format_bytes
from diagnostics.analysis.kinds.evidence import STEADY, Evidence, Growth
from diagnostics.analysis.kinds.finding import CAPTURE, CHILD, SETTLE, Finding, silent
from diagnostics.analysis.kinds.holding import (
    holding_kind,
    in_words,
    is_of_script,
    is_plain_data,
    largest,
    share,
)
from diagnostics.analysis.kinds.libraries import libraries
from diagnostics.analysis.kinds.measures import (
    FLOOR_EACH,
    FLOOR_TOTAL,
    NATIVE_FLOOR,
    after_release,
    held_bytes,
    let_go,
    outlives_release,
    released_native,
)
from diagnostics.analysis.suspects import Held

_HALF = 0.5
_STEADILY = 0.8
_CHILDREN_FLOOR = 20_000_000
_GROUP_FLOOR = 64_000_000
_GROUP_TIMES = 10.0
_SURE, _LIKELY, _MAYBE = 0.9, 0.7, 0.4
_UNTIL_SEEN_TO_GO = 0.6  # a cache, or what holders that live on have in native memory
_NO_HANDLE = frozenset({6, 11, 12, 13, 18})  # holdings that are another kind's affair


def native_handles(evidence: Evidence) -> Finding:
    """Kind 4: native memory grows with the units, and goes when Python lets go of its handles."""
    native = _grows(evidence)
    if native is None:
        return silent(4)
    released = released_native(evidence)
    handles = _handles(evidence)
    lines = [_growth_line(evidence, native)]
    if handles is not None:
        lines.append(
            f"{counted(handles.units, evidence.kind)} are still held through"
            f" {in_words(handles.chain)}"
        )
    elif evidence.followers:
        most = evidence.followers[0]
        lines.append(f"{most.per_unit:.1f} more {most.name} are alive after each {evidence.kind}")
    went = released is not None and released >= _HALF * native.over_units
    if handles is not None and is_of_script(handles.chain):
        # A script's own names stay to the end: what is seen to go while they stay was not theirs.
        seen = evidence.left is not None and evidence.left.after_settlement
        score = 0.2 if went and seen else 0.9
    elif released is None:
        # Handles or a cache (kind 5): a growth that goes on is a trouble either way.
        score = 0.7 if handles is not None else 0.5
    elif went:
        lines.append(f"{format_bytes(released)} of it went when all was let go")
        score = 0.9 if handles is not None or evidence.followers else 0.6
        if handles is None and let_go(evidence) and after_release(evidence) >= released:
            score = 0.4  # freed by the program itself, and not given back: kinds 8 to 10 say more
    elif handles is not None and outlives_release(evidence, handles):
        lines.append(
            f"{format_bytes(native.over_units - released)} of it stayed when the result was"
            " released and collected, and so did they"
        )
        score = _SURE if _is_of_library(evidence, handles) else _LIKELY
    else:
        score = 0.2
    if _model_library(evidence) and handles is None:
        score *= _HALF
    return Finding(
        4,
        score,
        native.over_units,
        tuple(lines),
        "Native memory stays when the handles are closed.",
        SETTLE if released is None else None if handles is not None else CAPTURE,
    )


def native_cache(evidence: Evidence) -> Finding:
    """Kind 5: native memory grew, and stays when nothing of Python's is left that may hold it."""
    native, released = evidence.native, released_native(evidence)
    if native is None or native.over_units < NATIVE_FLOOR:
        return silent(5)
    lines = [_growth_line(evidence, native)]
    if not native.goes_on:
        lines.append(f"it came to a cap: {format_bytes(native.late)} a {evidence.kind} of late")
    if released is None:
        return Finding(5, 0.4, native.over_units, tuple(lines), _ANOTHER_WAY, SETTLE)
    stayed = native.over_units - released
    if stayed < max(NATIVE_FLOOR, _HALF * native.over_units):
        return silent(5)
    holder = _living_on(evidence)
    if holder is None:
        lines.append(f"{format_bytes(stayed)} of it stayed when all was let go and collected")
    else:
        lines.append(
            f"{format_bytes(stayed)} of it stayed when the result was released and collected, but"
            f" so did what is held through {in_words(holder.chain)}"
        )
    score = 0.85
    registry = largest(evidence, 12)
    of_handles = registry is not None and not is_plain_data(registry.chain)
    if _model_library(evidence) or (of_handles and share(evidence, 12) > _HALF):
        score = _MAYBE
    elif holder is not None:
        score = _MAYBE if _is_of_library(evidence, holder) else _UNTIL_SEEN_TO_GO
    return Finding(5, score, stayed, tuple(lines), _ANOTHER_WAY)


_ANOTHER_WAY = "Native memory goes without the library's own call."


def somebody_elses(evidence: Evidence) -> Finding:
    """Kind 17: child processes grow, or others in the same control group; this process does not."""
    own = evidence.rss.over_units if evidence.rss else 0
    children, group = evidence.children, evidence.group
    if children is not None and children.over_units >= max(_CHILDREN_FLOOR, own):
        lines = [
            f"child processes grew by {format_bytes(children.over_units)} while units went on,"
            f" this process by {format_bytes(own)}"
        ]
        score = 0.9 if children.goes_on else 0.7
        return Finding(17, score, children.over_units, tuple(lines), _STILL_THERE, CHILD)
    if children is not None and children.end >= max(_CHILDREN_FLOOR * 2, evidence.base):
        lines = [
            f"child processes hold {format_bytes(children.end)}, this process took"
            f" {format_bytes(evidence.base)} at most"
        ]
        return Finding(17, 0.6, children.end, tuple(lines), _STILL_THERE, CHILD)
    if group is not None and group.goes_on and group.over_units >= _GROUP_FLOOR:
        others = group.over_units - own - (children.over_units if children else 0)
        if others >= max(_GROUP_FLOOR, _GROUP_TIMES * own):
            lines = [
                f"the control group's memory grew by {format_bytes(group.over_units)}, this"
                f" process and its children by {format_bytes(group.over_units - others)}"
            ]
            # On a machine that many share it may be anybody's: worth a word, no verdict.
            return Finding(17, 0.4, others, tuple(lines), _STILL_THERE, CHILD)
    return silent(17)


_STILL_THERE = "The same growth shows in this process's own RSS."


def model_caches(evidence: Evidence) -> Finding:
    """Kind 19: a model's library caches for each request."""
    size, suspect, library = (
        held_bytes(evidence, 19),
        largest(evidence, 19),
        _model_library(evidence),
    )
    lines: list[str] = []
    score = 0.0
    if suspect is not None and size >= FLOOR_TOTAL:
        lines.append(f"{format_bytes(size)} are held through {in_words(suspect.chain)}")
        score = 0.9
    native = _grows(evidence)
    if library and native is not None and _handles(evidence) is None:
        lines.append(f"{_growth_line(evidence, native)}, and {library} is loaded")
        size, score = size + native.over_units, max(score, 0.8)
    if not score:
        return silent(19)
    return Finding(
        19,
        score,
        size,
        tuple(lines),
        "Growth does not follow the length of the texts.",
        None if suspect else SETTLE,
    )


def _grows(evidence: Evidence) -> Growth | None:
    """Native memory, where it grows by more than a floor, with the units and to the end."""
    native, rss = evidence.native, evidence.rss
    if native is None or not native.goes_on or native.per_unit < FLOOR_EACH:
        return None
    # It is read after every unit, native memory perhaps at the start and the end alone, and else
    # now and then in the middle of one, whose bitmap would make the late growth too steep.
    if rss is not None and rss.late < STEADY * min(native.late, native.per_unit):
        return None
    return native if native.over_units >= NATIVE_FLOOR else None


def _growth_line(evidence: Evidence, native: Growth) -> str:
    python = evidence.python.over_units if evidence.python else 0
    return (
        f"native memory grew by {format_bytes(native.over_units)} while units went on"
        f" ({format_bytes(native.per_unit)} a {evidence.kind}), Python memory by"
        f" {format_bytes(python)}"
    )


def _handles(evidence: Evidence) -> Held | None:
    """The suspect that may be handles of native memory: of nearly every unit, held by Python."""
    found = [
        suspect
        for suspect in _of_nearly_every_unit(evidence)
        if is_of_script(suspect.chain) or holding_kind(suspect.chain) not in _NO_HANDLE
    ]
    return max(found, key=_units_and_bytes, default=None)


def _living_on(evidence: Evidence) -> Held | None:
    """The suspect that may be handles of native memory, and that was still held when the result
    had been released; text and numbers are no handles."""
    found = [
        suspect
        for suspect in _of_nearly_every_unit(evidence)
        if outlives_release(evidence, suspect) and not is_plain_data(suspect.chain)
    ]
    return max(found, key=_units_and_bytes, default=None)


def _of_nearly_every_unit(evidence: Evidence) -> list[Held]:
    """The suspects with a chain that nearly every unit adds to."""
    return [
        suspect
        for suspect in evidence.suspects
        if suspect.chain
        and suspect.steadiness >= _STEADILY
        and suspect.units >= _HALF * evidence.units
    ]


def _units_and_bytes(suspect: Held) -> tuple[int, int]:
    return suspect.units, suspect.bytes


def _is_of_library(evidence: Evidence, suspect: Held) -> bool:
    """Whether the suspect is held through an object of a library that the memory came through: a
    class of the loader's own has no native memory by itself."""
    return any(link.type.partition(".")[0] in evidence.packages for link in suspect.chain)


def _model_library(evidence: Evidence) -> str:
    """The first library of models that is loaded, or an empty text."""
    found = (
        entry.library for entry in libraries() if entry.model and entry.package in evidence.packages
    )
    return next(found, "")
