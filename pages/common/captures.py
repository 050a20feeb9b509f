"""Ask a run of this server to look who holds what, now."""

from __future__ import annotations

from pathlib import Path

from pages.common.runs import runs


def can_capture(path: Path) -> bool:
    """Whether the run behind ``path`` can be asked for a capture from here."""
    return runs().can_cancel(path)


def capture_now(path: Path) -> None:
    """Ask the run behind ``path`` for a capture; does nothing once it is over."""
    runs().request_capture(path)
