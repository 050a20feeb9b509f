"""The third lens: which addresses are resident, and when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePosixPath

import numpy as np

from diagnostics.analysis.columns import ColumnHistory
from diagnostics.analysis.format import (
    counted,
    format_bytes,
    format_count,
    format_seconds,
    format_share,
)
from diagnostics.analysis.heap_changes import site_changes
from diagnostics.analysis.heatmap import HeatTable
from diagnostics.analysis.series import FIRST_WIDTH_NS
from diagnostics.analysis.sites import Place
from diagnostics.recording.model import (
    BIN_BYTES,
    BIN_PAGE_BYTES,
    MappingKind,
    MappingMemory,
    MappingRow,
)
from diagnostics.recording.reader import FrameState, RecordingReader

KINDS: tuple[MappingKind, ...] = ("heap", "anonymous", "file-backed", "stack", "special")

_TOTALS = [[kind] for kind in range(len(KINDS))]
_FEW = 5  # readings: with fewer, what lasted a quarter of the run may be in none


def few_readings(reader: RecordingReader) -> str:
    """What a map of fewer than five readings cannot tell, and what would tell it; "" for one of
    more, or of none."""
    found = islice(reader.changes("mappings", after_ns=-1), _FEW)
    moments = [format_seconds(change.t_ns / 1e9) for change in found]
    if not 0 < len(moments) < _FEW:
        return ""
    return (
        f"Only {counted(len(moments), 'reading')} of the mappings brought something new (at"
        f" {', '.join(moments)}): what came and went in between is not seen. They are read at"
        " the start, at the end, and every two seconds in between, less often where that would take"
        " more than 0.5 % of the time. A longer run has more of them."
    )


@dataclass(frozen=True, slots=True)
class MappingFigures:
    """One mapping, or the rest of a kind, at a moment."""

    mapping: MappingRow
    memory: MappingMemory


@dataclass(frozen=True, slots=True)
class MappingsAt:
    """All mappings at a moment, the largest resident first, and the sum of each kind."""

    rows: tuple[MappingFigures, ...]
    totals: Mapping[MappingKind, MappingMemory]


def mappings_at(reader: RecordingReader, t_ns: int) -> MappingsAt:
    """The mappings as they were read last at or before ``t_ns``; empty before the first reading."""
    state = reader.state_at("mappings", t_ns)
    known = reader.mappings()
    rows = [
        MappingFigures(_mapping(known, number), MappingMemory(*values))
        for number, values in (state.values.items() if state else ())
    ]
    rows.sort(key=lambda row: (-row.memory.rss, row.mapping.id))
    totals = {
        kind: MappingMemory(*map(sum, zip(*memories, strict=True)))
        for kind in KINDS
        if (memories := [row.memory for row in rows if row.mapping.kind == kind])
    }
    return MappingsAt(tuple(rows), totals)


def bins_of(reader: RecordingReader, mapping: MappingRow, t_ns: int) -> dict[int, int]:
    """The resident bytes of each 64 KiB of ``mapping`` that holds any: address -> bytes.

    Empty where its pages were not read: that is done for the largest writable mappings only.
    """
    state = reader.state_at("residency", t_ns)
    within = _bins(mapping)
    return {
        number * BIN_BYTES: pages * BIN_PAGE_BYTES
        for number, (pages,) in sorted(state.values.items() if state else ())
        if number in within
    }


def residency_sentence(figures: MappingFigures, bins: Mapping[int, int]) -> str:
    """What is resident of a mapping, and in how many pieces; ``bins`` as ``bins_of`` gives them.

    Room that an allocator keeps for later inside resident pages cannot be seen from outside.
    """
    mapping, memory = figures.mapping, figures.memory
    text = (
        f"{mapping_label(mapping)}: {format_bytes(memory.rss)} of {format_bytes(memory.size)}"
        f" are resident ({format_share(memory.rss / max(memory.size, 1))})"
    )
    if memory.swap:
        text += f", {format_bytes(memory.swap)} are swapped out"
    if not bins:
        return text + "."
    partly = sum(
        resident < min(address + BIN_BYTES, mapping.end) - max(address, mapping.start)
        for address, resident in bins.items()
    )
    holes = f", {format_count(partly)} of them with holes" if partly else " without a hole"
    return f"{text}, in {counted(len(bins), 'block')} of 64 KiB{holes}."


class AddressHeat:
    """Resident bytes by mapping and time, reading only the frames that are new.

    At most ``columns`` columns, whatever the length of the run. When there are more than
    ``most_rows`` mappings, those that are gone and had the lowest peaks are added up by kind until
    half are left.
    """

    def __init__(
        self, columns: int = 600, first_width_ns: int = FIRST_WIDTH_NS, most_rows: int = 1024
    ) -> None:
        self._most_rows = most_rows
        # First the total of each kind, then of each kind what has no history of its own.
        self._history = ColumnHistory(2 * len(KINDS), columns, first_width_ns)
        self._row_of: dict[int, int] = {}
        self._mappings: dict[int, MappingRow] = {}
        self._rss: dict[int, int] = {}
        self._last_ns = -1

    def feed(self, reader: RecordingReader) -> None:
        """Take in the frames that the recording has gained since the last call."""
        fresh = False
        for frame in reader.changes("mappings", after_ns=self._last_ns):
            if not fresh:  # once the frames are being read, both are of the same moment
                self._mappings, fresh = reader.mappings(), True
            self._history.advance(frame.t_ns)
            by_kind: Counter[int] = Counter()
            for number, change in site_changes(frame, self._rss).items():
                by_kind[self._kind(number)] += change
                row = self._row(number)
                self._history.set(row, self._history.now(row) + change)
            for total, change in by_kind.items():
                self._history.set(total, self._history.now(total) + change)
            self._last_ns = frame.t_ns

    def table(self, now_ns: int | None = None, rows: int = 30) -> HeatTable:
        """The ``rows`` mappings with the highest peaks in order of address, then the rest by kind.

        What the last frame says holds until ``now_ns``. The rest of a kind is an upper bound where
        a column holds several frames, but never more than the kind's total.
        """
        peaks = self._history.peaks()
        own = [_mapping(self._mappings, number) for number in self._row_of]
        own.sort(key=lambda mapping: (-int(peaks[self._row_of[mapping.id]]), mapping.id))
        chosen = [mapping for mapping in own if mapping.end][:rows]
        chosen.sort(key=lambda mapping: (mapping.start, mapping.id))
        rest = self._rest_groups(self._row_of.keys() - {mapping.id for mapping in chosen})
        groups = [*([self._row_of[mapping.id]] for mapping in chosen), *rest, *_TOTALS]
        picture = self._history.gathered(groups)
        if now_ns is not None:
            picture.advance(now_ns)
        values, others, sums = np.split(picture.values, [len(chosen), len(chosen) + len(KINDS)])
        others = np.minimum(others, sums)
        shown = [kind for kind in range(len(KINDS)) if others[kind].any()]
        places = [_place(mapping) for mapping in chosen]
        places += [_place(MappingRow(0, KINDS[kind], 0, 0, "")) for kind in shown]
        return HeatTable(np.vstack([values, others[shown]]), tuple(places), picture.edges_ns)

    def _kind(self, number: int) -> int:
        return KINDS.index(_mapping(self._mappings, number).kind)

    def _row(self, number: int) -> int:
        if number not in self._row_of:
            if len(self._row_of) >= self._most_rows:
                self._fold()
            self._row_of[number] = self._history.add_row()
        return self._row_of[number]

    def _fold(self) -> None:
        """Take their histories from mappings that are gone; one that comes back gets a new one."""
        peaks, now = self._history.peaks(), self._history.now
        gone = [number for number, row in self._row_of.items() if not now(row)]
        gone.sort(key=lambda number: int(peaks[self._row_of[number]]))
        folded = set(gone[: self._most_rows // 2])
        kept = [number for number in self._row_of if number not in folded]
        own = [[self._row_of[number]] for number in kept]
        self._history = self._history.gathered([*_TOTALS, *self._rest_groups(folded), *own])
        self._row_of = {number: row for row, number in enumerate(kept, start=2 * len(KINDS))}

    def _rest_groups(self, numbers: set[int]) -> list[list[int]]:
        """For each kind the rows of ``numbers`` and the row of what was folded before."""
        groups = [[len(KINDS) + kind] for kind in range(len(KINDS))]
        for number in numbers:
            groups[self._kind(number)].append(self._row_of[number])
        return groups


class BinHeat:
    """Resident bytes inside one mapping by address and time, reading only the frames that are new.

    A row is 64 KiB, or, so that there are at most ``most_rows``, a power of two times that. Rows
    that were joined show an upper bound for the columns before. A mapping that is no longer among
    those whose pages are read shows nothing from then on.
    """

    def __init__(
        self,
        mapping: int,
        columns: int = 600,
        first_width_ns: int = FIRST_WIDTH_NS,
        most_rows: int = 400,
    ) -> None:
        self._mapping = mapping
        self._most_rows = most_rows
        self._history = ColumnHistory(1, columns, first_width_ns)  # row 0 stays empty
        self._row_of: dict[int, int] = {}
        self._shift = 0  # a row holds 2 ** shift bins
        self._bins = range(0)
        self._moved = False  # the mapping has other bins now than at the last frame
        self._pages: dict[int, int] = {}  # by bin, as of the last frame
        self._last_ns = -1

    def feed(self, reader: RecordingReader) -> None:
        """Take in the frames that the recording has gained since the last call."""
        mapping = reader.mappings().get(self._mapping)
        if mapping is None:
            return
        self._moved |= self._bins != _bins(mapping)
        self._bins = _bins(mapping)
        while len(self._groups()) > self._most_rows:
            self._join()
        for frame in reader.frames("residency", after_ns=self._last_ns):
            self._history.advance(frame.t_ns)
            for group, change in self._changes(frame).items():
                if group not in self._row_of:
                    self._row_of[group] = self._history.add_row()
                row = self._row_of[group]
                self._history.set(row, self._history.now(row) + change)
            self._moved = False
            self._last_ns = frame.t_ns

    def table(self, now_ns: int | None = None) -> HeatTable:
        """All rows from the mapping's start to its end, also where nothing is resident."""
        groups = self._groups()
        picture = self._history.gathered(
            [[self._row_of[group]] if group in self._row_of else [] for group in groups]
        )
        if now_ns is not None:
            picture.advance(now_ns)
        row_bytes = BIN_BYTES << self._shift
        starts = [f"{group * row_bytes:x}" for group in groups]
        places = [Place(start, start, f"{row_bytes >> 10} KiB from {start}") for start in starts]
        return HeatTable(np.minimum(picture.values, row_bytes), tuple(places), picture.edges_ns)

    def _groups(self) -> range:
        """The numbers of the rows that the mapping spans."""
        return range(self._bins.start >> self._shift, -(-self._bins.stop >> self._shift))

    def _changes(self, frame: FrameState) -> Counter[int]:
        """By how many bytes each row changed with this frame."""
        numbers = set(frame.changed)
        if self._moved or len(numbers) >= len(frame.values):  # key frames do not name what is gone
            numbers |= frame.values.keys() | self._pages.keys()
        changes: Counter[int] = Counter()
        for number in numbers:
            if number in self._bins:
                (new,) = frame.values.get(number, (0,))
                change = new - self._pages.get(number, 0)
                self._pages[number] = new
                if change:
                    changes[number >> self._shift] += change * BIN_PAGE_BYTES
        return changes

    def _join(self) -> None:
        self._shift += 1
        pairs: dict[int, list[int]] = {}
        for group, row in self._row_of.items():
            pairs.setdefault(group >> 1, []).append(row)
        self._history = self._history.gathered([[0], *pairs.values()])
        self._row_of = {group: row for row, group in enumerate(pairs, start=1)}


def mapping_label(mapping: MappingRow) -> str:
    """ "heap", "anonymous 7f3a12bc…", "libpdfium.so", "other stack"."""
    if not mapping.end:
        return f"other {mapping.kind}"
    if mapping.kind == "file-backed":
        return PurePosixPath(mapping.name).name
    if mapping.kind == "anonymous":
        return f"{mapping.name or mapping.kind} {mapping.start // BIN_BYTES:x}…"
    return mapping.name.strip("[]") or mapping.kind


def _mapping(known: Mapping[int, MappingRow], number: int) -> MappingRow:
    """The row of a mapping; "other special" where the table does not have a fitting one."""
    row = known.get(number)
    return row if row and row.kind in KINDS else MappingRow(number, "special", 0, 0, "")


def _bins(mapping: MappingRow) -> range:
    return range(mapping.start // BIN_BYTES, -(-mapping.end // BIN_BYTES))


def _place(mapping: MappingRow) -> Place:
    label = mapping_label(mapping)
    if not mapping.end:
        return Place(label, label, f"All {mapping.kind} mappings without a row of their own.")
    detail = f"{mapping.kind} {mapping.name}".rstrip() + f", {mapping.start:x} to {mapping.end:x}"
    return Place(str(mapping.id), label, detail)
