"""The resident set of this process: now, and the highest since a mark."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple, Protocol

from diagnostics.handles import Handle
from diagnostics.probes.status_file import StatusFile
from diagnostics.recording.model import PeakMethod

_STATUS = re.compile(rb"VmHWM:\s+(\d+) kB.*?VmRSS:\s+(\d+) kB", re.DOTALL)
_RESET_PEAK = b"5"  # proc(5), clear_refs
_RESET_SLACK = 1024 * 1024


class Resident(NamedTuple):
    """Bytes resident now, and the most since the meter was last reset."""

    now: int
    peak: int


class PeakMeter(Protocol):
    """Reads the resident set and remembers, or only samples, its highest value."""

    method: PeakMethod
    detail: str

    def read(self) -> Resident: ...
    def reset(self) -> None: ...


class ResidentSet:
    """Reads the resident set in bytes: about 2 us through procfs, 25 us through psutil elsewhere.

    The handle lives as long as the object, since other threads may be reading at any moment.
    """

    def __init__(self) -> None:
        self._statm: Handle | None = None
        self._page = os.sysconf("SC_PAGE_SIZE")
        try:
            self._statm = Handle(os.open("/proc/self/statm", os.O_RDONLY))
        except OSError:
            import psutil

            self._process = psutil.Process()

    def read(self) -> int:
        if self._statm is not None:
            return int(os.pread(self._statm.number, 256, 0).split(b" ", 2)[1]) * self._page
        return int(self._process.memory_info().rss)


class KernelMeter:
    """The kernel's own high-water mark: exact, whatever happened between two readings.

    ``reset`` writes 5 to ``clear_refs``, which also lowers what ``VmHWM`` and ``ru_maxrss`` say to
    every other reader of this process. Raises ``OSError`` where the kernel does not offer it.
    """

    method: PeakMethod = "kernel high-water mark"
    detail = (
        "per-unit peaks from the kernel's high-water mark, which is reset at each unit's start"
        " (VmHWM and ru_maxrss restart there too)"
    )

    def __init__(self) -> None:
        self._status = StatusFile()
        self._clear = Handle(os.open("/proc/self/clear_refs", os.O_WRONLY))
        before = self.read()
        self.reset()
        after = self.read()
        if after.peak - after.now > _RESET_SLACK and after.peak >= before.peak:
            raise OSError("the kernel accepts the reset of VmHWM and ignores it")

    def read(self) -> Resident:
        peak, now = self._status.sizes(_STATUS)
        return Resident(now, peak)

    def reset(self) -> None:
        if not self._clear.is_ours:  # its number may be a file of the program's by now
            raise OSError("the program closed the handle of clear_refs")
        os.write(self._clear.number, _RESET_PEAK)


class SampledMeter:
    """The second choice: a reading is its own peak, so the highest of many is a lower bound."""

    method: PeakMethod = "sampled maximum"

    def __init__(self, reason: str) -> None:
        self._resident = ResidentSet()
        self.detail = (
            "per-unit peaks are the highest of the samples, a lower bound:"
            f" the kernel's mark cannot be reset here ({reason})"
        )

    def read(self) -> Resident:
        now = self._resident.read()
        return Resident(now, now)

    def reset(self) -> None:
        """Nothing is remembered."""


def best_meter() -> PeakMeter:
    """The exact meter where this machine allows it, else the sampling one."""
    if not Path("/proc/self/clear_refs").exists():
        return SampledMeter("there is no /proc/self/clear_refs")
    try:
        return KernelMeter()
    except OSError as error:
        return SampledMeter(error.strerror or str(error))
