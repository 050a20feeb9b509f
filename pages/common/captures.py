"""Ask a run of this server to look who holds what, now."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, runtime_checkable

from pages.common.runs import runs


@runtime_checkable
class TakesCaptures(Protocol):
    """A registry of runs that passes the wish on to the recorder of a run."""

    def can_capture(self, path: Path) -> bool:
        """Whether the run behind a recording goes on and can be asked."""
        ...

    def request_capture(self, path: Path) -> None:
        """Ask for a capture; it is in the recording soon after."""
        ...


def can_capture(path: Path) -> bool:
    """Whether the run behind ``path`` can be asked for a capture from here."""
    known: object = runs()
    return isinstance(known, TakesCaptures) and known.can_capture(path)


def capture_now(path: Path) -> None:
    """Ask the run behind ``path`` for a capture; does nothing once it is over."""
    known: object = runs()
    if isinstance(known, TakesCaptures):
        known.request_capture(path)
