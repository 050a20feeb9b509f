"""``page87 list``: the recordings in a folder."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from diagnostics.analysis.format import counted, format_bytes
from diagnostics.errors import UsageError
from diagnostics.recording.places import recordings_folder

if TYPE_CHECKING:
    from diagnostics.analysis.library import LibraryEntry


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("list", help="list the recordings")
    parser.add_argument("folder", nargs="?", type=Path, help="default: your folder of recordings")
    parser.add_argument("--json", action="store_true", help="as JSON, see docs/json.md")
    parser.set_defaults(main=main)


def main(chosen: argparse.Namespace) -> int:
    # Here, as in ``show``: every command is imported with every other.
    from diagnostics.analysis.library import list_recordings

    folder = chosen.folder or recordings_folder()
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder.", "See: page87 list --help")
    entries = list_recordings(folder)
    if chosen.json:
        print(json.dumps([asdict(entry) for entry in entries], indent=2, default=str))
    elif not entries:
        print(f"No recordings in {folder}. Make one: page87 run DOCUMENT")
    else:
        rows = [("NAME", "OUTCOME", "UNITS", "PEAK", "SIZE", "STARTED"), *map(_row, entries)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        for row in rows:
            cells = (text.ljust(width) for text, width in zip(row, widths, strict=True))
            print("  ".join(cells).rstrip())
    return 0


def _row(entry: LibraryEntry) -> tuple[str, ...]:
    from diagnostics.analysis.summary_text import printable

    return (
        printable(entry.path.name),
        entry.state or "cannot be read",
        counted(entry.units, entry.unit_kind) if entry.unit_kind else "",
        format_bytes(entry.peak_bytes) if entry.peak_bytes is not None else "",
        format_bytes(entry.bytes),
        entry.started_at[:19].replace("T", " "),
    )
