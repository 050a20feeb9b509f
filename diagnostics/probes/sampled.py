"""The sampled heap engine: where the live bytes come from, and in which unit they were born.

The C core (_heap.c) picks allocations at random by their bytes and keeps running sums; this face
starts it, sees to its pace, and turns what changed since the last tick into the recording's rows.
"""

from __future__ import annotations

import random
import threading
from array import array
from collections.abc import Iterator
from typing import Any

from diagnostics.probes.base import BaseProbe, Budget, ProbeMissingError, Session
from diagnostics.probes.own import is_hosted, is_own_file, is_standard_library
from diagnostics.probes.source import SourceIndex
from diagnostics.probes.thread_family import ThreadFamily
from diagnostics.recording.frames import Values
from diagnostics.recording.model import HeapTotal, Site, UnitHeap, alive_id
from diagnostics.recording.writer import RecordingWriter

FIRST_RATE = 512
"""Mean gap between two picks in bytes, to start with: the finer, the more exact and the dearer."""

_COARSEST_FOR_PACE = 8192
"""Pace alone does not make it coarser than this: a burst at the start is not the whole run."""

MOST_SAMPLES = 250_000
MOST_FRAMES = 64
_MOST_PICKS_PER_S = 40_000
"""A pick costs about half a microsecond, so this many take some 2 % of one core."""

_SHOWN_FROM_BYTES = 8 * 1024


class SampledEngine(BaseProbe):
    """Every live Python block as an estimate, by birth unit and by full allocation stack.

    An estimate of *B* bytes that consist of blocks smaller than the rate has a standard error of
    ``sqrt(rate * B)``. The rate starts at 512 bytes and doubles, up to 8 KiB, while the run
    allocates so fast that the picks would cost more than about 2 %, and beyond that when more than
    250,000 samples are alive; the estimates stay unbiased.

    ``start`` raises ``ProbeMissingError`` where the core was not built.
    """

    name = "heap"
    engine_name = "sampled"

    def __init__(self, frames: int, budget: Budget, *, seed: int | None = None) -> None:
        super().__init__()
        self._frames = frames
        self._seed = random.getrandbits(63) if seed is None else seed
        self._own: list[bool] = [False]  # by node; node 0 is a stack without Python frames
        self._places: list[tuple[str, int]] = [("", 0)]
        self._nodes: list[tuple[int, str, str, int]] = []
        self._changes: list[tuple[int, bytes, bytes, bytes]] = []
        self._status: dict[str, Any] = {}
        self._shown: set[int] = set()
        self._own_bytes: dict[int, int] = {}
        self._source = SourceIndex()
        self._family = ThreadFamily(lambda: self._core.mark_thread(True))
        self._points = 0
        self._tick_ns = 0
        self._marked = False
        self._stopped = False
        self._written_sampling: dict[str, float] = {}

    def start(self, session: Session) -> None:
        super().start(session)
        try:
            from diagnostics.probes import _heap
        except ImportError as error:
            raise ProbeMissingError(f"the sampled engine was not built here ({error})") from error
        self._core = _heap
        self._hosted = is_hosted()
        _heap.start(
            session.unit_variable,
            float(FIRST_RATE),
            MOST_SAMPLES,
            self._frames,
            self._hosted,
            self._seed,
        )
        if self._hosted:  # beside a server: only this thread, and those that it will start, count
            _heap.mark_thread(True)
            self._family.adopt()

    def tick(self, writer: RecordingWriter, t_ns: int) -> None:
        if not self._stopped:
            self._see_to_the_hooks()
            self._collect()
            self._keep_pace(t_ns)
        self._write(writer, t_ns)

    def stop(self) -> None:
        if not self._stopped:
            self._stopped = True
            with self.accounted():
                self._collect()  # the last picture: the heap as the run left it
                self._core.stop()
                self._family.release()

    def abandon(self) -> None:
        self._stopped = True
        self._core.abandon()
        self._family.release()

    def _see_to_the_hooks(self) -> None:
        if not self._marked and self.session.is_own_thread(threading.get_ident()):
            self._core.mark_thread(False)
            self._marked = True
        if self._core.rehook():
            self.session.log(
                "warning",
                self.name,
                "another tool took the engine's hooks out; they are in again, but what was freed"
                " in between still counts as alive",
            )

    def _collect(self) -> None:
        """Take what changed out of the core. Sums first: their nodes are known by then."""
        core = self._core
        drained = core.drain_pairs(), core.drain_nodes(), core.drain_units()
        # The tick may have waited for the GIL since it began: this is the moment of the picture.
        self._changes.append((self.session.now_ns(), *drained))
        self._nodes += core.nodes(len(self._own) + len(self._nodes))
        self._status = core.status()

    def _keep_pace(self, t_ns: int) -> None:
        picks = self._status["points"] - self._points
        elapsed_s = (t_ns - self._tick_ns) / 1e9
        self._points, self._tick_ns = self._status["points"], t_ns
        pace = picks / elapsed_s if elapsed_s > 0 else 0.0
        rate = self._status["rate"]
        while pace > _MOST_PICKS_PER_S and rate < _COARSEST_FOR_PACE:
            self._core.coarsen()
            pace, rate = pace / 2, rate * 2  # twice the gap is half the picks

    def _write(self, writer: RecordingWriter, t_ns: int) -> None:
        writer.put_sites(self._new_sites())
        changes, self._changes = self._changes, []
        for taken_ns, pairs, sums, units in changes:
            writer.add_changes("alive", taken_ns, 0, self._alive(pairs))
            writer.add_changes("heap", taken_ns, 0, self._heap(sums, writer))
            writer.put_unit_heaps(
                UnitHeap(unit, born, peak) for unit, born, _live, peak in _rows(units, 4)
            )
        status = self._status
        total = status["live_bytes"] - sum(self._own_bytes.values())
        writer.put_heap_total(HeapTotal(t_ns, max(0, total), status["own_bytes"]))
        sampling = {"bytes": status["rate"], "live_samples": status["samples"]}
        if sampling != self._written_sampling:
            writer.put_meta({"sampling": sampling})
            self._written_sampling = sampling
        self.dropped = status["dropped"]
        self.detail = (
            f"one pick in {status['rate']:,.0f} bytes, {status['samples']:,} samples alive,"
            f" stacks of up to {self._frames} frames"
        )

    def _alive(self, pairs: bytes) -> dict[int, Values]:
        return {
            alive_id(unit, node): (size, blocks)
            for unit, node, size, blocks in _rows(pairs, 4)
            if not self._own[node]
        }

    def _heap(self, sums: bytes, writer: RecordingWriter) -> dict[int, Values]:
        heap: dict[int, Values] = {}
        for node, size, blocks in _rows(sums, 3):
            if self._own[node]:
                self._own_bytes[node] = size
                continue
            heap[node] = (size, blocks)
            if size >= _SHOWN_FROM_BYTES and node not in self._shown:
                self._shown.add(node)
                file, line = self._places[node]
                writer.put_source(file, self._source.context(file, line))
        return heap

    def _new_sites(self) -> Iterator[Site]:
        """The nodes that are new since the last tick; a node's number is its site's id."""
        nodes, self._nodes = self._nodes, []
        for parent, file, function, line in nodes:
            # The nearest frame outside the standard library decides, as in own.is_own_stack.
            own = is_own_file(file, self._hosted) or (
                is_standard_library(file) and self._own[parent]
            )
            node = len(self._own)
            self._own.append(own)
            self._places.append((file, line))
            yield Site(node, parent or None, file, line, function)


def _rows(numbers: bytes, width: int) -> Iterator[tuple[int, ...]]:
    flat = iter(array("q", numbers))
    return zip(*[flat] * width, strict=True)
