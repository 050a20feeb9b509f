"""What people do with recordings as files: rename, delete, take in, give away."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import BinaryIO

from diagnostics.errors import RecordingError
from diagnostics.recording.places import SUFFIX, new_path, recordings_folder
from diagnostics.recording.reader import RecordingReader

_PARTS = ("", "-wal", "-shm")


def rename(path: Path, name: str) -> Path:
    """Give a recording another file name in its folder; returns the new path.

    Raises ``RecordingError`` for a name that is no plain file name or is taken, and while the
    recording is being written.
    """
    name = name.strip().removesuffix(SUFFIX)
    if not name or name.startswith(".") or Path(name).name != name or "\\" in name:
        raise RecordingError(
            f"{name!r} cannot be the name of a file.", "Use letters, digits, spaces and dashes."
        )
    target = path.with_name(name + SUFFIX)
    if target == path:
        return path
    if target.exists():
        raise RecordingError(f"There is a recording called {name} already.", "Choose another name.")
    _refuse_if_running(path, "renamed")
    move(path, target)
    return target


def move(path: Path, target: Path) -> None:
    """Rename a recording and all that lies beside it: a killed process leaves a log."""
    for part in _PARTS:
        source = Path(f"{path}{part}")
        if source.exists():
            source.rename(f"{target}{part}")


def delete(path: Path) -> None:
    """Delete a recording for good. Raises ``RecordingError`` while it is being written."""
    _refuse_if_running(path, "deleted")
    for part in _PARTS:
        Path(f"{path}{part}").unlink(missing_ok=True)


def take_in(upload: BinaryIO, name: str, folder: Path | None = None) -> Path:
    """Copy an uploaded recording into the folder of recordings; returns its path.

    The file is checked before it gets its name: ``RecordingError`` when it is no recording.
    """
    folder = folder or recordings_folder()
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".upload-", delete=False) as copy:
        arrived = Path(copy.name)
        shutil.copyfileobj(upload, copy)
    try:
        with RecordingReader(arrived) as reader:
            reader.outcome()
    except RecordingError as error:
        arrived.unlink()
        raise RecordingError(
            error.message.replace(str(arrived), name), error.next_step.replace(arrived.name, name)
        ) from error
    target = folder / Path(name).name
    if target.suffix != SUFFIX or target.exists():
        target = new_path(Path(name).stem, folder)
    return arrived.rename(target)


def whole_file(path: Path) -> bytes:
    """The recording as one complete file, also while it is being written."""
    with tempfile.TemporaryDirectory(prefix="page87-") as folder, RecordingReader(path) as reader:
        copy = Path(folder) / path.name
        reader.copy_to(copy)
        return copy.read_bytes()


def _refuse_if_running(path: Path, what: str) -> None:
    try:
        with RecordingReader(path) as reader:
            running = reader.outcome().state == "running"
    except RecordingError:
        return  # a broken file may go
    if running:
        raise RecordingError(
            f"{path.name} is still being written, so it was not {what}.",
            "Wait for the run to end, or cancel it.",
        )
