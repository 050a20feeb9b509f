"""The kinds of memory trouble: one row each, with the fix in general words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Part = Literal["python", "native", "freed", "peak", "open", "others"]
"""Which bytes a kind is about. Kinds of one part explain the same bytes and compete for them; kinds
of different parts stack."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One row of the table. ``number`` 0 is "nothing wrong"."""

    number: int
    title: str
    part: Part
    fix: str


_ROWS = (
    Kind(0, "nothing wrong", "python", ""),
    Kind(
        1,
        "per-unit cache kept on the document",
        "python",
        "Release each unit after its last use, and check that the release call really frees.",
    ),
    Kind(
        2,
        "release call without effect",
        "python",
        "Release after the last use, not before, and release the object that holds the memory.",
    ),
    Kind(
        3,
        "small value pins a big tree",
        "python",
        "Copy the value out of its tree before you keep it: str(value), float(value).",
    ),
    Kind(
        4,
        "native objects held by Python handles",
        "native",
        "Close the handles, keep fewer of them, or stream.",
    ),
    Kind(
        5,
        "native library's own cache",
        "native",
        "Turn the library's own knob: its cache limit or the call that empties it.",
    ),
    Kind(
        6,
        "missing DECREF in an extension",
        "python",
        "Upgrade the extension, or use another call of it.",
    ),
    Kind(
        7,
        "cycles waiting for the collector",
        "python",
        "Break the cycle, or collect after each document; look at gc.get_threshold().",
    ),
    Kind(
        8,
        "freed, can be returned",
        "freed",
        "Call malloc_trim(0) after each document, use another allocator, or load in a process"
        " of its own.",
    ),
    Kind(
        9,
        "freed, pinned by survivors",
        "freed",
        "Use another allocator, keep fewer long-lived blocks among short-lived ones, or load in"
        " a process of its own.",
    ),
    Kind(
        10,
        "pymalloc arenas pinned",
        "freed",
        "Load in a process of its own, which gives all back when it ends, or keep fewer small"
        " objects from among many short-lived ones: one that is alive keeps its whole arena.",
    ),
    Kind(
        11,
        "exception pins frames",
        "python",
        "Drop the exception, or keep its text and raise a new one without its traceback.",
    ),
    Kind(
        12,
        "registry, task set, closure, finalizer or logger",
        "python",
        "Take items out when they are done, bound the container, or hold them by weak reference.",
    ),
    Kind(
        13,
        "bounded cache",
        "python",
        "Nothing, if the limit is what you want; else give the cache a lower limit.",
    ),
    Kind(
        14,
        "one-unit peak",
        "peak",
        "Guard that unit, load it in a child process, or simplify it.",
    ),
    Kind(15, "whole document materialised", "open", "Stream: read one unit at a time."),
    Kind(16, "phantom dimensions", "open", "Cap the width: read the real range, not the declared."),
    Kind(
        17,
        "somebody else's memory",
        "others",
        "Recycle the workers, and look at the number that counts: the group's, not this RSS.",
    ),
    Kind(
        18,
        "queue without backpressure",
        "python",
        "Bound the queue, so that the producer waits for the consumer.",
    ),
    Kind(
        19,
        "model caches",
        "native",
        "Release the cache after each request, and cap its length.",
    ),
)

KINDS: Mapping[int, Kind] = {row.number: row for row in _ROWS}
"""The rows by number, 0 to 19."""
