"""memory_profiler's line profiler, made right for threads, generators and nested calls.

Imported only when a line profile is asked for: memory_profiler brings much along.
"""

from __future__ import annotations

import functools
import inspect
import sys
import threading
import time
from collections.abc import Callable, Generator
from types import CodeType, FrameType, FunctionType
from typing import Any, NamedTuple

from memory_profiler import LineProfiler

TraceFunction = Callable[..., Any]


class LineFigures(NamedTuple):
    """One line so far: bytes added by all its executions, resident bytes after the last, hits."""

    increment: int
    rss: int
    hits: int


_Lines = dict[int, LineFigures]


class _Call:
    """A traced frame at work: which line it is on, and the resident set when that line began."""

    __slots__ = ("began_with", "counts", "frame", "line", "lines", "started_with")

    def __init__(self, frame: int, lines: _Lines, line: int, rss: int, counts: bool) -> None:
        self.frame = frame
        self.lines = lines
        self.line = line
        self.began_with = rss
        self.started_with = rss
        self.counts = counts


class _ThreadState(threading.local):
    def __init__(self) -> None:
        self.depth = 0
        self.previous: TraceFunction | None = None
        self.calls: list[_Call] = []


class LineTracer(LineProfiler):  # type: ignore[misc]
    """Follows the lines of the functions given to ``wrap``, in every thread that runs them.

    What is memory_profiler's: which code belongs to a function (its ``code_map``, nested functions
    included), and the tracing of lines through ``sys.settrace``. What differs, because it compares
    a line with the *highest* reading of the line that ran before it, whoever ran that:

    - a line is compared with the resident set when this very execution of it began;
    - in a call, the increments of all lines add up to what the call added;
    - each thread has its own state, where memory_profiler traces only the first;
    - generators and coroutines are followed while they run, not only while they are made;
    - only the frames of these functions are traced line by line, not all that they call.
    """

    def __init__(self, read_rss: Callable[[], int]) -> None:
        super().__init__(backend="psutil")
        self._read_rss = read_rss
        self._thread = _ThreadState()
        self._lock = threading.Lock()
        self._lines_of: dict[int, _Lines] = {}
        self._is_on = True
        self.cost_ns = 0
        self.readings = 0

    def wrap(self, function: FunctionType, code: CodeType) -> Callable[..., Any]:
        """A function that does what ``function`` does, and has the lines of ``code`` followed."""
        self.code_map.add(code)
        # By identity, which is quicker than comparing code, and asked for at every call.
        self._lines_of = {id(inner): self.code_map[inner] for inner in self.code_map}
        return _wrapped(function, self)

    def figures(self, code: CodeType) -> _Lines:
        """Line number -> figures, of the lines that ran."""
        with self._lock:
            return dict(self.code_map[code])

    def turn_off(self) -> None:
        """Trace nothing any more, in no thread."""
        self._is_on = False

    def enable_by_count(self) -> None:
        thread = self._thread
        if thread.depth == 0:
            thread.previous = sys.gettrace()
            thread.calls.clear()
            sys.settrace(self.trace_memory_usage)
        thread.depth += 1

    def disable_by_count(self) -> None:
        thread = self._thread
        thread.depth -= 1
        if thread.depth == 0:
            sys.settrace(thread.previous)

    def trace_memory_usage(self, frame: FrameType, event: str, arg: Any) -> Any:
        """The trace function. It must not raise: the error would reach the traced program."""
        if not self._is_on:
            return None
        previous = self._thread.previous
        lines = self._lines_of.get(id(frame.f_code))
        if lines is None:
            return previous(frame, event, arg) if previous is not None else None
        begin = time.monotonic_ns()
        self._follow(frame, event, lines)
        self.cost_ns += time.monotonic_ns() - begin
        if previous is not None:
            previous(frame, event, arg)
        return self.trace_memory_usage

    def _follow(self, frame: FrameType, event: str, lines: _Lines) -> None:
        if event not in ("call", "line", "return"):
            return
        calls = self._thread.calls
        rss = self._read_rss()
        if event == "call":
            # A generator that goes on is called again, in the middle of a line counted before.
            goes_on = frame.f_lineno != frame.f_code.co_firstlineno
            calls.append(_Call(id(frame), lines, frame.f_lineno, rss, not goes_on))
            return
        if not calls or calls[-1].frame != id(frame):
            # A frame whose call was not seen; where its line began from is not known.
            calls.append(_Call(id(frame), lines, frame.f_lineno, rss, False))
            if event == "line":
                return
        call = calls[-1]
        self._book(call, rss)
        if event == "line":
            call.line, call.began_with, call.counts = frame.f_lineno, rss, True
            return
        calls.pop()
        self._leave_to_inner(call, rss)

    def _book(self, call: _Call, rss: int) -> None:
        with self._lock:
            before = call.lines.get(call.line, LineFigures(0, 0, 0))
            call.lines[call.line] = LineFigures(
                before.increment + rss - call.began_with, rss, before.hits + call.counts
            )
            self.readings += 1

    def _leave_to_inner(self, ended: _Call, rss: int) -> None:
        """The lines of an inner call to the same function have what they added: not twice."""
        for outer in reversed(self._thread.calls):
            if outer.lines is ended.lines:
                outer.began_with += rss - ended.started_with
                return


def _wrapped(function: FunctionType, tracer: LineTracer) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def profiled_coroutine(*args: Any, **kwargs: Any) -> Any:
            return await _Steps(function(*args, **kwargs), tracer)

        return profiled_coroutine

    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def profiled_generator(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            return (yield from _Steps(function(*args, **kwargs), tracer))

        return profiled_generator

    @functools.wraps(function)
    def profiled(*args: Any, **kwargs: Any) -> Any:
        with tracer:
            return function(*args, **kwargs)

    return profiled


class _Steps(Generator[Any, Any, Any]):
    """A generator or coroutine that is traced while it runs, and not while others do."""

    def __init__(self, inner: Any, tracer: LineTracer) -> None:
        self._inner = inner
        self._tracer = tracer

    def __await__(self) -> Generator[Any, Any, Any]:
        return self

    def send(self, value: Any) -> Any:
        with self._tracer:
            return self._inner.send(value)

    def throw(self, *error: Any) -> Any:
        with self._tracer:
            return self._inner.throw(*error)

    def close(self) -> None:
        with self._tracer:
            self._inner.close()
