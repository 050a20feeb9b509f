"""The functions that run or wait, and what their local names refer to."""

from __future__ import annotations

import ctypes
import inspect
import sys
import types
from collections.abc import Collection, Iterator
from typing import Any

_OPTIMIZED = inspect.CO_OPTIMIZED
_MAKES_SNAPSHOTS = sys.version_info < (3, 13)
"""Before 3.13 ``frame.f_locals`` is a dict that the frame keeps, and every value with it."""

_NOBODY_ELSE = 3

_FRAME_ATTRIBUTE = {
    types.GeneratorType: "gi_frame",
    types.CoroutineType: "cr_frame",
    types.AsyncGeneratorType: "ag_frame",
}


def running_frames(thread: int) -> Iterator[types.FrameType]:
    """The frames of a thread, innermost first; nothing where the thread is gone."""
    frame = sys._current_frames().get(thread)
    while frame is not None:
        yield frame
        frame = frame.f_back


def has_own_namespace(frame: types.FrameType) -> bool:
    """Whether it runs a module, class body or ``exec``: its names live in a dict of the program."""
    return not frame.f_code.co_flags & _OPTIMIZED


def frame_of(item: Any) -> types.FrameType | None:
    """The frame of a generator, coroutine or asynchronous generator that has not ended."""
    attribute = _FRAME_ATTRIBUTE.get(type(item))
    frame = getattr(item, attribute) if attribute else None
    return frame if isinstance(frame, types.FrameType) else None


def local_ids(frame: types.FrameType, callee_locals: Collection[int] = ()) -> dict[str, int]:
    """The local names of a function's frame and the ids of what they refer to.

    No reference is left behind: before 3.13 Python fills a dict that it keeps with the frame, so
    that dict is emptied again. It stays as it is where somebody else has it (``locals()``) or
    where the frame is being traced, since then its values are written back into the function.
    ``callee_locals`` are the ids of the frame that this one waits for: a trace function is known by
    having the traced frame among its own.
    """
    values = frame.f_locals
    names = {name: id(values[name]) for name in list(values)}
    traced = frame.f_trace is not None or id(frame) in callee_locals
    temporary = _MAKES_SNAPSHOTS and not has_own_namespace(frame) and not traced
    # Referred to by the frame, by `values`, and by the argument of getrefcount.
    if temporary and sys.getrefcount(values) == _NOBODY_ELSE:
        values.clear()
        # One dict more would be tracked than before; an empty one needs no tracking.
        ctypes.pythonapi.PyObject_GC_UnTrack(ctypes.py_object(values))
    return names
