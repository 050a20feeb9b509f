"""How near the memory limit in force is."""

from __future__ import annotations

from diagnostics.probes.cgroup import MemoryLimit, own_group

NEAR = 0.85
_FAR = 0.7
_EVERY_NS = 500_000_000


class LimitWatch:
    """Tells once when the memory that a limit counts comes near it, and again after it was far.

    Without a limit nothing is ever near. The limit is looked for once, at the start; where it
    cannot be read, ``missing`` says why.
    """

    def __init__(self, limit: MemoryLimit | None = None) -> None:
        self.limit, self.missing = limit, ""
        if limit is None:
            try:
                group = own_group()
                self.limit = group.limit() if group is not None else None
            except OSError as error:
                self.missing = str(error)
        self._next_ns = 0
        self._told = False

    def comes_near(self, now_ns: int) -> bool:
        """Whether it has come near since the last call; asks the kernel twice a second at most."""
        if self.limit is None or now_ns < self._next_ns:
            return False
        self._next_ns = now_ns + _EVERY_NS
        try:
            used = self.limit.used()
        except OSError as error:  # the group is gone, and its limit with it
            self.limit, self.missing = None, str(error)
            return False
        if used < _FAR * self.limit.bytes:
            self._told = False
        if used < NEAR * self.limit.bytes or self._told:
            return False
        self._told = True
        return True
