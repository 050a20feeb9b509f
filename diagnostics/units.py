"""Unit marks: which piece of work - a page, a chunk, a request - is going on right now.

The current unit is a context variable, so every thread and every asyncio task has its own. Without
a recording the marks cost next to nothing and do nothing: leave them in the code.
"""

from __future__ import annotations

import functools
import inspect
import operator
import sys
import threading
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, replace
from types import CodeType, TracebackType
from typing import Any, Literal, Self, TypeVar, cast, overload

from diagnostics.errors import RunCancelled
from diagnostics.recording.model import UnitRow, UnitStatus
from diagnostics.recording.texts import message_of, storable
from diagnostics.unit_numbers import UnitNumbers

Item = TypeVar("Item")
Function = TypeVar("Function", bound=Callable[..., Any])


_MOST_UNITS = 2**39 - 1
"""Above it the ids of the series "alive", which carry a unit's index, leave 64 bits."""

_MOST_OUTPUT = 2**63 - 1


class Mark(int):
    """The index of a unit, and the book of the recording that it belongs to."""

    book: UnitBook


unit_variable: ContextVar[int] = ContextVar("page87_unit", default=0)
_active: UnitBook | None = None


def current_unit() -> int:
    """The index of the unit that the calling thread or task works on; 0 outside any unit."""
    mark = unit_variable.get()
    return int(mark) if isinstance(mark, Mark) and mark.book.is_open(mark) else 0


def produced(*, characters: int = 0, bytes: int = 0) -> None:  # noqa: A002 - the word for it
    """Add to what the current unit has produced. Outside a unit this does nothing.

    Raises ``TypeError`` or ``ValueError`` for what is no whole number from 0 to 2**63 - 1.
    """
    characters, bytes = _amount("characters", characters), _amount("bytes", bytes)  # noqa: A001
    mark = unit_variable.get()
    if isinstance(mark, Mark):
        mark.book.add_output(mark, characters, bytes)


@dataclass(eq=False, slots=True)
class _Entered:
    """One entry into a unit: its mark, None inside another unit, and what was current before."""

    mark: Mark | None
    previous: int


class unit:  # noqa: N801 - reads as a verb: with unit("page", 87)
    """Marks one unit of work, as a context manager or as a decorator.

    ``number`` becomes the unit's index where it is free in this recording; without one, and where
    the number was used before, the next free index is taken. Inside another unit nothing is
    marked: the outer one's number stays. An exception marks the unit failed, with its type and
    message, and goes on to the caller untouched. Raises ``TypeError`` for a kind or label that is
    no text and a number that is no whole one, ``ValueError`` for one outside of 1 to 2**39 - 1.

    As a decorator it marks every call of a function or coroutine function as a unit of its own.
    """

    def __init__(self, kind: str = "page", number: int | None = None, *, label: str = "") -> None:
        self.kind = _text("kind", kind)
        self.number = None if number is None else operator.index(number)
        self.label = _text("label", label)
        if self.number is not None and not 1 <= self.number <= _MOST_UNITS:
            raise ValueError("units are numbered from 1 to 2**39 - 1; 0 means outside any unit")
        self._entered: list[_Entered] = []  # one object may be entered again, and by many threads

    def __enter__(self) -> Self:
        if _active is not None:
            previous = unit_variable.get()
            mark = _active.begin(self.kind, self.number, self.label)
            self._entered.append(_Entered(mark, previous))
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        entered = self._last_entered()
        if entered is not None and entered.mark is not None:
            entered.mark.book.end(entered.mark, _status(error), error)
            _leave(entered.mark, entered.previous)

    def _last_entered(self) -> _Entered | None:
        """Take out what the calling thread or task entered last; None without a recording then."""
        entered = list(self._entered)
        if not entered:
            return None
        here = unit_variable.get()
        own = (one for one in reversed(entered) if here is (one.mark or one.previous))
        last = next(own, entered[-1])  # a generator can be closed in another context than it ran in
        self._entered.remove(last)
        return last

    def __call__(self, function: Function) -> Function:
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError("a generator's units are its items: iterate it with units()")

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def marked_coroutine(*args: Any, **kwargs: Any) -> Any:
                with unit(self.kind, self.number, label=self.label):
                    return await function(*args, **kwargs)

            return cast(Function, marked_coroutine)

        @functools.wraps(function)
        def marked(*args: Any, **kwargs: Any) -> Any:
            with unit(self.kind, self.number, label=self.label):
                return function(*args, **kwargs)

        return cast(Function, marked)


@overload
def units(
    items: AsyncIterable[Item],
    kind: str = ...,
    *,
    total: int | None = ...,
    label: Callable[[int], str] | None = ...,
) -> AsyncIterator[Item]: ...
@overload
def units(
    items: Iterable[Item],
    kind: str = ...,
    *,
    total: int | None = ...,
    label: Callable[[int], str] | None = ...,
) -> Iterator[Item]: ...
def units(
    items: Iterable[Item] | AsyncIterable[Item],
    kind: str = "page",
    *,
    total: int | None = None,
    label: Callable[[int], str] | None = None,
) -> Iterator[Item] | AsyncIterator[Item]:
    """Iterate ``items`` and mark each as a unit: getting the item and working on it.

    The unit begins before the item is asked for, since that is where a lazy loader does its work.
    ``total`` is the number of items, for progress; a list, tuple or range tells it by itself.
    ``label`` names a unit from its index.

    As any generator, the iterator belongs to one thread. Threads that share the work take their
    items from a queue and mark each with ``unit``; one that asks while another is being served
    gets Python's "generator already executing".
    """
    _text("kind", kind)
    total = None if total is None else operator.index(total)
    if isinstance(items, AsyncIterable):
        return _marked_async(items, kind, total, label)
    if total is None and isinstance(items, (list, tuple, range)):
        total = len(items)
    return _marked(items, kind, total, label)


def _marked(
    items: Iterable[Item], kind: str, total: int | None, label: Callable[[int], str] | None
) -> Iterator[Item]:
    iterator = iter(items)
    passing: list[Item] = []  # handed through and emptied: no reference to the item is kept here
    if _active is not None and total is not None:
        _active.expect(kind, total)
    while True:
        step = _Step(kind, label)
        try:
            passing.append(next(iterator))
        except StopIteration:
            step.withdraw()
            return
        except BaseException as error:
            step.end(error)
            raise
        try:
            yield passing.pop()
        except GeneratorExit:
            step.left(sys._getframe(1))
            raise
        except BaseException as error:
            step.end(error)
            raise
        step.end(None)


async def _marked_async(
    items: AsyncIterable[Item], kind: str, total: int | None, label: Callable[[int], str] | None
) -> AsyncIterator[Item]:
    iterator = aiter(items)
    passing: list[Item] = []
    if _active is not None and total is not None:
        _active.expect(kind, total)
    while True:
        step = _Step(kind, label)
        try:
            passing.append(await anext(iterator))
        except StopAsyncIteration:
            step.withdraw()
            return
        except BaseException as error:
            step.end(error)
            raise
        try:
            yield passing.pop()
        except GeneratorExit:
            step.left(None)
            raise
        except BaseException as error:
            step.end(error)
            raise
        step.end(None)


class _Step:
    """The unit around one item of ``units()``; does nothing without a recording, or when nested."""

    def __init__(self, kind: str, label: Callable[[int], str] | None) -> None:
        self._previous = unit_variable.get()
        self._mark = None if _active is None else _active.begin(kind, None, "", label)

    def withdraw(self) -> None:
        if self._mark is not None:
            self._mark.book.withdraw(self._mark)
            _leave(self._mark, self._previous)

    def end(self, error: BaseException | None) -> None:
        if self._mark is not None:
            self._mark.book.end(self._mark, _status(error), error)
            _leave(self._mark, self._previous)

    def left(self, frame: Any) -> None:
        if self._mark is not None:
            place = None if frame is None else (frame.f_code, frame.f_lineno)
            self._mark.book.end(self._mark, "left", None, place)
            _leave(self._mark, self._previous)


def _text(name: str, value: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"the {name} of a unit is a text, not {type(value).__name__}")
    return value


def _amount(name: str, value: int) -> int:
    amount = operator.index(value)
    if not 0 <= amount <= _MOST_OUTPUT:
        raise ValueError(f"{name} is a whole number from 0 to 2**63 - 1")
    return amount


def _leave(mark: Mark, previous: int) -> None:
    # An iterator can be closed in another context than the one it ran in; that one's mark stays.
    if unit_variable.get() is mark:
        unit_variable.set(previous)


def _status(error: BaseException | None) -> UnitStatus:
    if error is None:
        return "finished"
    return "cancelled" if isinstance(error, (RunCancelled, KeyboardInterrupt)) else "failed"


@dataclass(slots=True)
class _Open:
    row: UnitRow
    characters: int = 0
    bytes: int = 0


Change = UnitRow | int
"""A unit as it stands now, or the index of one that was taken back."""


class UnitBook:
    """The units of one recording: gives numbers, and keeps what changed until it is written.

    ``begin`` and ``end`` are called from the loader's threads, ``changes`` from the recorder's.
    """

    def __init__(
        self,
        now_ns: Callable[[], int],
        on_started: Callable[[int], None],
        on_ended: Callable[[int], None],
    ) -> None:
        self._now_ns = now_ns
        self._on_started = on_started
        self._on_ended = on_ended
        self._lock = threading.Lock()
        self._open: dict[int, _Open] = {}
        self._numbers = UnitNumbers()
        self._changes: deque[Change] = deque()
        self._last_left: tuple[UnitRow, tuple[CodeType, int]] | None = None
        self._totals: dict[str, int] = {}
        self.expected: tuple[str, int] | None = None
        self.last_index = 0
        self.cancel_requested = False

    def begin(
        self,
        kind: str,
        number: int | None,
        label: str,
        make_label: Callable[[int], str] | None = None,
    ) -> Mark | None:
        """Start a unit and make it the current one; None inside another unit.

        Raises ``RunCancelled`` when the user asked for the end of the run.
        """
        if self.cancel_requested:
            raise RunCancelled
        if self._is_inside():
            return None
        with self._lock:
            index = self._numbers.take(number)
        if not label:
            label = str(make_label(index)) if make_label else f"{kind} {number or index}"
        row = UnitRow(
            index,
            storable(kind),
            storable(label),
            self._now_ns(),
            thread=threading.current_thread().name,
        )
        self._open[index] = _Open(row)
        self.last_index = index
        self._changes.append(row)
        mark = Mark(index)
        mark.book = self
        unit_variable.set(mark)
        self._on_started(index)
        return mark

    def end(
        self,
        index: int,
        status: UnitStatus,
        error: BaseException | None = None,
        place: tuple[CodeType, int] | None = None,
    ) -> None:
        """End a unit. ``place`` is where a loop over ``units()`` was left."""
        index = int(index)  # what is kept and handed on is a number, without the book behind a mark
        if index not in self._open:
            return  # the recording ended before the unit did
        self._on_ended(index)
        unit_open = self._open.pop(index, None)
        if unit_open is None:
            return
        row = replace(
            unit_open.row,
            end_ns=self._now_ns(),
            status=status,
            error_type=storable(type(error).__name__) if error is not None else None,
            error_message=message_of(error) if error is not None else None,
            bytes=min(unit_open.bytes, _MOST_OUTPUT),
            characters=min(unit_open.characters, _MOST_OUTPUT),
        )
        self._changes.append(row)
        if place is not None:
            self._last_left = (row, place)

    def withdraw(self, index: int) -> None:
        """Take back a unit that turned out not to exist: the iterator was at its end."""
        index = int(index)
        if self._open.pop(index, None) is None:
            return
        self._on_ended(index)
        with self._lock:
            self._numbers.give_back(index)
            highest = self._numbers.highest()
        self._changes.append(index)
        if self.last_index == index:
            self.last_index = highest

    def _is_inside(self) -> bool:
        outer = unit_variable.get()
        return isinstance(outer, Mark) and outer.book is self and self.is_open(outer)

    def running(self) -> set[int]:
        """The units that have begun and not ended."""
        return set(self._open)

    def is_open(self, index: int) -> bool:
        return index in self._open

    def add_output(self, index: int, characters: int, size: int) -> None:
        unit_open = self._open.get(index)
        if unit_open is not None:
            unit_open.characters += characters
            unit_open.bytes += size

    def expect(self, kind: str, total: int) -> None:
        """Note that a loop of ``total`` units begins; loops of one kind are added up.

        A loop inside a unit marks nothing, and one that tells less than 1 tells nothing.
        """
        if total < 1 or self._is_inside():
            return
        with self._lock:
            self._totals[kind] = self._totals.get(kind, 0) + total
            self.expected = (storable(kind), self._totals[kind])

    def close(self, error: BaseException | None) -> None:
        """End what is still open, as the run ends with ``error`` or without one."""
        status: Literal["failed", "cancelled", "left"] = "left"
        if error is not None:
            status = "cancelled" if _status(error) == "cancelled" else "failed"
        for index in list(self._open):
            self.end(index, status, error)
        if error is not None and self._last_left is not None:
            row, place = self._last_left
            # A loop that is left by an exception is left on the very line that the traceback
            # names; one that is left by `break` is left on another.
            if place in _places(error.__traceback__):
                self._changes.append(
                    replace(
                        row,
                        status=status,
                        error_type=storable(type(error).__name__),
                        error_message=message_of(error),
                    )
                )

    def changes(self) -> list[Change]:
        """What changed since the last call, in order."""
        taken: list[Change] = []
        while self._changes:
            taken.append(self._changes.popleft())
        return taken


def _places(traceback: TracebackType | None) -> Iterator[tuple[CodeType, int]]:
    while traceback is not None:
        yield traceback.tb_frame.f_code, traceback.tb_lineno
        traceback = traceback.tb_next


def activate(book: UnitBook | None) -> None:
    """Make ``book`` the one that unit marks write to; None for no recording."""
    global _active
    _active = book
