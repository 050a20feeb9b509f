"""Passes on what a child says, and remembers the end of it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import IO, TextIO

_KEPT_BYTES = 64 * 1024
_READ_BYTES = 8 * 1024


class Relay:
    """Reads ``source`` in a thread of its own, and writes to ``target`` while ``only_if()``.

    The last 64 KiB are kept for ``last_words``. The source is read to its end whatever becomes of
    the target, since a child that writes into a full pipe would stand still.
    """

    def __init__(
        self, source: IO[bytes], target: TextIO, *, only_if: Callable[[], bool] = lambda: True
    ) -> None:
        self._source = source
        self._target: TextIO | None = target
        self._only_if = only_if
        self._kept = b""
        self._thread = threading.Thread(target=self._run, name="page87-supervisor", daemon=True)
        self._thread.start()

    def last_words(self, patience_s: float) -> str:
        """The end of what was said, after waiting up to ``patience_s`` for the source's end."""
        self._thread.join(patience_s)
        return self._kept.decode(errors="replace")

    def _run(self) -> None:
        with self._source:
            while said := os.read(self._source.fileno(), _READ_BYTES):
                self._kept = (self._kept + said)[-_KEPT_BYTES:]
                if self._only_if():
                    self._pass_on(said.decode(errors="replace"))

    def _pass_on(self, text: str) -> None:
        if self._target is None:
            return
        try:
            self._target.write(text)
            self._target.flush()
        except (OSError, ValueError):  # closed: nobody listens any more
            self._target = None
