"""Documents to record: the samples that come along, and what people upload."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import BinaryIO

from diagnostics.launch.app import workbench_root
from diagnostics.recording.places import uploads_folder

REPORT = "annual-report.pdf"
"""The sample that the first screen offers: page 87 of it is poisonous."""

_KEPT_S = 24 * 3600
_SUFFIXES = {".pdf", ".docx", ".md", ".html", ".txt"}


def sample_documents() -> dict[str, Path]:
    """The sample documents by name, the report first."""
    folder = workbench_root() / "sample_docs"
    found = sorted(path for path in folder.iterdir() if path.suffix in _SUFFIXES)
    found.sort(key=lambda path: path.name != REPORT)
    return {path.name: path for path in found if path.name != "README.md"}


def store_upload(upload: BinaryIO, name: str) -> Path:
    """Keep an uploaded document for a run; returns its path.

    The folder is emptied of what is older than a day.
    """
    folder = uploads_folder()
    for old in folder.iterdir():
        if time.time() - old.stat().st_mtime > _KEPT_S:
            old.unlink()
    target = folder / Path(name).name
    with target.open("wb") as copy:
        shutil.copyfileobj(upload, copy)
    return target
