"""``/proc/self/status``, which grows with the number of groups that the user is in."""

from __future__ import annotations

import os
import re

from diagnostics.handles import Handle

_FIRST_BYTES = 4096


class StatusFile:
    """Kept open, so that a reading is one call. Raises ``OSError`` where the system has none."""

    def __init__(self) -> None:
        self._handle = Handle(os.open("/proc/self/status", os.O_RDONLY))
        self._bytes = _FIRST_BYTES

    def sizes(self, lines: re.Pattern[bytes]) -> list[int]:
        """The figures that the pattern's groups match, which the kernel gives in kB, in bytes.

        Raises ``OSError`` where it does not match.
        """
        text = os.pread(self._handle.number, self._bytes, 0)
        while (found := lines.search(text)) is None:
            if len(text) < self._bytes:
                raise OSError("/proc/self/status lacks what is looked for")
            self._bytes *= 2
            text = os.pread(self._handle.number, self._bytes, 0)
        return [int(kilobytes) * 1024 for kilobytes in found.groups()]
