"""Writes a recording. One thread owns a writer; what it committed survives ``kill -9``."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

from diagnostics.errors import RecordingError
from diagnostics.handles import Handle
from diagnostics.recording import schema
from diagnostics.recording.frames import EncodedFrame, FrameEncoder, Values
from diagnostics.recording.model import (
    Capture,
    ChainLink,
    Frame,
    GcEvent,
    GcSummary,
    HeapTotal,
    HeldObject,
    LedgerReading,
    LineRow,
    LogEntry,
    LogLevel,
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
from diagnostics.recording.texts import storable

Series = Literal["heap", "types", "alive", "mappings", "residency"]
SERIES_WIDTH: Mapping[Series, int] = {
    "heap": 2,  # site -> (bytes, blocks)
    "types": 1,  # type -> (count,)
    "alive": 2,  # birth unit and site, see alive_id -> (bytes, blocks)
    "mappings": 5,  # mapping -> MappingMemory
    "residency": 1,  # address // BIN_BYTES -> (resident pages of BIN_PAGE_BYTES,)
}

_RESERVE_BYTES = 512 * 1024
_CLOSE_PATIENCE_S = 2.0


class RecordingWriter:
    """A new recording at ``path``. Every method but ``close`` only adds to the open transaction.

    Raises ``RecordingError`` when the file exists already or cannot be created. When the disk
    fills up, ``commit`` raises ``sqlite3.OperationalError`` once; ``release_reserve`` then gives
    back the space kept for a last word.
    """

    def __init__(self, path: str | os.PathLike[str], meta: Mapping[str, Any]) -> None:
        self.path = Path(path)
        self._reserve: Handle | None = None
        self._closed = False
        self._create()
        self._files: dict[str, int] = {}
        self._new_files: list[tuple[int, str]] = []
        self._new_source: list[tuple[int, int, str]] = []
        self._sites: dict[tuple[int | None, Frame], int] = {}
        self._types: dict[str, int] = {}
        self._encoders = {name: FrameEncoder(width) for name, width in SERIES_WIDTH.items()}
        self._insertions: dict[str, tuple[int, Callable[[Any], Any]]] = {}
        self.put_meta(meta)
        self.commit()
        self._reserve = _reserve_space(self.path.parent)

    def _create(self) -> None:
        try:
            # O_EXCL: two recorders that choose the same name at once must not share a file.
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            raise RecordingError(
                f"{self.path} exists already; it was left as it is.",
                "Choose another name, or delete it first.",
            ) from None
        except OSError as error:
            raise RecordingError(
                f"Cannot create the recording {self.path}: {error.strerror}.",
                "Choose a folder that exists and that you may write to.",
            ) from error
        except ValueError as error:  # a NUL, or characters that file names cannot have
            raise RecordingError(
                f"Cannot create the recording {str(self.path)!r}: {error}.",
                "Choose a name that the file system can hold.",
            ) from error
        # The recorder starts the writer in the caller's thread and hands it to its own.
        self._db = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        self._db.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
        self._db.execute(f"PRAGMA user_version = {schema.VERSION}")
        self._db.execute("PRAGMA journal_mode = WAL")
        # NORMAL survives the death of the process; only a power cut can cost the last ticks.
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.execute("PRAGMA cache_size = -1000")  # KiB; little of it inside people's processes
        self._db.execute("BEGIN")
        for statement in schema.TABLES.split(";"):
            self._db.execute(statement)

    # -- rows ------------------------------------------------------------------------------

    def put_meta(self, values: Mapping[str, Any]) -> None:
        """Add or replace meta values; each must be something JSON can hold."""
        self._insert("meta", 2, [(key, json.dumps(value)) for key, value in values.items()])

    def put_units(self, rows: Iterable[UnitRow]) -> None:
        """Add units, or replace them as they go on and end."""
        self._put("units", UnitRow, rows)

    def drop_units(self, indexes: Iterable[int]) -> None:
        """Take back units that turned out not to exist (the iterator was at its end)."""
        gone = [(index,) for index in indexes]
        if gone:
            self._begin().executemany('DELETE FROM units WHERE "index" = ?', gone)

    def put_unit_peaks(self, rows: Iterable[UnitPeak]) -> None:
        self._put("unit_peaks", UnitPeak, rows)

    def put_process(self, row: ProcessSample) -> None:
        self._put("process", ProcessSample, [row])

    def put_heap_total(self, row: HeapTotal) -> None:
        self._put("heap_totals", HeapTotal, [row])

    def add_gc_events(self, rows: Iterable[GcEvent]) -> None:
        self._put("gc_events", GcEvent, rows)

    def add_gc_summaries(self, rows: Iterable[GcSummary]) -> None:
        self._put("gc_summaries", GcSummary, rows)

    def put_line_profile(self, rows: Iterable[LineRow]) -> None:
        self._put("line_profile", LineRow, rows)

    def put_probes(self, rows: Iterable[ProbeStatus]) -> None:
        """Add or replace how the probes fare."""
        self._put("probes", ProbeStatus, rows)

    def add_log(self, t_ns: int, level: LogLevel, source: str, message: str) -> None:
        self._put("log", LogEntry, [LogEntry(t_ns, level, source, message)])

    def put_unit_heaps(self, rows: Iterable[UnitHeap]) -> None:
        """Add or replace what units have allocated so far."""
        self._put("unit_heaps", UnitHeap, rows)

    def put_mappings(self, rows: Iterable[MappingRow]) -> None:
        """Add mappings, or replace them as they grow."""
        self._put("mappings", MappingRow, rows)

    def put_ledger(self, row: LedgerReading) -> None:
        self._put("ledger", LedgerReading, [row])

    def put_settlement(self, rows: Iterable[SettlementStep]) -> None:
        self._put("settlement", SettlementStep, rows)

    def put_capture(
        self,
        capture: Capture,
        suspects: Iterable[Suspect],
        objects: Iterable[HeldObject],
        references: Iterable[Reference],
        chains: Iterable[ChainLink],
    ) -> None:
        """Add one capture, or replace it as it goes on; every row carries its id."""
        self._put("captures", Capture, [capture])
        self._put("suspects", Suspect, suspects)
        self._put("held_objects", HeldObject, objects)
        self._put("object_references", Reference, references)
        self._put("chains", ChainLink, chains)

    def put_outcome(self, outcome: Outcome) -> None:
        put_outcome(self._begin(), outcome)

    # -- sites, types and their series --------------------------------------------------------

    def site(self, stack: Iterable[Frame]) -> int:
        """The id of an allocation stack, outermost frame first; new nodes are added."""
        parent: int | None = None
        for frame in stack:
            node = self._sites.get((parent, frame))
            if node is None:
                node = len(self._sites) + 1
                self._begin().execute(
                    "INSERT INTO sites VALUES (?, ?, ?, ?, ?)",
                    (node, parent, self._file(frame.file), frame.line, storable(frame.function)),
                )
                self._sites[parent, frame] = node
            parent = node
        if parent is None:
            raise ValueError("a stack has at least one frame")
        return parent

    def put_sites(self, sites: Iterable[Site]) -> None:
        """Add nodes whose ids and parents the engine gave itself; not to be mixed with ``site``."""
        rows = [
            (site.id, site.parent, self._file(site.file), site.line, site.function)
            for site in sites
        ]
        self._insert("sites", 5, rows)

    def put_source(self, file: str, lines: Mapping[int, str]) -> None:
        """Keep source lines (number -> text), so that a post-mortem needs no checkout."""
        file_id = self._file(file)
        self._new_source += [(file_id, number, text) for number, text in lines.items()]

    def type_id(self, name: str) -> int:
        """The id of a type's qualified name."""
        name = storable(name)
        if name not in self._types:
            self._types[name] = len(self._types) + 1
            self._begin().execute("INSERT INTO types VALUES (?, ?)", (self._types[name], name))
        return self._types[name]

    def add_frame(self, series: Series, t_ns: int, unit: int, state: Mapping[int, Values]) -> None:
        """Add the whole present state of a series; what is stored is the change."""
        self._add_frame(series, t_ns, unit, self._encoders[series].encode(state))

    def add_changes(
        self, series: Series, t_ns: int, unit: int, changes: Mapping[int, Values]
    ) -> None:
        """Add to a series what changed since its last frame; all zeros removes an id."""
        self._add_frame(series, t_ns, unit, self._encoders[series].encode_changes(changes))

    # -- transactions ----------------------------------------------------------------------

    def commit(self) -> None:
        """Make everything added so far durable and visible to readers."""
        # Many small insertions wait here to be made at once, see _insert.
        files, self._new_files = self._new_files, []
        source, self._new_source = self._new_source, []
        self._insert("files", 2, files)
        self._insert("source", 3, source)
        if self._db.in_transaction:
            self._db.execute("COMMIT")

    def rollback(self) -> None:
        """Give up what was added since the last commit."""
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def release_reserve(self) -> None:
        """Give back the disk space that was kept for the last word."""
        if self._reserve is not None:
            self._reserve.close()
            self._reserve = None

    @property
    def size(self) -> int:
        """Bytes on disk at this moment, write-ahead log included."""
        return sum(
            path.stat().st_size
            for suffix in ("", "-wal")
            if (path := Path(f"{self.path}{suffix}")).exists()
        )

    def close(self) -> None:
        """Commit and leave one file. Safe to call twice.

        A reader that looks at this very moment can keep the write-ahead log alive; after two
        seconds of patience it is left beside the file, and both together are still complete.
        """
        if self._closed:
            return
        self._closed = True
        self.release_reserve()
        try:
            self.commit()
            fold_log(self._db)
        finally:
            self._db.close()

    @property
    def connection(self) -> sqlite3.Connection:
        """For a forked child alone, which must see to it that its copy is never closed."""
        return self._db

    # -- inside ----------------------------------------------------------------------------

    def _add_frame(self, series: Series, t_ns: int, unit: int, frame: EncodedFrame | None) -> None:
        if frame is not None:
            self._begin().execute(
                "INSERT INTO frames (series, t_ns, unit, key, payload) VALUES (?, ?, ?, ?, ?)",
                (series, t_ns, unit, frame.key, frame.payload),
            )

    def _begin(self) -> sqlite3.Connection:
        if not self._db.in_transaction:
            self._db.execute("BEGIN")
        return self._db

    def _put(self, table: str, row_type: type[Any], rows: Iterable[Any]) -> None:
        if table not in self._insertions:
            self._insertions[table] = _columns(row_type)
        width, values = self._insertions[table]
        self._insert(table, width, [values(row) for row in rows])

    def _insert(self, table: str, width: int, rows: Sequence[Sequence[Any]]) -> None:
        """Add or replace rows, all in one step of one statement.

        SQLite's steps run without the GIL, and getting it back beside a busy loader takes up to
        5 ms; ``executemany`` makes a step for each row. So many rows travel as one JSON array.
        """
        if not rows:
            return
        rows = [_stored(row) for row in rows]
        if len(rows) == 1:
            marks = ", ".join("?" * width)
            self._begin().execute(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", rows[0])
            return
        columns = ", ".join(f"json_extract(value, '$[{place}]')" for place in range(width))
        self._begin().execute(
            f"INSERT OR REPLACE INTO {table} SELECT {columns} FROM json_each(?)",
            (json.dumps(rows, allow_nan=False),),
        )

    def _file(self, path: str) -> int:
        path = storable(path)
        if path not in self._files:
            self._files[path] = len(self._files) + 1
            self._new_files.append((self._files[path], path))
        return self._files[path]


def put_outcome(db: sqlite3.Connection, outcome: Outcome) -> None:
    """Write the outcome; also for a supervisor that opened the recording of a dead child."""
    marks = ", ".join("?" for _ in fields(Outcome))
    values = (getattr(outcome, field.name) for field in fields(Outcome))
    db.execute(f"INSERT OR REPLACE INTO outcome VALUES (1, {marks})", _stored(values))


def is_about_the_file(problem: Exception) -> bool:
    """Whether the file itself cannot take more, rather than one value that SQLite cannot store."""
    about_a_value = (sqlite3.ProgrammingError, sqlite3.IntegrityError, sqlite3.DataError)
    return isinstance(problem, sqlite3.DatabaseError) and not isinstance(problem, about_a_value)


def _stored(row: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(map(_stored_value, row))


def _stored_value(value: Any) -> Any:
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise OverflowError(f"{value:.3g} is no 64-bit integer")  # JSON would make a float of it
    return value


def _columns(row_type: type[Any]) -> tuple[int, Callable[[Any], Any]]:
    """The number of columns of such a row, and what takes its values out.

    (``dataclasses.astuple`` would copy every value deeply, at each tick.)
    """
    names = [field.name for field in fields(row_type)]
    return len(names), attrgetter(*names)


def fold_log(db: sqlite3.Connection) -> bool:
    """Fold the write-ahead log into the file and remove it; False if a reader held on to it."""
    deadline = time.monotonic() + _CLOSE_PATIENCE_S
    while True:
        with contextlib.suppress(sqlite3.OperationalError):  # locked: a reader is looking just now
            if db.execute("PRAGMA journal_mode = DELETE").fetchone()[0] == "delete":
                return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)


def _reserve_space(folder: Path) -> Handle | None:
    """A nameless file of real blocks: closing it frees them, and so does the death of the process.

    Returns None where no such file can be made; then a full disk may cost the last word.
    """
    try:
        handle, name = tempfile.mkstemp(dir=folder, prefix=".p87-")
    except OSError:
        return None
    try:
        Path(name).unlink()
        os.write(handle, os.urandom(_RESERVE_BYTES))  # zeros could be stored as a hole
    except OSError:
        os.close(handle)
        return None
    return Handle(handle)
