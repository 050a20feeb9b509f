"""Opens a file as a recording, or says in words why it is none."""

from __future__ import annotations

import os
import sqlite3
from functools import partial
from pathlib import Path
from urllib.parse import quote

from diagnostics.errors import RecordingError
from diagnostics.recording import schema

# A UnicodeDecodeError comes from an error message of SQLite that quotes the damaged text.
UNREADABLE = (sqlite3.Error, UnicodeDecodeError)


def connect(path: Path) -> sqlite3.Connection:
    """A connection that reads ``path``, writes nothing and runs nothing from it.

    Raises ``RecordingError`` where it cannot be had.
    """
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
        except UNREADABLE as error:
            problem = error
            break
        return db
    if isinstance(problem, sqlite3.OperationalError):
        raise RecordingError(f"Cannot open {path}: {problem}.", "Check its permissions.")
    if path.open("rb").read(16).startswith(b"SQLite format 3"):
        raise damaged(path, problem) from problem
    raise RecordingError(
        f"{path} is not a Page 87 recording: {problem}.",
        "Recordings end in .p87 and are made by page87 run or diagnostics.record().",
    ) from problem


def version_and_tables(db: sqlite3.Connection, path: Path) -> tuple[int, frozenset[str]]:
    """The version of the file's format and the tables that it has.

    Raises ``RecordingError`` where this code cannot read it.
    """
    try:
        application = db.execute("PRAGMA application_id").fetchone()[0]
        version = int(db.execute("PRAGMA user_version").fetchone()[0])
        rows = db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    except UNREADABLE as error:
        raise damaged(path, error) from error
    tables = frozenset(name for (name,) in rows)
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
    return version, tables


def damaged(path: Path, error: Exception) -> RecordingError:
    """The error of a file that cannot be read as what it claims to be."""
    return RecordingError(
        f"{path} is damaged or was cut off: {error}.",
        "If it was copied or downloaded, copy it again; if its process was killed, copy the"
        f" file {path.name}-wal with it.",
    )
