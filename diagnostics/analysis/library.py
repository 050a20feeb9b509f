"""The recordings in a folder, for a list to choose from."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from diagnostics.analysis.peak import highest_rss
from diagnostics.analysis.summary import recording_bytes
from diagnostics.errors import Page87Error
from diagnostics.recording.model import OutcomeState
from diagnostics.recording.places import SUFFIX
from diagnostics.recording.reader import RecordingReader


@dataclass(frozen=True, slots=True)
class LibraryEntry:
    """One file of the list.

    ``units`` counts the units that were begun, ``peak_bytes`` is the highest resident set,
    ``started_at`` an ISO time (of the file, where the recording does not tell). A file that
    cannot be read has an ``error`` and no outcome.
    """

    path: Path
    name: str
    bytes: int
    started_at: str
    document: str = ""
    loader: str = ""
    units: int = 0
    unit_kind: str = ""
    state: OutcomeState | None = None
    reason: str = ""
    peak_bytes: int | None = None
    error: str | None = None


def list_recordings(folder: Path) -> list[LibraryEntry]:
    """Every recording in ``folder``, the newest first; broken ones too, with their error.

    A recording that has ended is read once and remembered until its file changes.
    """
    entries = [_entry(path) for path in folder.glob(f"*{SUFFIX}") if path.is_file()]
    return sorted(entries, key=lambda entry: (entry.started_at, entry.name), reverse=True)


def _entry(path: Path) -> LibraryEntry:
    try:
        stat = path.stat()
        entry = _ended(path, stat.st_mtime_ns, stat.st_size)
        return entry if entry is not None else _read(path)
    except FileNotFoundError as error:  # deleted while the folder was being listed
        return LibraryEntry(path, path.stem, 0, "", error=str(error))


@lru_cache(maxsize=1024)
def _ended(path: Path, changed_ns: int, size: int) -> LibraryEntry | None:
    """The entry, or None for a run without an ending, about which tomorrow may say more."""
    entry = _read(path)
    return None if entry.state in ("running", "lost", None) else entry


def _read(path: Path) -> LibraryEntry:
    changed_at = datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="seconds")
    size = recording_bytes(path)
    try:
        with RecordingReader(path) as reader:
            return _describe(reader, size, changed_at)
    except Page87Error as error:
        return LibraryEntry(path, path.stem, size, changed_at, error=str(error))


def _describe(reader: RecordingReader, size: int, changed_at: str) -> LibraryEntry:
    meta = reader.meta()
    document = meta.get("document")
    outcome = reader.outcome()
    units = reader.units()
    return LibraryEntry(
        path=reader.path,
        name=_text(meta, "name") or reader.path.stem,
        bytes=size,
        started_at=_text(meta, "started_at") or changed_at,
        document=_text(document, "name"),
        loader=_text(document, "loader"),
        units=len(units),
        unit_kind=units[0].kind if units else "",
        state=outcome.state,
        reason=outcome.reason,
        peak_bytes=highest_rss(reader.process(), reader.unit_peaks(), reader.ledger()),
    )


def _text(values: Any, key: str) -> str:
    value = values.get(key) if isinstance(values, dict) else None
    return value if isinstance(value, str) else ""
