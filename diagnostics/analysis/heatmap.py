"""Code sites against time: which line held how many bytes, and when."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from diagnostics.analysis.columns import ColumnHistory, Matrix
from diagnostics.analysis.heap_changes import site_changes
from diagnostics.analysis.series import FIRST_WIDTH_NS
from diagnostics.analysis.sites import GROUPINGS, OTHER, Grouping, Place
from diagnostics.recording.reader import FrameChange, RecordingReader

_OTHER_ROW, _TOTAL_ROW = 0, 1


@dataclass(frozen=True, eq=False)
class HeatTable:
    """Bytes by place and time.

    ``values[row, column]`` is the most bytes that the row held at any moment of the column.
    ``column_edges_ns`` has one entry more than there are columns. ``rows`` ends with
    ``sites.OTHER`` where some places have no row of their own; its bytes are an upper bound where
    a column holds several frames (its places may have been at their most at different moments),
    but never more than the column's total.
    """

    values: Matrix
    rows: tuple[Place, ...]
    column_edges_ns: Matrix

    @property
    def row_keys(self) -> list[str]:
        return [place.key for place in self.rows]

    @property
    def row_labels(self) -> list[str]:
        return [place.label for place in self.rows]

    @property
    def row_details(self) -> list[str]:
        return [place.detail for place in self.rows]

    def column_at(self, t_ns: float) -> int:
        """The column of a moment; a moment outside goes to the nearest column."""
        column = int(np.searchsorted(self.column_edges_ns, t_ns, side="right")) - 1
        return max(0, min(column, len(self.column_edges_ns) - 2))


@dataclass(frozen=True, slots=True)
class RowFigures:
    """One row in numbers: bytes at a moment, at its most (in the column from ``peak_ns``), at the
    end of the table."""

    place: Place
    bytes: int
    peak_bytes: int
    peak_ns: int
    end_bytes: int


def row_figures(table: HeatTable, key: str, t_ns: float) -> RowFigures | None:
    """The row ``key`` around the moment ``t_ns``; None when the table has no such row."""
    keys = table.row_keys
    if key not in keys or not table.values.shape[1]:
        return None
    values = table.values[keys.index(key)]
    highest = int(values.argmax())
    return RowFigures(
        place=table.rows[keys.index(key)],
        bytes=int(values[table.column_at(t_ns)]),
        peak_bytes=int(values[highest]),
        peak_ns=int(table.column_edges_ns[highest]),
        end_bytes=int(values[-1]),
    )


class SiteHeat:
    """Builds a heat table from a recording, reading only the frames that are new.

    At most ``columns`` columns, whatever the length of the run. At most ``most_rows`` places have
    a history of their own: beyond that the half with the lowest peaks is added up, and a place of
    it that changes later starts a new history at that moment.
    """

    def __init__(
        self,
        group: Grouping = "line",
        columns: int = 600,
        first_width_ns: int = FIRST_WIDTH_NS,
        most_rows: int = 4096,
    ) -> None:
        self._place_of = GROUPINGS[group]
        self._most_rows = most_rows
        self._history = ColumnHistory(2, columns, first_width_ns)
        self._row_of = {OTHER.key: _OTHER_ROW}
        self._places = {OTHER.key: OTHER}
        self._folded: dict[str, int] = {}  # bytes now of the places that lost their history
        self._key_of_site: dict[int, str] = {0: OTHER.key}
        self._bytes: dict[int, int] = {}  # by site, as of the last frame
        self._last_ns = -1
        self._shown: list[str] = []

    def feed(self, reader: RecordingReader) -> None:
        """Take in the frames that the recording has gained since the last call."""
        for frame in reader.changes("heap", after_ns=self._last_ns):
            changes = self._changes(frame, reader)
            self._history.advance(frame.t_ns)
            for key, change in changes.items():
                row = self._row(key)
                self._history.set(row, self._history.now(row) + change)
            self._history.set(_TOTAL_ROW, self._history.now(_TOTAL_ROW) + changes.total())
            self._last_ns = frame.t_ns

    def table(self, now_ns: int | None = None, rows: int = 30, *, live: bool = False) -> HeatTable:
        """The ``rows`` places with the highest peaks, and the rest as one row.

        What the last frame says holds until ``now_ns``: nothing changed since. While ``live``, a
        place keeps its row from one call to the next, and a newcomer takes the row of the place
        that it pushed out, or a new one at the end; otherwise the highest peak comes first.
        """
        self._choose(rows, live=live)
        chosen = [self._row_of[key] for key in self._shown]
        rest = sorted(set(self._row_of.values()) - set(chosen))
        picture = self._history.gathered([*([row] for row in chosen), rest, [_TOTAL_ROW]])
        if now_ns is not None:
            picture.advance(now_ns)
        values, other = picture.values[:-2], np.minimum(picture.values[-2], picture.values[-1])
        places = [self._places[key] for key in self._shown]
        if other.any():
            values = np.vstack([values, other])
            places.append(OTHER)
        return HeatTable(values, tuple(places), picture.edges_ns)

    def _changes(self, frame: FrameChange, reader: RecordingReader) -> Counter[str]:
        """By how many bytes each place changed with this frame."""
        changes: Counter[str] = Counter()
        for site, change in site_changes(frame, self._bytes).items():
            changes[self._key(site, reader)] += change
        return changes

    def _key(self, site: int, reader: RecordingReader) -> str:
        if site not in self._key_of_site:
            for new in reader.sites(after_id=max(self._key_of_site)).values():
                place = self._place_of(new)
                self._key_of_site[new.id] = place.key
                self._places[place.key] = place
        return self._key_of_site.setdefault(site, OTHER.key)

    def _row(self, key: str) -> int:
        if key not in self._row_of:
            if len(self._row_of) >= self._most_rows:
                self._fold()
            self._row_of[key] = row = self._history.add_row()
            # Its bytes move out of the sum of the places that have no history.
            now = self._folded.pop(key, 0)
            self._history.set(_OTHER_ROW, self._history.now(_OTHER_ROW) - now)
            self._history.set(row, now)
        return self._row_of[key]

    def _fold(self) -> None:
        peaks = self._history.peaks()
        own = [key for key in self._row_of if key != OTHER.key]
        own.sort(key=lambda key: (key not in self._shown, -int(peaks[self._row_of[key]])))
        kept, folded = own[: self._most_rows // 2], own[self._most_rows // 2 :]
        self._folded |= {key: self._history.now(self._row_of[key]) for key in folded}
        rest = [_OTHER_ROW, *(self._row_of[key] for key in folded)]
        groups = [rest, [_TOTAL_ROW], *([self._row_of[key]] for key in kept)]
        self._history = self._history.gathered(groups)
        self._row_of = {OTHER.key: _OTHER_ROW}
        self._row_of |= {key: row for row, key in enumerate(kept, start=_TOTAL_ROW + 1)}

    def _choose(self, rows: int, *, live: bool) -> None:
        peaks = self._history.peaks()
        own = [key for key, row in self._row_of.items() if key != OTHER.key and peaks[row] > 0]
        top = sorted(own, key=lambda key: (-int(peaks[self._row_of[key]]), key))[:rows]
        if not live or len(self._shown) > rows:
            self._shown = top
            return
        freed = [slot for slot, key in enumerate(self._shown) if key not in top]
        for key in top:
            if key in self._shown:
                continue
            if len(self._shown) < rows:
                self._shown.append(key)
            else:
                self._shown[freed.pop(0)] = key
