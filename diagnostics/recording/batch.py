"""The rows of one tick on their way into SQLite, all tables together, in one statement."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from diagnostics.recording.texts import storable

FRAMES = "frames"
_FRAME_COLUMNS = "(series, t_ns, unit, key, payload)"


class Batch:
    """Gathers rows and inserts them, or replaces those of the same key.

    SQLite's steps run without the GIL, and getting it back beside a busy loader takes up to 5 ms
    and two changes of context. So the rows of a tick travel as one JSON array into a view whose
    triggers hand each to its table: one step, however many rows and tables there are. View and
    triggers are temporary: they belong to the connection and never reach the file.
    """

    def __init__(self, db: sqlite3.Connection, widths: Mapping[str, int]) -> None:
        """``widths``: the number of columns of each table; the table of frames comes by itself."""
        self._db = db
        self._numbers = {table: number for number, table in enumerate([FRAMES, *widths])}
        self.clear()
        db.execute("PRAGMA temp_store = MEMORY")
        db.execute("CREATE TEMP VIEW batch (target, line, payload) AS SELECT NULL, NULL, NULL")
        self._send(FRAMES, _FRAME_COLUMNS, [*map(_column, range(4)), "NEW.payload"])
        for table, width in widths.items():
            self._send(table, "", map(_column, range(width)))

    def add(self, table: str, rows: Iterable[Sequence[Any]]) -> None:
        """Add rows. Raises where a value cannot be stored; none of ``rows`` is added then."""
        number = self._numbers[table]
        lines = [[number, *row] for row in rows]
        if lines:
            self._lines.append(_encoded(lines))

    def add_frame(self, series: str, t_ns: int, unit: int, key: bool, payload: bytes) -> None:
        """Add a frame. JSON holds no bytes, so its payload travels beside the rows."""
        place = (len(self._payloads) + 1, len(payload))
        self._lines.append(
            _encoded([[self._numbers[FRAMES], series, t_ns, unit, int(key), *place]])
        )
        self._payloads += payload

    def flush(self) -> None:
        """Insert what was added. Raises ``sqlite3.DatabaseError``.

        Where the database refuses single rows, all others are stored before it is raised.
        """
        lines, payloads = f"[{','.join(self._lines)}]", bytes(self._payloads)
        if not self._lines:
            return
        self.clear()
        try:
            self._insert(lines, payloads)
        except sqlite3.IntegrityError:
            refused = None
            for line in json.loads(lines):
                try:
                    self._insert(_encode([line]), payloads)
                except sqlite3.IntegrityError as error:
                    refused = error
            if refused is not None:
                raise refused from None

    def clear(self) -> None:
        """Forget what was added."""
        self._lines: list[str] = []
        self._payloads = bytearray()

    def _insert(self, lines: str, payloads: bytes) -> None:
        self._db.execute(
            "INSERT INTO batch SELECT json_extract(value, '$[0]'), value,"
            " CASE json_extract(value, '$[0]') WHEN :frames"
            " THEN substr(:payloads, json_extract(value, '$[5]'), json_extract(value, '$[6]')) END"
            " FROM json_each(:lines)",
            {"lines": lines, "payloads": payloads, "frames": self._numbers[FRAMES]},
        )

    def _send(self, table: str, columns: str, values: Iterable[str]) -> None:
        self._db.execute(
            f"CREATE TEMP TRIGGER batch_into_{table} INSTEAD OF INSERT ON batch"
            f" WHEN NEW.target = {self._numbers[table]}"
            f" BEGIN INSERT OR REPLACE INTO {table} {columns} VALUES ({', '.join(values)}); END"
        )


def _column(place: int) -> str:
    return f"json_extract(NEW.line, '$[{place + 1}]')"


_encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode

_NEEDS_A_LOOK = re.compile(r"\\u(?:0000|d[89a-f])|[0-9]{19}")
"""What a text or a number looks like in JSON that SQLite may not be able to store."""


def _encoded(lines: list[list[Any]]) -> str:
    """The lines as JSON, without the brackets around them."""
    text = _encode(lines)
    if _NEEDS_A_LOOK.search(text):
        text = _encode([[_stored_value(value) for value in line] for line in lines])
    return text[1:-1]


def _stored_value(value: Any) -> Any:
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise OverflowError(f"{value:.3g} is no 64-bit integer")  # JSON would make a float of it
    return value
