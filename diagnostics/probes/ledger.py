"""The readings that the ledger is made of: where the resident set's bytes are, by who took them."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

from diagnostics.probes.base import BaseProbe, Budget, ProbeMissingError, Session
from diagnostics.probes.cgroup import ControlGroup, GroupMemory, own_group
from diagnostics.probes.malloc import MallocMissingError, MallocUse, malloc_reader
from diagnostics.probes.status_file import StatusFile
from diagnostics.recording.model import LedgerReading
from diagnostics.recording.writer import RecordingWriter

_STATUS = re.compile(
    rb"RssAnon:\s+(\d+) kB\s+RssFile:\s+(\d+) kB\s+RssShmem:\s+(\d+) kB", re.DOTALL
)
"""Enough for most. The line of the user's groups, which may be thousands, stands before ours."""

_SHARE = 0.005
"""Of the time that passes, for the readings of each tick."""

_BESIDE_SHARE = 0.02
"""Of the time that passes, for looks at the children and the control group. A look takes some 5 ms
where there are children, and next to nothing where there are none."""

_BESIDE_EVERY_NS = 1_000_000_000


class LiveCounter(Protocol):
    """A heap engine, as far as the ledger and the settlement need it."""

    def live_bytes(self) -> tuple[int, int | None, int | None] | None:
        """Live Python bytes, those of them that lie in pymalloc's arenas, and the bytes of the
        arenas that were mapped since the recording began; None while the engine does not count."""

    def keep_counting(self) -> None:
        """Let ``live_bytes`` go on beyond ``stop``, until ``stop_counting``."""

    def stop_counting(self) -> None:
        """End what ``keep_counting`` has prolonged."""


class _Resident(NamedTuple):
    anonymous: int
    file_backed: int
    shared: int


class LedgerProbe(BaseProbe):
    """One ``LedgerReading`` a tick, one at the end, and any that is asked for with ``look``.

    A reading takes some 30 µs of CPU time, more where malloc has many free blocks to walk through;
    ticks pass without one where they would take more than 0.5 % of the time. Child processes and
    the control group are read once a second at most, within 2 % of the time that passes.

    ``engine`` counts the live Python bytes; without one there are none in the readings.
    """

    name = "ledger"

    def __init__(self, engine: LiveCounter | None = None) -> None:
        super().__init__()
        self._engine = engine
        self._status: StatusFile | None = None
        self._malloc: Callable[[], MallocUse] | None = None
        self._group: ControlGroup | None = None
        self._no_group = "no control group of its own"
        self._process: Any = None
        # Of the time that passes: a process that waits, for its children say, uses no CPU time, and
        # they grow all the same.
        self._budget = Budget(_SHARE, time.thread_time_ns, earns=time.monotonic_ns)
        self._beside_budget = Budget(_BESIDE_SHARE, time.thread_time_ns, earns=time.monotonic_ns)
        self._beside_next_ns = 0
        self._children: int | None = None
        self._group_memory: GroupMemory | None = None
        self._skipped = 0
        self._last: LedgerReading | None = None
        self._stopped = False

    def start(self, session: Session) -> None:
        super().start(session)
        try:
            self._status = StatusFile()
            self._status.sizes(_STATUS)
        except OSError as error:
            self._status = None
            raise ProbeMissingError(f"the parts of the RSS cannot be read ({error})") from error
        try:
            self._malloc = malloc_reader()
        except (ImportError, MallocMissingError) as missing:
            self._no_malloc = str(missing)
        try:
            self._group = own_group()
        except OSError as error:
            self._no_group = f"control group not available: {error}"
        self._process = _this_process()
        self._describe()

    def tick(self, writer: RecordingWriter, t_ns: int) -> None:
        if self._stopped:
            last, self._last = self._last, None
            if last is not None:
                writer.put_ledger(last)
        elif self._budget.is_due():
            if t_ns >= self._beside_next_ns and self._beside_budget.is_due():
                self._beside_next_ns = t_ns + _BESIDE_EVERY_NS
                with self._beside_budget.measured():
                    self._look_beside()
            with self._budget.measured():
                reading = self._read()
            if reading is not None:
                writer.put_ledger(reading)
        else:
            self._skipped += 1
        self._describe()

    def stop(self) -> None:
        with self.accounted():
            self._last = self.look()
        self._stopped = True

    def abandon(self) -> None:
        self._status = None

    def look(self) -> LedgerReading | None:
        """A reading with everything in it, whatever it costs, also when the probe has stopped.

        None where the probe is missing or has failed.
        """
        if self._status is not None:
            self._look_beside()
        return self._read()

    def _read(self) -> LedgerReading | None:
        """A reading; children and the control group are as they were when last looked at."""
        if self._status is None:
            return None
        t_ns = self.session.now_ns()
        resident = _Resident(*self._status.sizes(_STATUS))
        live = self._engine.live_bytes() if self._engine is not None else None
        python, small, arenas = live or (None, None, None)
        used, free = self._malloc() if self._malloc is not None else (None, None)
        anonymous, cache = self._group_memory or (None, None)
        return LedgerReading(
            t_ns=t_ns,
            rss=sum(resident),
            anonymous=resident.anonymous,
            file_backed=resident.file_backed,
            shared=resident.shared,
            python=python,
            python_small=small,
            arenas=arenas,
            native_used=used,
            native_free=free,
            children=self._children,
            group_anonymous=anonymous,
            group_cache=cache,
        )

    def _look_beside(self) -> None:
        if self._process is not None:
            try:
                self._children = _memory_of_children(self._process)
            except OSError as error:
                self._warn(f"the memory of child processes cannot be read ({error})")
                self._process = self._children = None
        if self._group is not None:
            try:
                self._group_memory = self._group.read()
            except OSError as error:
                self._no_group = f"control group not available: {error}"
                self._warn(f"the control group {self._group.name} cannot be read ({error})")
                self._group = self._group_memory = None

    def _warn(self, text: str) -> None:
        self.session.log("warning", self.name, text)

    def _describe(self) -> None:
        malloc = "malloc from mallinfo2" if self._malloc else f"no malloc: {self._no_malloc}"
        group = (
            f"control group {self._group.name} (version {self._group.version})"
            if self._group
            else self._no_group
        )
        self.detail = f"RSS from /proc/self/status; {malloc}; {group}"
        if self._skipped:
            self.detail += f"; {self._skipped} tick(s) without a reading, for their cost"


def _this_process() -> Any:
    try:
        import psutil
    except ImportError:
        return None
    return psutil.Process()


def _has_children() -> bool:
    """Whether there is any child: without this, psutil would look through all processes for one."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)  # takes no status away
    except ChildProcessError:
        return False
    return True


def _memory_of_children(process: Any) -> int:
    """The memory of all processes below this one in bytes (PSS: what they share with this process
    or each other is divided among them). Raises ``OSError`` where it cannot be read."""
    if not _has_children():
        return 0
    import psutil

    total = 0
    try:
        for child in process.children(recursive=True):
            with suppress(psutil.NoSuchProcess):  # it ended meanwhile
                try:
                    memory = child.memory_full_info()
                except psutil.AccessDenied:  # it runs as somebody else
                    memory = child.memory_info()
                total += getattr(memory, "pss", memory.rss)
    except psutil.Error as error:
        raise OSError(str(error)) from error
    return total
