"""Which threads belong to a run that shares its process with a server."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class ThreadFamily:
    """A thread, and every thread that one of them starts while the family is together.

    ``on_join`` runs in each new member, before its own work.
    """

    def __init__(self, on_join: Callable[[], None]) -> None:
        self._on_join = on_join
        self._members: set[int] = set()
        self._original: Callable[[threading.Thread], None] | None = None

    def adopt(self) -> None:
        """Begin with the calling thread."""
        self._members = {threading.get_ident()}
        self._original = original = threading.Thread.start

        def start(thread: threading.Thread) -> None:
            if threading.get_ident() in self._members:
                self._let_join(thread)
            original(thread)

        threading.Thread.start = start  # type: ignore[method-assign, assignment]

    def release(self) -> None:
        """Let new threads be. Safe to call when no family is together."""
        if self._original is not None:
            threading.Thread.start = self._original  # type: ignore[method-assign, assignment]
            self._original = None
        self._members.clear()

    def _let_join(self, thread: threading.Thread) -> None:
        run = thread.run

        def joined(*args: Any, **kwargs: Any) -> None:
            self._members.add(threading.get_ident())
            self._on_join()
            run(*args, **kwargs)

        thread.run = joined  # type: ignore[method-assign]
