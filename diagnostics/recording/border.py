"""The border of a recording: what its tables may hold, whoever wrote them.

SQLite keeps any value in any column, and a file can be damaged or made up. So the rows of a table
are looked at once, here, before anybody calculates with them: types, words, and numbers that a run
can have had.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from math import isfinite
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from diagnostics.recording.model import Site

_TIMES_NS = range(1 << 61)  # 73 years; a sum of two is a number that SQLite and numpy can hold
_UNITS = range(1 << 39)  # from outside any unit to the highest number that a unit can have
_AMOUNTS = range(-(1 << 50), 1 << 50)  # 1 PB; thousands of them are a number of 64 bits
_ANY = range(1 << 63)  # addresses, and what people say that a unit produced

_RANGES = {
    "index": _UNITS,
    "unit": _UNITS,
    "first_unit": _UNITS,
    "last_unit": _UNITS,
    "generation": range(3),
    "bytes": _ANY,
    "characters": _ANY,
    "start": _ANY,
    "end": _ANY,
}
"""By a column's name; columns of nanoseconds and all others have a range of their own kind."""


@dataclass(frozen=True, slots=True)
class Column:
    """What a column may hold: values of ``types``, of the texts only ``words`` where there are
    any, of the whole numbers only those in ``numbers``, of the others only 0 to 1: shares."""

    name: str
    types: frozenset[type]
    numbers: range
    words: frozenset[str] = frozenset()

    def check(self, values: Collection[Any]) -> None:
        """Raises ``ValueError`` unless ``values``, which are at least one, may be in it."""
        found = set(map(type, values))
        if not found <= self.types:
            raise ValueError(f"a value of {self.name} is not of its column's type")
        if NoneType in found:
            values = [value for value in values if value is not None]
        if int in found and not (min(values) in self.numbers and max(values) in self.numbers):
            raise ValueError(f"a number of {self.name} cannot be")
        if float in found and not all(0 <= share <= 1 for share in values):
            raise ValueError(f"a share of {self.name} is not between 0 and 1")
        if self.words and not self.words.issuperset(values):
            raise ValueError(f"a word of {self.name} means nothing")


Columns = tuple[Column, ...]


def check(rows: Sequence[tuple[Any, ...]], columns: Columns) -> None:
    """Raises ``ValueError`` unless every value in ``rows`` may be in its column."""
    if not rows:
        return
    if len(rows[0]) != len(columns):
        raise ValueError(f"a row has {len(rows[0])} values instead of {len(columns)}")
    for column, values in zip(columns, zip(*rows, strict=True), strict=True):
        column.check(values)


def parsed(text: str) -> Any:
    """A value of ``meta``. Raises ``ValueError`` for what is no JSON, holds a number that is none
    or that is out of all proportion, or is nested too deeply to be read."""
    try:
        return json.loads(text, parse_constant=_refuse, parse_float=_finite, parse_int=_whole)
    except RecursionError as error:
        raise ValueError(f"meta is nested too deeply: {error}") from error


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _finite(number: str) -> float:
    value = float(number)
    if not isfinite(value):
        raise ValueError(f"{number} is no number of a recording")
    return value


def _whole(number: str) -> int:
    value = int(number)
    if abs(value) > _ANY[-1]:
        raise ValueError("a number of meta has more than 64 bits")
    return value


def check_sites(sites: Collection[Site], callers: Collection[int | None]) -> None:
    """Raises ``ValueError`` unless each of ``sites`` has its caller, and comes after it.

    ``callers`` are the sites that are there of those that ``sites`` name as their parents.
    """
    for site, caller in zip(sites, callers, strict=True):
        if site.parent != caller or (caller is not None and caller >= site.id):
            raise ValueError(f"site {site.id} has no caller")


@lru_cache
def columns_of(row_type: type[Any]) -> Columns:
    """The columns of a table whose rows are of a class of the model, from its annotations."""
    hints = get_type_hints(row_type)
    return tuple(_column(field.name, hints[field.name]) for field in fields(row_type))


@lru_cache
def columns(**hints: Any) -> Columns:
    """Columns by name, with what they hold: ``columns(id=int, parent=int | None)``."""
    return tuple(_column(name, hint) for name, hint in hints.items())


def _column(name: str, hint: Any) -> Column:
    words: frozenset[str] = frozenset()
    if get_origin(hint) is Literal:
        words, hint = frozenset(get_args(hint)), str
    elif hint is bool:
        hint = int  # SQLite knows no truth values
    types = frozenset(get_args(hint) or {hint})  # the parts of a union, or the type itself
    usual = _TIMES_NS if name.endswith("_ns") else _AMOUNTS
    return Column(name, types, _RANGES.get(name, usual), words)
