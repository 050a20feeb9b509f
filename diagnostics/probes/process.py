"""The process as the operating system sees it, and the peak of each unit."""

from __future__ import annotations

import contextlib
import os
import resource
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from diagnostics.handles import Handle
from diagnostics.probes.base import BaseProbe, Budget, ProbeMissingError, Session
from diagnostics.probes.peaks import PeakBook
from diagnostics.probes.resident import best_meter
from diagnostics.recording.model import ProcessSample
from diagnostics.recording.writer import RecordingWriter

_USS_SHARE = 0.005
_STAT_BYTES = 1024
_STAT_THREADS = 17  # proc_pid_stat(5): field 20, counted from what follows the command's name


class ProcessProbe(BaseProbe):
    """One ``ProcessSample`` a tick and one ``UnitPeak`` a unit.

    USS and PSS come every ``uss_every_s`` seconds at most and cost at most 0.5 % of the time (one
    reading takes 0.2 ms in a process of 14 MB and 51 ms at 2 GB), and once more at the end.

    Where the kernel allows, each unit's start resets the process's high-water mark: ``VmHWM`` and
    ``ru_maxrss`` then tell the peak since that start to every other reader as well.
    """

    name = "process"

    def __init__(self, uss_every_s: float = 5.0) -> None:
        super().__init__()
        self._uss_every_ns = int(uss_every_s * 1e9)
        self._uss_next_ns = 0
        self._uss_budget = Budget(_USS_SHARE)
        self._uss_denied = False
        self._stat: Handle | None = None
        self._set_aside: Callable[[], AbstractContextManager[None]] = nullcontext

    def start(self, session: Session) -> None:
        super().start(session)
        # Imported here: code that only carries unit marks must not pay for it, or need it.
        try:
            import psutil
        except ImportError as error:
            raise ProbeMissingError("psutil is not installed") from error
        self._process = psutil.Process()
        self._not_told = (psutil.Error, OSError)
        with contextlib.suppress(OSError):
            self._stat = Handle(os.open("/proc/self/stat", os.O_RDONLY))
        meter = best_meter()
        self.detail = meter.detail
        self._book = PeakBook(meter)
        self._set_aside = self._book.set_aside

    def unit_started(self, unit: int) -> None:
        with self.accounted():
            self._book.start(unit)

    def unit_ended(self, unit: int) -> None:
        with self.accounted():
            self._book.end(unit)

    def set_aside(self) -> AbstractContextManager[None]:
        """Memory taken and given back inside ``with`` is in no unit's peak."""
        return self._set_aside()

    def tick(self, writer: RecordingWriter, t_ns: int) -> None:
        sample = self._sample(writer, t_ns)
        if t_ns >= self._uss_next_ns and self._uss_budget.is_due():
            self._uss_next_ns = t_ns + self._uss_every_ns
            sample = self._with_uss(sample)
        writer.put_process(sample)

    def finish(self, writer: RecordingWriter, t_ns: int) -> None:
        writer.put_process(self._with_uss(self._sample(writer, t_ns)))

    def _sample(self, writer: RecordingWriter, t_ns: int) -> ProcessSample:
        rss, peaks = self._book.look()
        writer.put_unit_peaks(peaks)
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return ProcessSample(
            t_ns=t_ns,
            rss=rss,
            uss=None,
            pss=None,
            minor_faults=usage.ru_minflt,
            major_faults=usage.ru_majflt,
            threads=self._threads(),
            cpu_ns=time.process_time_ns(),
        )

    def _threads(self) -> int:
        # Each call that releases the GIL waits for it beside a busy loader: one instead of five.
        if self._stat is None:
            return int(self._process.num_threads())
        after_name = os.pread(self._stat.number, _STAT_BYTES, 0).rpartition(b")")[2]
        return int(after_name.split()[_STAT_THREADS])

    def _with_uss(self, sample: ProcessSample) -> ProcessSample:
        if self._uss_denied:
            return sample
        try:
            with self._uss_budget.measured():
                info = self._process.memory_full_info()
        except self._not_told as error:
            self._uss_denied = True
            self.session.log("warning", self.name, f"USS and PSS cannot be read here ({error})")
            return sample
        # A kernel that keeps no account of pages one by one tells neither.
        return replace(sample, uss=getattr(info, "uss", None), pss=getattr(info, "pss", None))
