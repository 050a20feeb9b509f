"""The sampled heap engine: where the live bytes come from, and in which unit they were born.

The C core (_heap.c) picks allocations at random by their bytes and keeps running sums; this face
starts it, sees to its pace, and turns what changed since the last tick into the recording's rows.
"""

from __future__ import annotations

import random
import threading
import time
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, cast

from diagnostics.probes.base import BaseProbe, Budget, ProbeMissingError, Session
from diagnostics.probes.own import is_hosted, is_own_frame
from diagnostics.probes.source import SourceIndex
from diagnostics.probes.thread_family import ThreadFamily
from diagnostics.recording.frames import Values
from diagnostics.recording.model import HeapTotal, Site, UnitHeap, alive_id
from diagnostics.recording.writer import RecordingWriter

if TYPE_CHECKING:
    from diagnostics.holders.sources import SuspectSource

FIRST_RATE = 512
"""Mean gap between two picks in bytes, to start with: the finer, the more exact and the dearer."""

_COARSEST_FOR_PACE = 32768
"""Pace alone does not make it coarser than this: a burst at the start is not the whole run."""

MOST_SAMPLES = 250_000
MOST_FRAMES = 64
_MOST_PICKS_PER_S = 5_000
"""Of the process's CPU time: a pick costs about a microsecond, so these take some 0.5 % of it."""

_JUDGED_EVERY_NS = 50_000_000
"""Of CPU time. Less says little about pace: the last tick of a run comes early, for one."""

_OWN = -1
"""Stands for the site of what the workbench allocates itself."""

_FREE_PICKS = 200_000
"""So many in all may come at any pace: they take some 200 ms, and short runs stay exact."""

_SHOWN_FROM_BYTES = 8 * 1024
_SOURCE_EVERY_NS = 1_000_000_000

Node = tuple[int, str, str, int]
"""A node of the core's tree of stacks: its caller's node, file, function, line."""


class SampledEngine(BaseProbe):
    """Every live Python block as an estimate, by birth unit and by full allocation stack.

    An estimate of *B* bytes that consist of blocks smaller than the rate has a standard error of
    ``sqrt(rate * B)``. The rate starts at 512 bytes and doubles, up to 32 KiB, while the run
    allocates so fast that the picks would cost more than some 0.5 % of its CPU time, and beyond
    that when more than 250,000 samples are alive; the estimates stay unbiased.

    ``start`` raises ``ProbeMissingError`` where the core was not built.
    """

    name = "heap"
    engine_name = "sampled"

    def __init__(self, frames: int, budget: Budget, *, seed: int | None = None) -> None:
        super().__init__()
        self._frames = frames
        self._seed = random.getrandbits(63) if seed is None else seed
        self._nodes: list[Node] = [(0, "", "", 0)]  # the first is a stack without Python frames
        self._own: dict[int, bool] = {0: False}
        self._sites = {0: 0}  # node -> the site that stands for it in the recording
        self._places = {0: 0}  # node -> the same, or _OWN
        self._changes: list[tuple[int, bytes, bytes, bytes]] = []
        self._status: dict[str, Any] = {}
        self._counted_ns = 0
        self._shown: set[int] = set()
        self._sourced: set[int] = set()  # nodes whose source lines are kept
        self._unshown: dict[int, int] = {}  # sites whose source lines are still to be kept: node
        self._source_next_ns = 0
        self._own_bytes: dict[int, int] = {}
        self._live: dict[int, int] = {}  # unit -> live bytes at the last tick, where there are any
        self._live_in_units = 0
        self._source = SourceIndex()
        self._family = ThreadFamily(lambda: self._core.mark_thread(True))
        self._points = 0
        self._judged_ns = 0  # in CPU time of the process
        self._cpu_start_ns = 0
        self._marked = False
        self._stopped = False
        self._counts = self._keeps_counting = False
        self._arenas_before = 0
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
        self._arenas_before = _heap.status()["arena_bytes"]
        self._cpu_start_ns = time.process_time_ns()
        self._counts = True
        if self._hosted:  # beside a server: only this thread, and those that it will start, count
            _heap.mark_thread(True)
            self._family.adopt()

    def tick(self, writer: RecordingWriter, t_ns: int) -> None:
        if not self._stopped:
            self._see_to_the_hooks()
            self._collect()
            self._keep_pace(time.process_time_ns() - self._cpu_start_ns)
        self._write(writer, t_ns)

    def stop(self) -> None:
        if not self._stopped:
            self._stopped = True
            with self.accounted():
                self._collect()  # the last picture: the heap as the run left it
                if not self._keeps_counting:
                    self.stop_counting()

    def live_bytes(self) -> tuple[int, int | None, int | None] | None:
        """Live Python bytes, those in pymalloc's arenas, and the arenas mapped since the start;
        the workbench's own blocks included. None while the engine does not run."""
        if not self._counts:
            return None
        status = self._core.status()
        arenas = status["arena_bytes"] - self._arenas_before
        return status["live_bytes"], status["small_bytes"], arenas

    @property
    def fast_live_bytes(self) -> Callable[[], int | None] | None:
        """A function in C that tells live Python bytes, the workbench's own included, in a fraction
        of a microsecond; it says None while the engine does not run."""
        try:
            from diagnostics.probes import _heap
        except ImportError:
            return None
        return cast("Callable[[], int | None]", _heap.live_bytes)

    def retained_bytes(self, leave_out: Iterable[int]) -> int:
        """Live bytes born in any unit at the last tick, but for those of some units."""
        return self._live_in_units - sum(self._live.get(unit, 0) for unit in leave_out)

    def source(self) -> SuspectSource:
        """Where a capture finds its suspects: the samples of the moment."""
        from diagnostics.holders.sources import SampledSource

        return SampledSource(self._core.samples, self._core.nodes)

    def keep_counting(self) -> None:
        """Let ``live_bytes`` go on beyond ``stop``, until ``stop_counting``."""
        self._keeps_counting = True

    def stop_counting(self) -> None:
        """Take the hooks out. Safe to call at any time."""
        if self._counts:
            self._counts = False
            self._core.stop()
            self._family.release()

    def abandon(self) -> None:
        self._stopped = True
        self.stop_counting()

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
        for unit, _born, live, _peak in _rows(drained[2], 4):
            if unit:
                self._live_in_units += live - self._live.pop(unit, 0)
                if live:
                    self._live[unit] = live
        self._nodes += core.nodes(len(self._nodes))
        self._status, self._counted_ns = core.status(), self.session.now_ns()

    def _keep_pace(self, cpu_ns: int) -> None:
        if cpu_ns - self._judged_ns < _JUDGED_EVERY_NS:
            return
        pace = (self._status["points"] - self._points) / ((cpu_ns - self._judged_ns) / 1e9)
        self._points, self._judged_ns = self._status["points"], cpu_ns
        rate = self._status["rate"]
        # A burst between quiet stretches costs little, and finer samples are worth that.
        if self._points <= _FREE_PICKS + _MOST_PICKS_PER_S * cpu_ns / 1e9:
            return
        while pace > _MOST_PICKS_PER_S and rate < _COARSEST_FOR_PACE:
            self._core.coarsen()
            pace, rate = pace / 2, rate * 2  # twice the gap is half the picks

    def _write(self, writer: RecordingWriter, t_ns: int) -> None:
        changes, self._changes = self._changes, []
        for taken_ns, pairs, sums, units in changes:
            writer.add_changes("alive", taken_ns, 0, self._alive(pairs, writer))
            writer.add_changes("heap", taken_ns, 0, self._heap(sums, writer))
            writer.put_unit_heaps(
                UnitHeap(unit, born, peak) for unit, born, _live, peak in _rows(units, 4)
            )
        if t_ns >= self._source_next_ns or self._stopped:
            self._source_next_ns = t_ns + _SOURCE_EVERY_NS
            self._put_sources(writer)
        status = self._status
        total = status["live_bytes"] - sum(self._own_bytes.values())
        writer.put_heap_total(HeapTotal(self._counted_ns, max(0, total), status["own_bytes"]))
        sampling = {"bytes": status["rate"], "live_samples": status["samples"]}
        if sampling != self._written_sampling:
            writer.put_meta({"sampling": sampling})
            self._written_sampling = sampling
        self.dropped = status["dropped"]
        self.detail = (
            f"one pick in {status['rate']:,.0f} bytes, {status['samples']:,} samples alive,"
            f" stacks of up to {self._frames} frames"
        )

    def _alive(self, pairs: bytes, writer: RecordingWriter) -> dict[int, Values]:
        place = self._places.get
        alive: dict[int, Values] = {}
        for unit, node, size, blocks in _rows(pairs, 4):
            site = place(node)
            if site is None:
                site = self._place(node, writer)
            if site != _OWN:
                alive[alive_id(unit, site)] = (size, blocks)
        return alive

    def _heap(self, sums: bytes, writer: RecordingWriter) -> dict[int, Values]:
        place = self._places.get
        heap: dict[int, Values] = {}
        for node, size, blocks in _rows(sums, 3):
            site = place(node)
            if site is None:
                if not size:
                    continue  # what came and went in between is no change
                site = self._place(node, writer)
            if site == _OWN:
                self._own_bytes[node] = size
                continue
            heap[site] = (size, blocks)
            if size >= _SHOWN_FROM_BYTES and site not in self._shown:
                self._unshown[site] = node
        return heap

    def _put_sources(self, writer: RecordingWriter) -> None:
        """Keep the lines around the sites that hold something and around those that called them:
        what is released there tells as much. Each file is read once."""
        lines: defaultdict[str, set[int]] = defaultdict(set)
        for node in self._unshown.values():
            while node and node not in self._sourced:
                self._sourced.add(node)
                node, file, _function, line = self._node(node)
                lines[file].add(line)
        for file, wanted in lines.items():
            writer.put_source(file, self._source.contexts(file, wanted))
        self._shown |= self._unshown.keys()
        self._unshown.clear()

    def site(self, node: int, writer: RecordingWriter) -> int | None:
        """The recording's site of one of the core's nodes; None for the workbench's own."""
        place = self._places.get(node)
        if place is None:
            place = self._place(node, writer)
        return None if place == _OWN else place

    def _place(self, node: int, writer: RecordingWriter) -> int:
        """Only nodes that are asked for become sites, their callers before them: most never hold
        anything at the end of a tick."""
        place = self._places[node] = _OWN if self._is_own(node) else self._new_site(node, writer)
        return place

    def _node(self, node: int) -> Node:
        if node >= len(self._nodes):  # a capture in another thread has seen more than the last tick
            self._nodes += self._core.nodes(len(self._nodes))
        return self._nodes[node]

    def _new_site(self, node: int, writer: RecordingWriter) -> int:
        site = self._sites.get(node)
        if site is None:
            parent, file, function, line = self._node(node)
            caller = self._new_site(parent, writer) or None
            site = self._sites[node] = len(self._sites)
            writer.put_sites([Site(site, caller, file, line, function)])
        return site

    def _is_own(self, node: int) -> bool:
        own = self._own.get(node)
        if own is None:
            parent, file, _function, _line = self._node(node)
            own = is_own_frame(file, self._hosted)
            if own is None:
                own = self._is_own(parent)
            self._own[node] = own
        return own


def _rows(numbers: bytes, width: int) -> Iterator[tuple[int, ...]]:
    flat = iter(array("q", numbers))
    return zip(*[flat] * width, strict=True)
