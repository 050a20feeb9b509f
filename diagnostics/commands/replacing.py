"""``--force``: an old recording goes only when the new one is there."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from diagnostics.errors import RecordingError, UsageError
from diagnostics.recording.reader import RecordingReader
from diagnostics.recording.shelf import move


@contextmanager
def replaced(path: Path) -> Iterator[None]:
    """Sets the recording at ``path`` aside, and puts it back if no other has come inside ``with``.

    Should this process be killed meanwhile, it lies in a hidden folder beside the new one. Raises
    ``UsageError`` where the file is no recording, ``RecordingError`` while it is being written.
    """
    if not path.exists():
        yield
        return
    _check(path)
    aside = Path(tempfile.mkdtemp(dir=path.parent, prefix=".page87-replaced-"))
    move(path, aside / path.name)
    try:
        yield
    finally:
        if not path.exists():
            move(aside / path.name, path)
        shutil.rmtree(aside)


def _check(path: Path) -> None:
    try:
        with RecordingReader(path) as reader:
            running = reader.outcome().state == "running"
    except RecordingError as error:
        raise UsageError(
            f"--force replaces recordings only, and {error.message} It was left as it was.",
            "Name another file, or delete this one yourself.",
        ) from error
    if running:
        raise RecordingError(
            f"{path.name} is still being written, so it was not replaced.",
            "Wait for the run to end, or cancel it.",
        )
