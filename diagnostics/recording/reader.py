"""Reads a recording: finished, still growing, or left behind by a writer that died.

A reader holds a connection only inside ``with``; a live view opens one for each refresh, which
costs a fraction of a millisecond and lets the writer fold its log when it ends.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Self, TypeVar, cast, get_args

from diagnostics.errors import RecordingError
from diagnostics.recording import schema
from diagnostics.recording.border import Columns, check, check_sites, columns, columns_of, parsed
from diagnostics.recording.frames import Values, apply, decode
from diagnostics.recording.liveness import writer_is_alive
from diagnostics.recording.model import (
    Capture,
    ChainLink,
    GcEvent,
    GcSummary,
    HeapTotal,
    HeldObject,
    LedgerReading,
    LineRow,
    LogEntry,
    MappingRow,
    Outcome,
    ProbeStatus,
    ProcessSample,
    Reference,
    SettlementStep,
    Site,
    Suspect,
    UnitHeap,
    UnitPeak,
    UnitRow,
)
from diagnostics.recording.opening import UNREADABLE, connect, damaged, version_and_tables
from diagnostics.recording.writer import SERIES_WIDTH, Series, fold_log, put_outcome

Row = TypeVar("Row")

_META = columns(key=str, value=str)
_SITES = columns(id=int, parent=int | None, path=str, line=int, function=str, caller=int | None)
_SOURCE = columns(line=int, text=str)
_TYPES = columns(id=int, name=str)
_OBJECTS = columns(id=int)
_FRAMES = columns(t_ns=int, unit=int, key=int, payload=bytes)
_KEY_FRAME = columns(t_ns=int | None)
_MOMENT = columns(t_ns=int)
_LAST_UNIT = columns(index=int)
_COUNT = columns(count=int)

# Where the writer belongs to another machine or container, a file that grew this recently lives.
_LIVE_WITHIN_S = 5.0

_END_OF_TIME = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class FrameState:
    """A series at one moment. ``values`` is complete, and reused: copy it to keep it.

    ``changed`` holds the ids that the frame names (all of them in a key frame).
    """

    t_ns: int
    unit: int
    values: Mapping[int, Values]
    changed: frozenset[int]


@dataclass(frozen=True, slots=True)
class FrameChange:
    """What one frame says: id -> values, all zeros for an id that is gone. A ``key`` frame says
    everything, so that what it does not name is gone too."""

    t_ns: int
    unit: int
    key: bool
    entries: Mapping[int, Values]


class RecordingReader:
    """Opens a recording for reading. Never writes to it, never runs anything from it.

    Raises ``RecordingError`` when the file is missing, foreign, truncated or of a newer version,
    also later, when a part of it turns out to be damaged.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._db = connect(self.path)
        try:
            self.version, self._tables = version_and_tables(self._db, self.path)
        except BaseException:
            self._db.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        self._db.close()

    # -- what ran ----------------------------------------------------------------------------

    def meta(self) -> dict[str, Any]:
        """Everything known about the run: command, versions, document, settings, start."""
        rows = self._query(_META, "SELECT key, value FROM meta")
        return self._agree(lambda: {key: parsed(value) for key, value in rows})

    def outcome(self) -> Outcome:
        """How the run ended; ``running`` or ``lost`` where nobody wrote an outcome."""
        rows = self._rows(Outcome, "outcome", columns=_names(Outcome))
        if rows:
            return rows[0]
        last_unit = self._one(_LAST_UNIT, 'SELECT coalesce(max("index"), 0) FROM units')
        t_ns = self.last_ns()
        writer = self.meta().get("writer")
        alive = writer_is_alive(writer if isinstance(writer, dict) else {})
        if alive is None and self._age_s() < _LIVE_WITHIN_S:
            alive = True
        if alive:
            return Outcome("running", "The run goes on.", t_ns, last_unit)
        reason = (
            "The process that wrote this recording is gone, and nobody saw how it ended."
            if alive is False
            else "This recording has no ending, and its writer belongs to another machine."
        )
        return Outcome("lost", reason, t_ns, last_unit)

    def last_ns(self) -> int:
        """The time of the last thing recorded."""
        # One series after the other: each is a look at the end of its index, all are a scan.
        frames = "".join(
            f" (SELECT coalesce(max(t_ns), 0) FROM frames WHERE series = '{series}'),"
            for series in get_args(Series)
        )
        last: int = self._one(
            _MOMENT,
            "SELECT max("
            " (SELECT coalesce(max(t_ns), 0) FROM process),"
            f"{frames}"
            " (SELECT coalesce(max(end_ns), 0) FROM units),"
            " (SELECT coalesce(max(t_ns), 0) FROM outcome))",
        )
        return last

    # -- rows ----------------------------------------------------------------------------------

    def units(self, *, changed_after_ns: int = -1) -> list[UnitRow]:
        """Units by index; with ``changed_after_ns`` those that are open or ended after it."""
        return self._rows(
            UnitRow, "units", "end_ns IS NULL OR end_ns > ?", changed_after_ns, order='"index"'
        )

    def unit_count(self) -> int:
        """How many units were begun."""
        count: int = self._one(_COUNT, "SELECT count(*) FROM units")
        return count

    def last_unit(self) -> UnitRow | None:
        """The unit that began last."""
        rows = self._rows(UnitRow, "units", order='start_ns DESC, "index" DESC LIMIT 1')
        return rows[0] if rows else None

    def last_process(self) -> ProcessSample | None:
        """The process at the last tick."""
        rows = self._rows(ProcessSample, "process", order="t_ns DESC LIMIT 1")
        return rows[0] if rows else None

    def unit_peaks(self, *, ended_after_ns: int = -1) -> list[UnitPeak]:
        """Peaks by index; with ``ended_after_ns`` those of units that are open or ended later."""
        return self._rows(
            UnitPeak,
            "unit_peaks",
            '"index" IN (SELECT "index" FROM units WHERE coalesce(end_ns, ?) >= ?)',
            ended_after_ns,
            ended_after_ns,
            order='"index"',
        )

    def unit_heaps(self, *, ended_after_ns: int = -1) -> list[UnitHeap]:
        """What each unit allocated, by index; with ``ended_after_ns`` those of units that are open
        or ended later. Empty where the engine does not know the birth unit."""
        return self._rows(
            UnitHeap,
            "unit_heaps",
            '"index" IN (SELECT 0 UNION ALL'  # what was born outside any unit has no other row
            ' SELECT "index" FROM units WHERE end_ns IS NULL OR end_ns >= ?)',
            ended_after_ns,
            order='"index"',
        )

    def process(self, *, after_ns: int = -1) -> list[ProcessSample]:
        return self._rows(ProcessSample, "process", "t_ns > ?", after_ns, order="t_ns")

    def heap_totals(self, *, after_ns: int = -1) -> list[HeapTotal]:
        return self._rows(HeapTotal, "heap_totals", "t_ns > ?", after_ns, order="t_ns")

    def gc_events(self, *, after_ns: int = -1) -> list[GcEvent]:
        columns = "*" if self.version >= 2 else "*, NULL, NULL"
        rows = self._rows(GcEvent, "gc_events", "t_ns > ?", after_ns, order="t_ns", columns=columns)
        return [replace(row, own=bool(row.own)) for row in rows]

    def gc_summaries(self, *, after_ns: int = -1) -> list[GcSummary]:
        return self._rows(
            GcSummary,
            "gc_summaries",
            "t_ns > ?",
            after_ns,
            order="t_ns, generation",
            columns="*" if self.version >= 2 else "*, NULL",
        )

    def line_profile(self) -> list[LineRow]:
        return self._rows(LineRow, "line_profile", order="function, file, line")

    def log(self) -> list[LogEntry]:
        return self._rows(LogEntry, "log", order="t_ns, rowid")

    def probes(self) -> list[ProbeStatus]:
        return self._rows(ProbeStatus, "probes", order="name")

    def sites(self, *, after_id: int = 0) -> dict[int, Site]:
        """The nodes of the tree of allocation stacks by id, callers before those that they call."""
        rows = self._query(
            _SITES,
            "SELECT sites.id, parent, path, line, function,"
            " (SELECT id FROM sites AS callers WHERE callers.id = sites.parent)"
            " FROM sites LEFT JOIN files ON files.id = sites.file"
            " WHERE sites.id > ? ORDER BY sites.id",
            after_id,
        )
        sites = [Site(*row[:-1]) for row in rows]
        self._agree(lambda: check_sites(sites, [row[-1] for row in rows]))
        return {site.id: site for site in sites}

    def source(self, file: str) -> dict[int, str]:
        """The source lines that were kept of ``file``: number -> text. Empty if none were."""
        return dict(
            self._query(
                _SOURCE,
                "SELECT line, text FROM source JOIN files ON files.id = source.file"
                " WHERE path = ? ORDER BY line",
                file,
            )
        )

    def types(self) -> dict[int, str]:
        return dict(self._query(_TYPES, "SELECT id, name FROM types"))

    def mappings(self) -> dict[int, MappingRow]:
        """The mappings that the series "mappings" tells of, by id; empty where none were read."""
        return {row.id: row for row in self._rows(MappingRow, "mappings", order="id")}

    # -- where the memory went, and who held it; empty in recordings of version 1 ------------------

    def ledger(self, *, after_ns: int = -1) -> list[LedgerReading]:
        return self._rows(LedgerReading, "ledger", "t_ns > ?", after_ns, order="t_ns")

    def settlement(self) -> list[SettlementStep]:
        return self._rows(SettlementStep, "settlement", order="position")

    def captures(self) -> list[Capture]:
        rows = self._rows(Capture, "captures", order="id")
        return [replace(row, complete=bool(row.complete)) for row in rows]

    def suspects(self, capture: int) -> list[Suspect]:
        return self._rows(Suspect, "suspects", "capture = ?", capture, order="rank")

    def held_objects(self, capture: int) -> dict[int, HeldObject]:
        """The objects of a capture's graph, by id."""
        rows = self._rows(HeldObject, "held_objects", "capture = ?", capture, order="id")
        return {row.id: row for row in rows}

    def references(self, capture: int) -> list[Reference]:
        rows = self._rows(
            Reference,
            "object_references",
            "capture = ?",
            capture,
            order="holder, held, label",
        )
        self._check_objects(capture, (end for row in rows for end in (row.holder, row.held)))
        return rows

    def chains(self, capture: int) -> list[ChainLink]:
        """The holder chains of a capture, each from its root down."""
        rows = self._rows(
            ChainLink,
            "chains",
            "capture = ?",
            capture,
            order="suspect, chain, position",
        )
        self._check_objects(capture, (row.object for row in rows))
        return [replace(row, likely_wrong=bool(row.likely_wrong)) for row in rows]

    def _check_objects(self, capture: int, spoken_of: Iterable[int]) -> None:
        known = self._query(_OBJECTS, "SELECT id FROM held_objects WHERE capture = ?", capture)
        missing = set(spoken_of).difference(number for (number,) in known)
        if missing:
            raise damaged(self.path, ValueError(f"the object {min(missing)} is missing"))

    def frames(
        self, series: Series, *, after_ns: int = -1, until_ns: int = _END_OF_TIME
    ) -> Iterator[FrameState]:
        """The states of ``series`` after ``after_ns`` up to ``until_ns``, in order.

        Reading starts at the last key frame before that moment, never at the beginning of the
        file. A series that did not change has no frame: the state before goes on.
        """
        start = self._key_frame_ns(series, after_ns)
        first_ns = -1 if start is None else start
        state: dict[int, Values] = {}
        for frame in self._frames("t_ns BETWEEN ? AND ?", series, first_ns, until_ns):
            apply(state, frame.entries, key=frame.key)
            if frame.t_ns > after_ns:
                yield FrameState(frame.t_ns, frame.unit, state, frozenset(frame.entries))

    def state_at(self, series: Series, t_ns: int) -> FrameState | None:
        """The series as it stood at ``t_ns``; None before its first frame."""
        key_ns = self._key_frame_ns(series, t_ns)
        if key_ns is None:
            return None
        values: dict[int, Values] = {}
        last = None
        for last in self._frames("t_ns BETWEEN ? AND ?", series, key_ns, t_ns):
            apply(values, last.entries, key=last.key)
        if last is None:
            return None
        return FrameState(last.t_ns, last.unit, values, frozenset(last.entries))

    def changes(self, series: Series, *, after_ns: int) -> Iterator[FrameChange]:
        """What each frame of ``series`` after ``after_ns`` says, in order, for who has kept the
        state so far: the cost is that of what is new, however large the state has grown."""
        return self._frames("t_ns > ?", series, after_ns)

    # -- copies --------------------------------------------------------------------------------

    def copy_to(self, target: str | os.PathLike[str]) -> None:
        """One complete file at ``target``, also of a recording that is still growing."""
        with closing(sqlite3.connect(target)) as copy:
            self._guard(lambda: self._db.backup(copy))
            fold_log(copy)

    # -- inside ----------------------------------------------------------------------------------

    def _rows(
        self,
        row_type: type[Row],
        table: str,
        where: str = "1",
        *values: object,
        order: str = "1",
        columns: str = "*",
    ) -> list[Row]:
        """The rows of a table; none where the file is older than the table."""
        if table not in self._tables and self.version < schema.VERSION:
            return []
        found = self._query(
            columns_of(cast(Any, row_type)),
            f"SELECT {columns} FROM {table} WHERE {where} ORDER BY {order}",
            *values,
        )
        return [row_type(*row) for row in found]

    def _one(self, holds: Columns, statement: str, *values: object) -> Any:
        """The only value that a statement gives."""
        [(value,)] = self._query(holds, statement, *values)
        return value

    def _query(self, holds: Columns, statement: str, *values: object) -> list[tuple[Any, ...]]:
        rows = self._guard(lambda: self._db.execute(statement, values).fetchall())
        self._agree(lambda: check(rows, holds))
        return rows

    def _key_frame_ns(self, series: Series, until_ns: int) -> int | None:
        """The time of the last key frame up to a moment."""
        found: int | None = self._one(
            _KEY_FRAME,
            "SELECT max(t_ns) FROM frames WHERE series = ? AND key AND t_ns <= ?",
            series,
            until_ns,
        )
        return found

    def _frames(self, where: str, *values: object) -> Iterator[FrameChange]:
        """Frames one by one; the first of ``values`` is the series."""
        width = SERIES_WIDTH[cast(Series, values[0])]
        cursor = self._guard(
            lambda: self._db.execute(
                "SELECT t_ns, unit, key, payload FROM frames"
                f" WHERE series = ? AND {where} ORDER BY t_ns, id",
                values,
            )
        )
        while (row := self._guard(cursor.fetchone)) is not None:
            yield self._agree(lambda: _frame(row, width))

    def _guard(self, read: Callable[[], Row]) -> Row:
        try:
            return read()
        except UNREADABLE as error:
            raise damaged(self.path, error) from error

    def _agree(self, look: Callable[[], Row]) -> Row:
        try:
            return look()
        except ValueError as error:
            raise damaged(self.path, error) from error

    def _age_s(self) -> float:
        newest = max(
            path.stat().st_mtime
            for suffix in ("", "-wal")
            if (path := Path(f"{self.path}{suffix}")).exists()
        )
        return time.time() - newest


def _frame(row: tuple[Any, ...], width: int) -> FrameChange:
    check([row], _FRAMES)
    t_ns, unit, key, payload = row
    return FrameChange(t_ns, unit, bool(key), decode(payload, width))


def set_outcome(path: str | os.PathLike[str], outcome: Outcome) -> None:
    """Write how a run ended, after its writer is gone, and leave one file.

    For supervisors. An outcome that the run wrote itself is kept: it knew better.
    Raises ``RecordingError`` when the file is not a recording or cannot be written.
    """
    with RecordingReader(path):
        pass  # says clearly what is wrong with the file, before anything writes to it
    try:
        with closing(sqlite3.connect(path, isolation_level=None, timeout=5.0)) as db:
            db.execute("BEGIN IMMEDIATE")
            if not db.execute("SELECT 1 FROM outcome").fetchone():
                put_outcome(db, outcome)
            db.execute("COMMIT")
            fold_log(db)
    except UNREADABLE as error:
        raise RecordingError(
            f"Cannot write the outcome into {path}: {error}.",
            "The recording itself is as it was; check that the disk has space.",
        ) from error


def _names(row_type: type[Any]) -> str:
    return ", ".join(field.name for field in fields(row_type))
