"""Rules about Python memory that somebody holds on to: kinds 1, 2, 3, 11, 12."""

from __future__ import annotations

from diagnostics.analysis.format import counted, format_bytes, format_count, format_share
from diagnostics.analysis.kinds.evidence import Evidence, Growth, Retained
from diagnostics.analysis.kinds.finding import CAPTURE, Finding, Rerun, silent
from diagnostics.analysis.kinds.holding import (
    RESULT,
    in_words,
    is_of_script,
    is_plain_data,
    largest,
    share,
    size_in_words,
)
from diagnostics.analysis.kinds.measures import (
    FLOOR_EACH,
    FLOOR_TOTAL,
    after_release,
    garbage,
    held_bytes,
    held_meanwhile,
    kept_by_units,
    let_go,
)
from diagnostics.analysis.sites import short_path
from diagnostics.analysis.suspects import Held

_SURE, _LIKELY, _MAYBE, _CLOSE = 0.9, 0.7, 0.4, 0.15
_UNLESS_RESULT = 0.48  # does not stand by itself, and close to a result that is small
_REFILLED = 0.5  # of what a unit leaves: made once, freed, and made again
_FAR_ABOVE = 5.0  # times what finished units leave: a failed one pins something
_STEADILY = 0.8
_HALF = 0.5
_SMALL_VALUE = 10_000


def per_unit_cache(evidence: Evidence) -> Finding:
    """Kind 1: every unit leaves memory behind, and the document holds it."""
    kept = kept_by_units(evidence)
    documents, unseen = share(evidence, 1), _without_chain(evidence)
    meanwhile = held_meanwhile(evidence)
    size = round(kept * (documents + meanwhile + unseen)) - round(garbage(evidence) * unseen)
    if kept < FLOOR_TOTAL or size < FLOOR_TOTAL:
        return silent(1)
    evidence_lines = [
        *_leaves(evidence),
        *_held_by(evidence, 1),
        *_survived_lines(evidence),
        *_follows(evidence),
    ]
    if documents > unseen:
        score = _SURE
    elif meanwhile > unseen:
        score = _LIKELY
    elif evidence.captured_at_end and evidence.capture_complete:
        score = _MAYBE  # somebody looked, and saw no document
    elif let_go(evidence) and after_release(evidence) >= _HALF * kept:
        score = _MAYBE  # freed by the program itself, and not given back: kinds 8 to 10 say more
    else:
        score = _LIKELY if evidence.settled else _LIKELY - _CLOSE
    if _release_seen(evidence):
        score -= _CLOSE  # kind 2 says it better
    unit = evidence.kind
    return Finding(
        1,
        score,
        size,
        tuple(evidence_lines),
        f"A run that releases each {unit} after its last use leaves as much behind.",
        None if documents else CAPTURE,
    )


def release_without_effect(evidence: Evidence) -> Finding:
    """Kind 2: as kind 1, though something is released in the same loop."""
    kept, retained = kept_by_units(evidence), evidence.retained
    held = share(evidence, 1) + held_meanwhile(evidence) + _without_chain(evidence)
    size = round(kept * held)
    if size < FLOOR_TOTAL or not _release_seen(evidence):
        return silent(2)
    lines = [
        f"`{call.text}` ({short_path(call.file)}:{call.line}) runs in the loop, and each"
        f" {evidence.kind} still leaves {format_bytes(_each(evidence))} behind"
        for call in evidence.releases[:2]
    ]
    refilled = retained is not None and retained.refilled >= _REFILLED
    if retained is not None and refilled:
        lines.append(
            f"{format_share(min(1.0, retained.refilled))} of what a {evidence.kind} leaves was made"
            " twice: by one line, then freed, then by another line and kept"
        )
    score = _SURE + 0.05 if refilled else _LIKELY + 0.1
    return Finding(
        2,
        score,
        size,
        (*lines, *_leaves(evidence), *_held_by(evidence, 1), *_survived_lines(evidence)),
        f"The same loop without the release call leaves more behind for each {evidence.kind}.",
        Rerun(
            "A line profile of the loop shows what each line adds and gives back.", {"lines": True}
        )
        if not refilled
        else None,
    )


def small_value_pins(evidence: Evidence) -> Finding:
    """Kind 3: values that were kept refer to the trees that they came from."""
    size, suspect = held_bytes(evidence, 3), largest(evidence, 3)
    if size < FLOOR_TOTAL or suspect is None:
        return silent(3)
    value = next((link for link in suspect.chain if 0 < link.size <= _SMALL_VALUE), None)
    small = f", itself {format_bytes(value.size)}" if value else ""
    return Finding(
        3,
        _SURE,
        size,
        (
            f"{format_bytes(size)} are held through {in_words(suspect.chain)}{small}",
            *_leaves(evidence),
        ),
        "Copies of the values, str(value), hold as much.",
    )


def exception_pins_frames(evidence: Evidence) -> Finding:
    """Kind 11: failed units keep their frames, through the exception that somebody kept."""
    retained, suspect = evidence.retained, largest(evidence, 11)
    by_chain = held_bytes(evidence, 11)
    if suspect is not None and by_chain >= FLOOR_TOTAL:
        lines = [f"{format_bytes(by_chain)} are held through {in_words(suspect.chain)}"]
        return Finding(11, _SURE, by_chain, (*lines, *_failures(evidence)), _NO_EXCEPTION)
    if retained is None or retained.failed_total < FLOOR_TOTAL:
        return silent(11)
    steps = retained.failed >= max(FLOOR_EACH, _FAR_ABOVE * retained.finished)
    if not steps:
        return silent(11)
    score = _LIKELY if _some_finished(retained) else _MAYBE  # else there is nothing to compare with
    return Finding(
        11, score, retained.failed_total, tuple(_failures(evidence)), _NO_EXCEPTION, CAPTURE
    )


_NO_EXCEPTION = "Units that fail leave as much behind when their exceptions are dropped."


def registry(evidence: Evidence) -> Finding:
    """Kind 12: a container of a module, a class or a closure gets an item for each unit."""
    suspect = largest(evidence, 12)
    if suspect is None:
        return _list_of_script(evidence)
    size = held_bytes(evidence, 12)
    lines = [f"{size_in_words(suspect)} are held through {in_words(suspect.chain)}"]
    native = _native_of_handles(evidence, suspect)
    if native is not None and native.over_units >= max(FLOOR_TOTAL, size):
        size = native.over_units
        lines.append(
            f"native memory grows by {format_bytes(native.per_unit)} a {evidence.kind} with them"
        )
    if size < FLOOR_TOTAL:
        return silent(12)
    return Finding(
        12,
        0.85,
        size,
        (*lines, *_leaves(evidence), *_follows(evidence)),
        _AS_LONG,
    )


_AS_LONG = "The container is as long after the last unit as after the first."


def _list_of_script(evidence: Evidence) -> Finding:
    """What a script collects in a list of its module may be its result, or a list that nobody
    empties: the chain looks alike."""
    suspect, size = largest(evidence, RESULT), held_bytes(evidence, RESULT)
    if suspect is None or size < FLOOR_TOTAL or not is_of_script(suspect.chain):
        return silent(12)
    return Finding(
        12,
        _UNLESS_RESULT,
        size,
        (f"{size_in_words(suspect)} are held through {in_words(suspect.chain)}",),
        _AS_LONG,
    )


def _native_of_handles(evidence: Evidence, suspect: Held) -> Growth | None:
    """The growth of native memory, where what the registry notes down may be its handles."""
    native = evidence.native
    mostly = share(evidence, 12) > _HALF and suspect.steadiness >= _STEADILY
    if is_of_script(suspect.chain) or is_plain_data(suspect.chain):
        return None  # a script's own list of handles is kind 4's affair, and text is no handle
    if native is None or not mostly or not native.goes_on or native.per_unit < FLOOR_EACH:
        return None
    return native


def _each(evidence: Evidence) -> float:
    if evidence.retained is not None:
        return evidence.retained.each
    return evidence.python.per_unit if evidence.python else 0


def _leaves(evidence: Evidence) -> list[str]:
    retained = evidence.retained
    if retained is None or not retained.each:
        return []
    return [
        f"each {evidence.kind} leaves {format_bytes(retained.each)} of Python memory behind, of"
        f" {format_bytes(retained.peak_each)} that it needs; {retained.alive_units} of"
        f" {retained.units} still held theirs when the last one ended"
    ]


def _held_by(evidence: Evidence, kind: int) -> list[str]:
    suspect = largest(evidence, kind)
    return (
        [f"{size_in_words(suspect)} are held through {in_words(suspect.chain)}"] if suspect else []
    )


def _survived_lines(evidence: Evidence) -> list[str]:
    retained = evidence.retained
    if retained is None or not retained.survived or not held_meanwhile(evidence):
        return []
    return [
        f"a full collection left {format_share(retained.survived)} of it alive while"
        f" {evidence.kind}s went on, and one at the end freed it: who held it was gone by then"
    ]


def _follows(evidence: Evidence) -> list[str]:
    if not evidence.followers:
        return []
    # A class of its own tells more than the dicts and tuples that come with it.
    named = [row for row in evidence.followers if not row.name.startswith("builtins.")]
    most = [*named, *evidence.followers][0]
    return [
        f"{format_count(round(most.per_unit))} more objects of {most.name} are alive after each"
        f" {evidence.kind}"
    ]


def _failures(evidence: Evidence) -> list[str]:
    retained = evidence.retained
    if retained is None or not retained.failed_units:
        return []
    finished = (
        f"those that finished {format_bytes(retained.finished)}"
        if _some_finished(retained)
        else f"with no finished {evidence.kind} to compare with"
    )
    return [
        f"{counted(retained.failed_units, 'failed ' + evidence.kind)} left"
        f" {format_bytes(retained.failed)} each, {finished}"
    ]


def _some_finished(retained: Retained) -> bool:
    """Whether a unit finished among those that count: the newest does not."""
    return retained.failed_units < retained.units - 1


def _release_seen(evidence: Evidence) -> bool:
    refilled = evidence.retained.refilled if evidence.retained else 0.0
    return bool(evidence.releases) or refilled >= _REFILLED


def _without_chain(evidence: Evidence) -> float:
    return share(evidence, None) if evidence.suspects else 1.0
