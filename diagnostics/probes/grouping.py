"""Sums of a tracemalloc snapshot by allocation stack, without an object for each block."""

from __future__ import annotations

import gc
import tracemalloc
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

Stack = tuple[tuple[str, int], ...]
"""Frames of one allocation, most recent first: file and line."""


StackSum = tuple[Stack, int, int]
"""One stack, and the live bytes and blocks that have it. A plain tuple: what a named one allocates
is booked on the place where the library made its class, and would not be known as ours."""


def live_sums() -> list[StackSum]:
    """What lives now, by stack.

    The snapshot holds one tuple for each live block: with the collector on they would set off
    collections, also full ones, that the program would not have had. It is off until they are
    gone; the collector's own counts are then what they were before.
    """
    with _collector_paused():
        return group(tracemalloc.take_snapshot())


def group(snapshot: tracemalloc.Snapshot) -> list[StackSum]:
    """The sums of ``snapshot``, by stack.

    The public view builds three objects for each block; the raw rows behind it are plain tuples.
    """
    rows = getattr(snapshot.traces, "_traces", None)
    if isinstance(rows, list) and (not rows or _is_raw(rows[0])):
        return _group_raw(rows)
    return _group_public(snapshot.traces)


def _is_raw(row: Any) -> bool:
    """(domain, size, ((file, line), ...), number of frames), as it is from Python 3.9 on."""
    return (
        isinstance(row, tuple)
        and len(row) == 4
        and isinstance(row[1], int)
        and isinstance(row[2], tuple)
    )


def _group_raw(rows: list[tuple[int, int, Stack, int]]) -> list[StackSum]:
    # While tracemalloc runs, every number made here would cost a traced allocation: adding up in
    # place takes 5 to 30 times as long as collecting the sizes, which exist already.
    sizes: defaultdict[Stack, list[int]] = defaultdict(list)
    for _domain, size, stack, _frames in rows:
        sizes[stack].append(size)
    return [(stack, sum(parts), len(parts)) for stack, parts in sizes.items()]


def _group_public(traces: Iterable[tracemalloc.Trace]) -> list[StackSum]:
    sums: dict[Stack, tuple[int, int]] = {}
    for trace in traces:
        # A traceback lists the most recent frame last.
        stack = tuple((frame.filename, frame.lineno) for frame in reversed(list(trace.traceback)))
        size, blocks = sums.get(stack, (0, 0))
        sums[stack] = (size + trace.size, blocks + 1)
    return [(stack, size, blocks) for stack, (size, blocks) in sums.items()]


@contextmanager
def _collector_paused() -> Iterator[None]:
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
