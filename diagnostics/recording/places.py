"""Where recordings live when nobody names a file."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

SUFFIX = ".p87"


def recordings_folder() -> Path:
    """The user's folder of recordings, made if need be.

    ``$PAGE87_RECORDINGS``, else ``page87/recordings`` under ``$XDG_DATA_HOME`` or
    ``~/.local/share``.
    """
    named = os.environ.get("PAGE87_RECORDINGS")
    folder = Path(named) if named else _data_folder() / "recordings"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def uploads_folder() -> Path:
    """Where documents lie that were uploaded to be recorded; for this user's eyes alone."""
    folder = _data_folder() / "uploads"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def _data_folder() -> Path:
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data) / "page87"


def new_path(name: str, folder: Path | None = None) -> Path:
    """A path for a new recording called after ``name`` and the time.

    Four random digits tell apart what several processes begin in the same second.
    """
    folder = folder or recordings_folder()
    stem = re.sub(r"[^\w.-]+", "-", name).strip("-.") or "run"
    stamped = f"{stem}-{time.strftime('%Y%m%d-%H%M%S')}"
    while (path := folder / f"{stamped}-{os.urandom(2).hex()}{SUFFIX}").exists():
        pass
    return path
