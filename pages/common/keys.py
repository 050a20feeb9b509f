"""Every key of the session state that is not a widget's, in one place, and how keys are made."""

from __future__ import annotations

from pathlib import Path

OPENED = "opened"  # name of the open recording
WATCH = "watch"  # accumulators of the recording on screen, see screen.py
STARTED = "started"  # name of the recording of the run that this session started last
ASK_PASSWORD = "ask-password"  # a document turned out to be encrypted
CAPTURE_AWAITED = "leaks-awaited"  # how many captures there were when another one was asked for


def of(path: Path, key: str) -> str:
    """``key`` for one recording alone: what was chosen in it means nothing in another one."""
    return f"{key}-of-{path.name}"
