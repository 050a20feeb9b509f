"""Reads a recording: finished, still growing, or left behind by a writer that died.

A reader holds a connection only inside ``with``; a live view opens one for each refresh, which
costs a fraction of a millisecond and lets the writer fold its log when it ends.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, fields, replace
from functools import lru_cache, partial
from pathlib import Path
from types import NoneType
from typing import Any, Literal, Self, TypeVar, cast, get_args, get_origin, get_type_hints
from urllib.parse import quote

from diagnostics.errors import RecordingError
from diagnostics.recording import schema
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
from diagnostics.recording.writer import Series, fold_log, put_outcome

Row = TypeVar("Row")
Allowed = tuple[frozenset[type], ...]
"""For each column the types that a value in it may have."""

_WHOLE = frozenset({int})
_TEXT = frozenset({str})
_BYTES = frozenset({bytes})
_WHOLE_OR_NONE = frozenset({int, NoneType})
_FRAME: Allowed = (_WHOLE, _WHOLE, _WHOLE, _BYTES)  # t_ns, unit, key, payload

# Where the writer belongs to another machine or container, a file that grew this recently lives.
_LIVE_WITHIN_S = 5.0

_END_OF_TIME = (1 << 63) - 1

# A UnicodeDecodeError comes from an error message of SQLite that quotes the damaged text.
_UNREADABLE = (sqlite3.Error, UnicodeDecodeError)


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
        self._db = _open(self.path)
        try:
            self.version = _check(self._db, self.path)
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
        rows = self._query((_TEXT, _TEXT), "SELECT key, value FROM meta")
        try:
            return {key: json.loads(value, parse_constant=_refuse) for key, value in rows}
        except (ValueError, RecursionError) as error:
            raise _damaged(self.path, error) from error

    def outcome(self) -> Outcome:
        """How the run ended; ``running`` or ``lost`` where nobody wrote an outcome."""
        rows = self._rows(Outcome, "outcome", columns=_names(Outcome))
        if rows:
            return rows[0]
        last_unit = self._number('SELECT coalesce(max("index"), 0) FROM units')
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
        return self._number(
            "SELECT max("
            " (SELECT coalesce(max(t_ns), 0) FROM process),"
            f"{frames}"
            " (SELECT coalesce(max(end_ns), 0) FROM units),"
            " (SELECT coalesce(max(t_ns), 0) FROM outcome))"
        )

    # -- rows ----------------------------------------------------------------------------------

    def units(self, *, changed_after_ns: int = -1) -> list[UnitRow]:
        """Units by index; with ``changed_after_ns`` those that are open or ended after it."""
        return self._rows(
            UnitRow, "units", "end_ns IS NULL OR end_ns > ?", changed_after_ns, order='"index"'
        )

    def unit_count(self) -> int:
        """How many units were begun."""
        return self._number("SELECT count(*) FROM units")

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
        rows = self._query(
            _allowed(Site),
            "SELECT sites.id, parent, path, line, function FROM sites"
            " JOIN files ON files.id = sites.file WHERE sites.id > ? ORDER BY sites.id",
            after_id,
        )
        return {row[0]: Site(*row) for row in rows}

    def source(self, file: str) -> dict[int, str]:
        """The source lines that were kept of ``file``: number -> text. Empty if none were."""
        return dict(
            self._query(
                (_WHOLE, _TEXT),
                "SELECT line, text FROM source JOIN files ON files.id = source.file"
                " WHERE path = ? ORDER BY line",
                file,
            )
        )

    def types(self) -> dict[int, str]:
        return dict(self._query((_WHOLE, _TEXT), "SELECT id, name FROM types"))

    def mappings(self) -> dict[int, MappingRow]:
        """The mappings that the series "mappings" tells of, by id; empty where none were read."""
        return {row.id: row for row in self._rows(MappingRow, "mappings", order="id")}

    # -- where the memory went, and who held it; empty in recordings of version 1 ------------------

    def ledger(self, *, after_ns: int = -1) -> list[LedgerReading]:
        return self._rows(LedgerReading, "ledger", "t_ns > ?", after_ns, order="t_ns", since=2)

    def settlement(self) -> list[SettlementStep]:
        return self._rows(SettlementStep, "settlement", order="position", since=2)

    def captures(self) -> list[Capture]:
        rows = self._rows(Capture, "captures", order="id", since=2)
        return [replace(row, complete=bool(row.complete)) for row in rows]

    def suspects(self, capture: int) -> list[Suspect]:
        return self._rows(Suspect, "suspects", "capture = ?", capture, order="rank", since=2)

    def held_objects(self, capture: int) -> dict[int, HeldObject]:
        """The objects of a capture's graph, by id."""
        rows = self._rows(HeldObject, "held_objects", "capture = ?", capture, order="id", since=2)
        return {row.id: row for row in rows}

    def references(self, capture: int) -> list[Reference]:
        return self._rows(
            Reference,
            "object_references",
            "capture = ?",
            capture,
            order="holder, held, label",
            since=2,
        )

    def chains(self, capture: int) -> list[ChainLink]:
        """The holder chains of a capture, each from its root down."""
        rows = self._rows(
            ChainLink,
            "chains",
            "capture = ?",
            capture,
            order="suspect, chain, position",
            since=2,
        )
        return [replace(row, likely_wrong=bool(row.likely_wrong)) for row in rows]

    def frames(
        self, series: Series, *, after_ns: int = -1, until_ns: int = _END_OF_TIME
    ) -> Iterator[FrameState]:
        """The states of ``series`` after ``after_ns`` up to ``until_ns``, in order.

        Reading starts at the last key frame before that moment, never at the beginning of the
        file. A series that did not change has no frame: the state before goes on.
        """
        start = self._number(
            "SELECT coalesce(max(t_ns), -1) FROM frames WHERE series = ? AND key AND t_ns <= ?",
            series,
            after_ns,
        )
        state: dict[int, Values] = {}
        for t_ns, unit, key, payload in self._stream(
            _FRAME,
            "SELECT t_ns, unit, key, payload FROM frames"
            " WHERE series = ? AND t_ns BETWEEN ? AND ? ORDER BY t_ns, id",
            series,
            start,
            until_ns,
        ):
            entries = self._decode(payload)
            apply(state, entries, key=bool(key))
            if t_ns > after_ns:
                yield FrameState(t_ns, unit, state, frozenset(entries))

    def state_at(self, series: Series, t_ns: int) -> FrameState | None:
        """The series as it stood at ``t_ns``; None before its first frame."""
        found = None
        [(key,)] = self._query(
            (_WHOLE_OR_NONE,),
            "SELECT max(t_ns) FROM frames WHERE series = ? AND key AND t_ns <= ?",
            series,
            t_ns,
        )
        if key is not None:
            for state in self.frames(series, after_ns=key - 1, until_ns=t_ns):
                found = state
        return found

    def changes(self, series: Series, *, after_ns: int) -> Iterator[FrameChange]:
        """What each frame of ``series`` after ``after_ns`` says, in order, for who has kept the
        state so far: the cost is that of what is new, however large the state has grown."""
        for t_ns, unit, key, payload in self._stream(
            _FRAME,
            "SELECT t_ns, unit, key, payload FROM frames"
            " WHERE series = ? AND t_ns > ? ORDER BY t_ns, id",
            series,
            after_ns,
        ):
            yield FrameChange(t_ns, unit, bool(key), self._decode(payload))

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
        since: int = 1,
    ) -> list[Row]:
        """The rows of a table that recordings have ``since`` a version of the format."""
        if self.version < since:
            return []
        found = self._query(
            _allowed(cast(Any, row_type)),
            f"SELECT {columns} FROM {table} WHERE {where} ORDER BY {order}",
            *values,
        )
        return [row_type(*row) for row in found]

    def _number(self, statement: str, *values: object) -> int:
        [(number,)] = self._query((_WHOLE,), statement, *values)
        return int(number)

    def _query(self, allowed: Allowed, statement: str, *values: object) -> list[tuple[Any, ...]]:
        return list(self._stream(allowed, statement, *values))

    def _stream(
        self, allowed: Allowed, statement: str, *values: object
    ) -> Iterator[tuple[Any, ...]]:
        cursor = self._guard(lambda: self._db.execute(statement, values))
        while (row := self._guard(cursor.fetchone)) is not None:
            if not _fits(tuple(map(type, row)), allowed):
                raise _damaged(self.path, ValueError("a value is not of its column's type"))
            yield row

    def _guard(self, read: Callable[[], Row]) -> Row:
        try:
            return read()
        except _UNREADABLE as error:
            raise _damaged(self.path, error) from error

    def _decode(self, payload: bytes) -> dict[int, Values]:
        try:
            return decode(payload)
        except ValueError as error:
            raise _damaged(self.path, error) from error

    def _age_s(self) -> float:
        newest = max(
            path.stat().st_mtime
            for suffix in ("", "-wal")
            if (path := Path(f"{self.path}{suffix}")).exists()
        )
        return time.time() - newest


@lru_cache
def _allowed(row_type: type[Any]) -> Allowed:
    """What the columns of such a row may hold, from its annotations."""
    hints = get_type_hints(row_type)
    return tuple(_stored_types(hints[field.name]) for field in fields(row_type))


def _stored_types(hint: Any) -> frozenset[type]:
    if get_origin(hint) is Literal:
        return frozenset(type(value) for value in get_args(hint))
    if hint is bool:
        return _WHOLE  # SQLite knows no truth values
    return frozenset(get_args(hint) or {hint})  # the parts of a union, or the type itself


@lru_cache(maxsize=1024)
def _fits(types: tuple[type, ...], allowed: Allowed) -> bool:
    """SQLite keeps any type in any column, so what a damaged file gives must be looked at.

    Cached, since nearly all rows of a table are alike.
    """
    return len(types) == len(allowed) and all(map(frozenset.__contains__, allowed, types))


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


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
    except _UNREADABLE as error:
        raise RecordingError(
            f"Cannot write the outcome into {path}: {error}.",
            "The recording itself is as it was; check that the disk has space.",
        ) from error


def _open(path: Path) -> sqlite3.Connection:
    if path.is_dir():
        raise RecordingError(f"{path} is a folder, not a recording.", "Name a .p87 file.")
    if not path.exists():
        raise RecordingError(f"There is no recording {path}.", "See: page87 list")
    if not path.is_file():
        raise RecordingError(f"{path} is not a file.", "Name a .p87 file.")
    if path.stat().st_size == 0:
        raise RecordingError(f"{path} is empty.", "Its writer died before the first tick.")
    url = f"file:{quote(os.fsencode(path.resolve()))}"
    # A finished recording can lie in a folder where nothing may be created; a log beside it can
    # only be read where SQLite may create its index, so immutable is the second choice.
    for mode in ("mode=ro", "mode=ro&immutable=1"):
        try:
            db = sqlite3.connect(f"{url}?{mode}", uri=True, timeout=5.0, check_same_thread=False)
            db.text_factory = partial(bytes.decode, errors="replace")
            db.execute("PRAGMA trusted_schema = OFF")
            db.execute("PRAGMA query_only = ON")
            db.execute("SELECT 1 FROM sqlite_schema").fetchone()
        except sqlite3.OperationalError as error:
            problem: Exception = error
            continue
        except _UNREADABLE as error:
            problem = error
            break
        return db
    if isinstance(problem, sqlite3.OperationalError):
        raise RecordingError(f"Cannot open {path}: {problem}.", "Check its permissions.")
    if path.open("rb").read(16).startswith(b"SQLite format 3"):
        raise _damaged(path, problem) from problem
    raise RecordingError(
        f"{path} is not a Page 87 recording: {problem}.",
        "Recordings end in .p87 and are made by page87 run or diagnostics.record().",
    ) from problem


def _check(db: sqlite3.Connection, path: Path) -> int:
    """The schema version of the file, if this code can read it."""
    try:
        application = db.execute("PRAGMA application_id").fetchone()[0]
        version = int(db.execute("PRAGMA user_version").fetchone()[0])
        tables = {row[0] for row in db.execute("SELECT name FROM sqlite_schema WHERE type='table'")}
    except _UNREADABLE as error:
        raise _damaged(path, error) from error
    if application != schema.APPLICATION_ID:
        raise RecordingError(
            f"{path} is a SQLite file of another program, not a Page 87 recording.",
            "Recordings end in .p87 and are made by page87 run or diagnostics.record().",
        )
    if version > schema.VERSION:
        raise RecordingError(
            f"{path} was written by a newer Page 87: its format is version {version}, and this"
            f" one reads up to version {schema.VERSION}.",
            "Upgrade: pip install --upgrade page87",
        )
    if not {"meta", "units", "outcome"} <= tables:
        raise RecordingError(
            f"{path} holds no complete recording.", "Its writer died before the first tick."
        )
    return version


def _damaged(path: Path, error: Exception) -> RecordingError:
    return RecordingError(
        f"{path} is damaged or was cut off: {error}.",
        "If it was copied or downloaded, copy it again; if its process was killed, copy the"
        f" file {path.name}-wal with it.",
    )


def _names(row_type: type[Any]) -> str:
    return ", ".join(field.name for field in fields(row_type))
