"""Birth units against time: which page the memory belongs to, and how long it stays."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from diagnostics.analysis.columns import ColumnHistory, Matrix
from diagnostics.analysis.format import sentence_case, span
from diagnostics.analysis.heap_changes import unit_changes
from diagnostics.analysis.heatmap import HeatTable
from diagnostics.analysis.retention import why_no_births
from diagnostics.analysis.series import FIRST_WIDTH_NS
from diagnostics.analysis.sites import Place
from diagnostics.analysis.units import UnitRows
from diagnostics.recording.reader import RecordingReader

_TOTAL, _OUTSIDE = 0, 1


@dataclass(frozen=True, eq=False)
class BirthTable(HeatTable):
    """Bytes by birth unit and time: a heat table with the first unit as row 0.

    ``values[row, column]`` is the most bytes that one unit of the row's ``units`` had alive at any
    moment of the column. A row's key is the number of its first unit. What was born outside any
    unit is the row "0", before the others. ``totals`` holds for each column the most that was
    alive at once, of all units together. ``now_key`` is the row of the unit in progress. An empty
    table says in ``gap`` why it is empty.
    """

    units: tuple[range, ...]
    totals: Matrix
    now_key: str | None = None
    gap: str = ""

    def key_of(self, unit: int) -> str | None:
        """The key of the row that shows ``unit``; None when there is no such row."""
        rows = zip(self.units, self.rows, strict=True)
        return next((place.key for units, place in rows if unit in units), None)

    def units_between(self, key: str | int, other: str | int | None = None) -> range | None:
        """The units of the rows from ``key`` to ``other``, in either order; of one row without it.

        Keys from an earlier table, whose rows have been joined since, are understood. None when
        the table has no such rows.
        """
        picked = [int(key), int(key if other is None else other)]
        rows = [units for unit in picked for units in self.units if unit in units]
        if len(rows) < len(picked):
            return None
        return range(min(row.start for row in rows), max(row.stop for row in rows))


class BirthHeat:
    """Builds a birth table from a recording, reading only the frames that are new.

    At most ``columns`` columns and ``rows`` rows (both even), whatever the length of the run and
    of the document: when there are more units than rows, neighbouring rows are joined in pairs,
    each pair keeping the higher value, so that no peak of a unit is ever lost.
    """

    def __init__(
        self, columns: int = 600, rows: int = 400, first_width_ns: int = FIRST_WIDTH_NS
    ) -> None:
        if rows < 2 or rows % 2:
            raise ValueError("rows is an even number: they are joined in pairs")
        self._most_rows = rows
        self._run = 1  # units in a row
        self._units = UnitRows()
        self._history = ColumnHistory(rows, columns, first_width_ns)
        self._sums = ColumnHistory(2, columns, first_width_ns)
        self._known: dict[int, int] = {}  # by pair of unit and site, as of the last frame
        self._bytes: Counter[int] = Counter()  # by unit, likewise
        self._base: int | None = None  # where row 0 begins: at a unit, or below the first one
        self._first = 0
        self._last = 0
        self._last_ns = -1
        self._gap = ""

    def feed(self, reader: RecordingReader) -> None:
        """Take in the frames that the recording has gained since the last call."""
        for row in self._units.feed(reader):
            self._reach(row.index)
        for frame in reader.changes("alive", after_ns=self._last_ns):
            changes = unit_changes(frame, self._known)
            self._history.advance(frame.t_ns)
            self._sums.advance(frame.t_ns)
            self._take(changes)
            self._last_ns = frame.t_ns
        self._gap = why_no_births(reader) if self._last_ns < 0 else ""

    def table(
        self, now_ns: int | None = None, *, live: bool = False, outside: bool = True
    ) -> BirthTable:
        """The picture so far; what the last frame says holds until ``now_ns``.

        While ``live``, the unit in progress is marked. ``outside`` gives the memory that was born
        outside any unit a row, if there is any.
        """
        shown = self._shown_rows()
        picture = self._history.gathered([[row] for row in shown])
        sums = self._sums.gathered([[_TOTAL], [_OUTSIDE]])
        if now_ns is not None:
            picture.advance(now_ns)
            sums.advance(now_ns)
        values = picture.values
        units = [self._units_of(row) for row in shown]
        if outside and sums.values[_OUTSIDE].any():
            values = np.vstack([sums.values[_OUTSIDE], values])
            units.insert(0, range(1))
        running = self._units.in_progress() if live else None
        table = BirthTable(
            values=values,
            rows=tuple(self._place(row) for row in units),
            column_edges_ns=picture.edges_ns,
            units=tuple(units),
            totals=sums.values[_TOTAL],
            gap=self._gap,
        )
        if running is None:
            return table
        return replace(table, now_key=table.key_of(running.index))

    def _take(self, changes: Counter[int]) -> None:
        """Put what a frame changed into the rows of its units."""
        self._reach(min((unit for unit in changes if unit), default=0))
        self._reach(max(changes, default=0))
        for unit, change in changes.items():
            self._bytes[unit] += change
            if not self._bytes[unit]:
                del self._bytes[unit]
        for row in {self._row(unit) for unit in changes if unit}:
            self._history.set(row, self._highest(self._units_of(row)))
        self._sums.set(_TOTAL, self._sums.now(_TOTAL) + changes.total())
        self._sums.set(_OUTSIDE, self._bytes.get(0, 0))

    def _highest(self, units: range) -> int:
        """The most bytes that one of ``units`` has alive now."""
        if len(units) > len(self._bytes):  # far more numbers than units: most were never begun
            return max((size for unit, size in self._bytes.items() if unit in units), default=0)
        return max(self._bytes.get(unit, 0) for unit in units)

    def _reach(self, unit: int) -> None:
        """Make sure that ``unit`` has a row; 0 has one of its own."""
        if not unit:
            return
        if self._base is None:
            self._base = self._first = unit
        self._first = min(unit, self._first)
        self._last = max(unit, self._last)
        while self._rows_below() + self._row(self._last) >= self._most_rows:
            self._history.join_rows()
            self._run *= 2
        if below := self._rows_below():
            self._history.move_rows(below)
            self._base -= below * self._run  # may lie below 1, where no unit is

    def _rows_below(self) -> int:
        """How many rows are missing before the first one, since a lower unit came later."""
        return max(0, -self._row(self._first))

    def _row(self, unit: int) -> int:
        return (unit - (self._base or 0)) // self._run

    def _units_of(self, row: int) -> range:
        """The units of a row, as far as they have begun."""
        start = (self._base or 0) + row * self._run
        return range(max(start, self._first), min(start + self._run, self._last + 1))

    def _shown_rows(self) -> range:
        """Up to the row of the last unit; none before any frame."""
        known = self._base is not None and self._last_ns >= 0
        return range(self._row(self._last) + 1 if known else 0)

    def _kind(self) -> str:
        row = self._units.rows.get(self._first)
        return row.kind if row else "unit"

    def _place(self, units: range) -> Place:
        kind = self._kind()
        if units.start == 0:
            detail = f"Born outside any {kind}: before, between and after them."
            return Place("0", f"outside any {kind}", detail)
        first, last = units.start, units.stop - 1
        if first < last:
            label = span(kind, first, last)
            detail = f"{sentence_case(label)}: at each moment the one with the most alive."
            return Place(str(first), label, detail)
        row = self._units.rows.get(first)
        label = row.label if row else span(kind, first, last)
        return Place(str(first), label, f"Born in {label}.")
