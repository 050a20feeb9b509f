"""Values over time in a fixed number of columns, which grow wider as time goes on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.int64]


class ColumnHistory:
    """For each row the highest value in each column of time.

    A value holds from the moment it is set up to and including the moment of the next one, so it
    counts in every column between. Column *k* spans ``width_ns`` from ``k * width_ns``. When the
    columns run out they are joined in pairs, each pair keeping the higher value: the memory stays
    the same however long a recording grows.
    """

    def __init__(self, rows: int, columns: int, width_ns: int) -> None:
        if columns < 2 or columns % 2:
            raise ValueError("columns is an even number: they are joined in pairs")
        self.width_ns = width_ns
        self._rows = rows
        # Both have spare rows, so that adding one seldom copies them.
        self._now: Matrix = np.zeros(rows, np.int64)
        self._cells: Matrix = np.zeros((rows, columns), np.int64)
        self._column = -1

    @property
    def values(self) -> Matrix:
        """The columns so far, shape (rows, columns). A view, not a copy."""
        return self._cells[: self._rows, : self._column + 1]

    @property
    def edges_ns(self) -> Matrix:
        """Where the columns so far begin, and where the last one ends."""
        return np.arange(self._column + 2, dtype=np.int64) * self.width_ns

    def advance(self, t_ns: int) -> None:
        """Let the present values hold until ``t_ns``; does nothing for a time that has passed."""
        while t_ns // self.width_ns >= self._cells.shape[1]:
            self._widen()
        column = t_ns // self.width_ns
        if column > self._column:
            self._cells[:, self._column + 1 : column + 1] = self._now[:, None]
            self._column = column

    def now(self, row: int) -> int:
        """The present value of a row."""
        return int(self._now[row])

    def set(self, row: int, value: int) -> None:
        """The value of a row from the moment of the last ``advance`` on."""
        self._now[row] = value
        self._cells[row, self._column] = max(self._cells[row, self._column], value)

    def add_row(self) -> int:
        """The number of a new row, all zeros."""
        if self._rows == len(self._now):
            self._now = np.concatenate([self._now, np.zeros_like(self._now)])
            self._cells = np.concatenate([self._cells, np.zeros_like(self._cells)])
        self._rows += 1
        return self._rows - 1

    def join_rows(self) -> None:
        """Join the rows in pairs, each pair keeping the higher value; the upper half is then free.

        Raises ValueError when their number is odd.
        """
        if self._rows % 2:
            raise ValueError("rows are joined in pairs: their number has to be even")
        half = self._rows // 2
        for values in (self._now, self._cells):
            values[:half] = np.maximum(values[0 : self._rows : 2], values[1 : self._rows : 2])
            values[half:] = 0

    def move_rows(self, up: int) -> None:
        """Give every row a number higher by ``up``; the last rows are given up, the first ones
        are zeros."""
        for values in (self._now, self._cells):
            values[up : self._rows] = values[: self._rows - up].copy()
            values[:up] = 0

    def peaks(self) -> Matrix:
        """The highest value that each row ever had."""
        highest: Matrix = self._cells[: self._rows].max(axis=1)
        return highest

    def gathered(self, groups: Sequence[Sequence[int]]) -> Self:
        """A history of its own with a row for each group of rows, their values added up.

        For a group of several rows the sum is an upper bound: in one column they may have been at
        their highest at different moments.
        """
        new = type(self)(len(groups), self._cells.shape[1], self.width_ns)
        new._column = self._column
        for row, members in enumerate(groups):
            new._now[row] = self._now[members].sum()
            new._cells[row] = self._cells[members].sum(axis=0)
        return new

    def _widen(self) -> None:
        half = self._cells.shape[1] // 2
        self._cells[:, :half] = np.maximum(self._cells[:, 0::2], self._cells[:, 1::2])
        self._cells[:, half:] = 0
        self._column //= 2
        self.width_ns *= 2
