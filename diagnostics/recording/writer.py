"""Writes a recording. One thread owns a writer; what it committed survives ``kill -9``."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

from diagnostics.errors import RecordingError
from diagnostics.handles import Handle
from diagnostics.recording import schema
from diagnostics.recording.batch import Batch
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

_ROWS: Mapping[str, type[Any]] = {
    "units": UnitRow,
    "unit_peaks": UnitPeak,
    "unit_heaps": UnitHeap,
    "process": ProcessSample,
    "heap_totals": HeapTotal,
    "gc_events": GcEvent,
    "gc_summaries": GcSummary,
    "mappings": MappingRow,
    "line_profile": LineRow,
    "log": LogEntry,
    "probes": ProbeStatus,
    "ledger": LedgerReading,
    "settlement": SettlementStep,
    "captures": Capture,
    "suspects": Suspect,
    "held_objects": HeldObject,
    "object_references": Reference,
    "chains": ChainLink,
}


def _values(row_type: type[Any]) -> Callable[[Any], Any]:
    """What takes the values out of such a row (``astuple`` would copy each deeply)."""
    return attrgetter(*(field.name for field in fields(row_type)))


_TABLES = {row_type: (table, _values(row_type)) for table, row_type in _ROWS.items()}
_WIDTHS = {table: len(fields(row_type)) for table, row_type in _ROWS.items()} | {
    "meta": 2,
    "files": 2,
    "types": 2,
    "source": 3,
    "sites": 5,
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
        self._is_lost = False
        self._create()
        self._batch = Batch(self._db, _WIDTHS)
        self._files: dict[str, int] = {}
        self._sites: dict[tuple[int | None, Frame], int] = {}
        self._types: dict[str, int] = {}
        self._encoders = {name: FrameEncoder(width) for name, width in SERIES_WIDTH.items()}
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
        self._batch.add("meta", [(key, json.dumps(value)) for key, value in values.items()])

    def put_units(self, rows: Iterable[UnitRow]) -> None:
        """Add units, or replace them as they go on and end."""
        self._put(UnitRow, rows)

    def drop_units(self, indexes: Iterable[int]) -> None:
        """Take back units that turned out not to exist (the iterator was at its end)."""
        gone = [(index,) for index in indexes]
        if gone:
            db = self._begin()
            self._batch.flush()  # in the order in which they were told
            db.executemany('DELETE FROM units WHERE "index" = ?', gone)

    def put_unit_peaks(self, rows: Iterable[UnitPeak]) -> None:
        self._put(UnitPeak, rows)

    def put_process(self, row: ProcessSample) -> None:
        self._put(ProcessSample, [row])

    def put_heap_total(self, row: HeapTotal) -> None:
        self._put(HeapTotal, [row])

    def add_gc_events(self, rows: Iterable[GcEvent]) -> None:
        self._put(GcEvent, rows)

    def add_gc_summaries(self, rows: Iterable[GcSummary]) -> None:
        self._put(GcSummary, rows)

    def put_line_profile(self, rows: Iterable[LineRow]) -> None:
        self._put(LineRow, rows)

    def put_probes(self, rows: Iterable[ProbeStatus]) -> None:
        """Add or replace how the probes fare."""
        self._put(ProbeStatus, rows)

    def add_log(self, t_ns: int, level: LogLevel, source: str, message: str) -> None:
        self._put(LogEntry, [LogEntry(t_ns, level, source, message)])

    def put_unit_heaps(self, rows: Iterable[UnitHeap]) -> None:
        """Add or replace what units have allocated so far."""
        self._put(UnitHeap, rows)

    def put_mappings(self, rows: Iterable[MappingRow]) -> None:
        """Add mappings, or replace them as they grow."""
        self._put(MappingRow, rows)

    def put_ledger(self, row: LedgerReading) -> None:
        self._put(LedgerReading, [row])

    def put_settlement(self, rows: Iterable[SettlementStep]) -> None:
        self._put(SettlementStep, rows)

    def put_capture(
        self,
        capture: Capture,
        suspects: Iterable[Suspect],
        objects: Iterable[HeldObject],
        references: Iterable[Reference],
        chains: Iterable[ChainLink],
    ) -> None:
        """Add one capture, or replace it as it goes on; every row carries its id."""
        self._put(Capture, [capture])
        self._put(Suspect, suspects)
        self._put(HeldObject, objects)
        self._put(Reference, references)
        self._put(ChainLink, chains)

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
                row = (node, parent, self._file(frame.file), frame.line, frame.function)
                self._batch.add("sites", [row])
                self._sites[parent, frame] = node
            parent = node
        if parent is None:
            raise ValueError("a stack has at least one frame")
        return parent

    def put_sites(self, sites: Iterable[Site]) -> None:
        """Add nodes whose ids and parents the engine gave itself; not to be mixed with ``site``."""
        self._batch.add(
            "sites",
            [
                (site.id, site.parent, self._file(site.file), site.line, site.function)
                for site in sites
            ],
        )

    def put_source(self, file: str, lines: Mapping[int, str]) -> None:
        """Keep source lines (number -> text), so that a post-mortem needs no checkout."""
        file_id = self._file(file)
        self._batch.add("source", [(file_id, number, text) for number, text in lines.items()])

    def type_id(self, name: str) -> int:
        """The id of a type's qualified name."""
        name = storable(name)
        if name not in self._types:
            self._types[name] = len(self._types) + 1
            self._batch.add("types", [(self._types[name], name)])
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
        self._check_descriptors()
        self._batch.flush()
        if self._db.in_transaction:
            self._db.execute("COMMIT")

    def rollback(self) -> None:
        """Give up what was added since the last commit."""
        self._batch.clear()
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
        try:
            self._check_descriptors()
            self.release_reserve()
            self.commit()
            fold_log(self._db)
        finally:
            if self._is_lost:
                self.abandon()
            else:
                self._db.close()

    def abandon(self) -> None:
        """Never touch the file again: where the descriptors are another process's, or nobody's."""
        import ctypes  # not before it is needed: importing us must stay cheap

        # Closing the connection here, even at the interpreter's end, would fold or delete the log
        # that a parent still writes: it is kept alive for ever.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._db))
        self.release_reserve()  # closes this process's handle only

    # -- inside ----------------------------------------------------------------------------

    def _add_frame(self, series: Series, t_ns: int, unit: int, frame: EncodedFrame | None) -> None:
        if frame is not None:
            self._batch.add_frame(series, t_ns, unit, frame.key, frame.payload)

    def _check_descriptors(self) -> None:
        # Where the program closed all descriptors, SQLite's numbers may be files of the program's
        # by now, and it would write into them, or retry for half a minute. The reserve's tells.
        if self._reserve is not None and not self._reserve.is_ours:
            self._is_lost = True
        if self._is_lost:
            raise sqlite3.OperationalError("the program closed the recording's descriptors")

    def _begin(self) -> sqlite3.Connection:
        self._check_descriptors()
        if not self._db.in_transaction:
            self._db.execute("BEGIN")
        return self._db

    def _put(self, row_type: type[Any], rows: Iterable[Any]) -> None:
        table, values = _TABLES[row_type]
        self._batch.add(table, map(values, rows))

    def _file(self, path: str) -> int:
        path = storable(path)
        if path not in self._files:
            self._files[path] = len(self._files) + 1
            self._batch.add("files", [(self._files[path], path)])
        return self._files[path]


def put_outcome(db: sqlite3.Connection, outcome: Outcome) -> None:
    """Write the outcome; also for a supervisor that opened the recording of a dead child."""
    marks = ", ".join("?" for _ in fields(Outcome))
    values = (getattr(outcome, field.name) for field in fields(Outcome))
    texts_kept = [storable(value) if isinstance(value, str) else value for value in values]
    db.execute(f"INSERT OR REPLACE INTO outcome VALUES (1, {marks})", texts_kept)


def is_about_the_file(problem: Exception) -> bool:
    """Whether the file itself cannot take more, rather than one value that SQLite cannot store."""
    about_a_value = (sqlite3.ProgrammingError, sqlite3.IntegrityError, sqlite3.DataError)
    return isinstance(problem, sqlite3.DatabaseError) and not isinstance(problem, about_a_value)


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
