"""File descriptors of ours inside a program that may close, or reuse, any descriptor it likes."""

from __future__ import annotations

import contextlib
import os


class Handle:
    """Owns the descriptor ``number``, and closes it only while it still is the same file."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._identity = _identity(number)

    @property
    def is_ours(self) -> bool:
        """False once the program closed it, even if the number means another file by now."""
        try:
            return _identity(self.number) == self._identity
        except OSError:
            return False

    def close(self) -> None:
        """Close it; does nothing where that was done already, by us or by the program."""
        if self.number >= 0 and self.is_ours:
            with contextlib.suppress(OSError):  # another thread closed it this very moment
                os.close(self.number)
        self.number = -1

    def __del__(self) -> None:
        self.close()


def _identity(number: int) -> tuple[int, int, int]:
    # The links tell a nameless file from a new one that was given its inode.
    status = os.fstat(number)
    return status.st_dev, status.st_ino, status.st_nlink
