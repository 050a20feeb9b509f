"""The functions that run or wait, and what their local names refer to."""

from __future__ import annotations

import ctypes
import inspect
import sys
import types
from collections.abc import Collection, Iterator
from typing import Any

from diagnostics.probes.safe import plain_text

_OPTIMIZED = inspect.CO_OPTIMIZED


def running_frames(thread: int) -> Iterator[types.FrameType]:
    """The frames of a thread, innermost first; nothing where the thread is gone."""
    frame = sys._current_frames().get(thread)
    while frame is not None:
        yield frame
        frame = frame.f_back


def frame_of(item: Any) -> types.FrameType | None:
    """The frame of a generator, coroutine or asynchronous generator that has not ended."""
    kind = type(item)
    frame: types.FrameType | None = None
    if kind is types.GeneratorType:
        frame = item.gi_frame
    elif kind is types.CoroutineType:
        frame = item.cr_frame
    elif kind is types.AsyncGeneratorType:
        frame = item.ag_frame
    return frame


def place_in(frame: types.FrameType) -> tuple[str, str, int]:
    """The name of a frame's function, its file, and the line that it is at."""
    code = frame.f_code
    return plain_text(code.co_qualname), plain_text(code.co_filename), frame.f_lineno or 0


def function_place(function: types.FunctionType) -> tuple[str, str, int]:
    """The name of a function, its file, and the line that it begins at."""
    code = function.__code__
    return plain_text(function.__qualname__), plain_text(code.co_filename), code.co_firstlineno


def has_own_namespace(frame: types.FrameType) -> bool:
    """Whether it runs a module, class body or ``exec``: its names live in a dict of the program."""
    return not frame.f_code.co_flags & _OPTIMIZED


def namespace_of(frame: types.FrameType) -> dict[str, Any]:
    """The dict of the names that the code of a frame defines at its top level.

    Of the body of a class with variables that its methods capture these are the module's names:
    Python would store such a variable into the namespace, which may be an object of the program.
    """
    code = frame.f_code
    if has_own_namespace(frame) and not code.co_varnames and not code.co_cellvars:
        names = frame.f_locals
        if issubclass(type(names), dict):
            return names
    return frame.f_globals


if sys.version_info >= (3, 12):
    _value_of = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.py_object)(
        ("PyFrame_GetVar", ctypes.pythonapi)
    )

    def local_ids(
        frame: types.FrameType,
        callee_locals: Collection[int] = (),  # of concern to Python 3.11 only
    ) -> dict[str, int]:
        """The local names of a function's frame and the ids of what they refer to.

        ``frame.f_locals`` is not asked: before 3.13 that is a dict which the frame keeps, and the
        program too where it has called ``locals()``.
        """
        code, names = frame.f_code, {}
        for name in (*code.co_varnames, *code.co_cellvars, *code.co_freevars):
            try:
                names[name] = id(_value_of(frame, name))
            except NameError:  # it refers to nothing now
                continue
        return names

else:
    _NOBODY_ELSE = 3
    _MOST_LOCALS = 1 << 12

    class _Dict(ctypes.Structure):
        """The beginning of a dict."""

        _fields_ = (
            ("references", ctypes.c_ssize_t),
            ("type", ctypes.c_void_p),
            ("length", ctypes.c_ssize_t),
        )

    class _InnerFrame(ctypes.Structure):
        """``_PyInterpreterFrame`` in Python 3.11; there are as many values as the code has."""

        _fields_ = (
            ("function", ctypes.c_void_p),
            ("globals", ctypes.c_void_p),
            ("builtins", ctypes.c_void_p),
            ("locals", ctypes.POINTER(_Dict)),
            ("code", ctypes.c_size_t),
            ("frame", ctypes.c_void_p),
            ("previous", ctypes.c_void_p),
            ("instruction", ctypes.c_void_p),
            ("state", ctypes.c_void_p),
            ("values", ctypes.c_size_t * _MOST_LOCALS),
        )

    class _Frame(ctypes.Structure):
        """The beginning of ``PyFrameObject`` in Python 3.11."""

        _fields_ = (
            ("references", ctypes.c_ssize_t),
            ("type", ctypes.c_void_p),
            ("back", ctypes.c_void_p),
            ("inner", ctypes.POINTER(_InnerFrame)),
        )

    def _is_known_build() -> bool:
        """Whether this interpreter lays out its frames as builds for release do."""
        frame = sys._getframe()
        return bool(_Frame.from_address(id(frame)).inner.contents.code == id(frame.f_code))

    _IS_KNOWN_BUILD = _is_known_build()

    def local_ids(frame: types.FrameType, callee_locals: Collection[int] = ()) -> dict[str, int]:
        """The local names of a function's frame and the ids of what they refer to.

        Python tells them by filling a dict that it keeps with the frame. It is emptied again. That
        is not done where there is something in it already: the program has called ``locals()`` or
        ``exec()`` there, and may still have it. Nor is it where the frame is being traced, since
        what is in the dict is then written back into the function. There the values are read from
        where the function itself has them, but for those that inner functions share.

        ``callee_locals`` are the ids that the function has for locals which this one waits for: a
        trace function is known by having the traced frame among its own.
        """
        if has_own_namespace(frame) or not _IS_KNOWN_BUILD:
            return {}
        is_traced = frame.f_trace is not None or id(frame) in callee_locals
        if is_traced or not _is_untold(frame):
            return _unshared_ids(frame)
        values = frame.f_locals
        names = {name: id(value) for name, value in values.items()}
        # Referred to by the frame, by `values`, and by the argument of getrefcount.
        if sys.getrefcount(values) == _NOBODY_ELSE:
            values.clear()
            # One dict more would be tracked than before; an empty one needs no tracking.
            ctypes.pythonapi.PyObject_GC_UnTrack(ctypes.py_object(values))
        return names

    # Below, each expression goes from the frame down to what it asks for without a call on the way:
    # another thread, whose frame this may be, gets its turn at calls only.

    def _is_untold(frame: types.FrameType) -> bool:
        """Whether a frame has no dict of its locals yet, or an empty one that nobody else has."""
        view = _Frame.from_address(id(frame))
        try:
            references = view.inner.contents.locals.contents.references
            length = view.inner.contents.locals.contents.length
        except ValueError:  # a null pointer: no dict was made yet
            return True
        return bool(references == 1 and length == 0)

    def _unshared_ids(frame: types.FrameType) -> dict[str, int]:
        code, view = frame.f_code, _Frame.from_address(id(frame))
        ids = view.inner.contents.values[: len(code.co_varnames)]
        return {
            name: key
            for name, key in zip(code.co_varnames, ids, strict=False)
            if key and name not in code.co_cellvars
        }
