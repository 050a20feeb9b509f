"""Takes a capture: who is suspect, and who holds what it left behind."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from diagnostics.errors import Page87Error
from diagnostics.holders.chains import joined_chains
from diagnostics.holders.graph import Graph
from diagnostics.holders.heap import Deadline
from diagnostics.holders.living import Living
from diagnostics.holders.naming import Namer
from diagnostics.holders.ours import is_our_name
from diagnostics.holders.roots import Roots
from diagnostics.holders.search import Web, search
from diagnostics.holders.sources import Moment, SuspectSource
from diagnostics.holders.suspects import Lead
from diagnostics.probes.tracked import count_by_type
from diagnostics.recording.model import (
    OUT_OF_TIME,
    Capture,
    CaptureReason,
    ChainLink,
    HeldObject,
    Reference,
    Suspect,
)

_FROZEN_BY_PYTHON = 1_000
"""Python 3.12 freezes some hundred objects of its own as it starts."""

_one_at_a_time = threading.Lock()


def _begin_anew() -> None:
    """In a forked child: the thread that had the lock lives on in the parent only."""
    global _one_at_a_time
    _one_at_a_time = threading.Lock()


os.register_at_fork(after_in_child=_begin_anew)


class CaptureBusyError(Page87Error):
    """A capture was asked for while one is being taken."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How far a capture goes."""

    seconds: float = 8.0
    """The search ends when so much CPU time is up, or three times as much on the clock; naming what
    was found takes a little more."""
    suspects: int = 8
    objects: int = 6
    """So many objects of each suspect are asked who holds them, of different birth units."""


@dataclass(frozen=True, slots=True)
class CaptureRows:
    """A capture as the recording takes it: ``writer.put_capture(*rows.parts)``."""

    capture: Capture
    suspects: list[Suspect] = field(default_factory=list)
    objects: list[HeldObject] = field(default_factory=list)
    references: list[Reference] = field(default_factory=list)
    chains: list[ChainLink] = field(default_factory=list)

    @property
    def parts(
        self,
    ) -> tuple[Capture, list[Suspect], list[HeldObject], list[Reference], list[ChainLink]]:
        """The arguments of the writer's ``put_capture``, in order."""
        return self.capture, self.suspects, self.objects, self.references, self.chains


def take_capture(
    source: SuspectSource,
    *,
    number: int,
    reason: CaptureReason,
    unit: int,
    ended: bool,
    now_ns: Callable[[], int],
    is_own_thread: Callable[[int], bool] = lambda _thread: False,
    limits: Limits = Limits(),
) -> CaptureRows:
    """Look who holds what suspects left behind, in this process and at this moment.

    ``number`` becomes the capture's id; ``unit`` is the current unit, or the last one where the
    run has ``ended``. The calling thread pauses for as long as it takes, other threads run on, and
    the collector is left as it is. No reference is kept. Raises ``CaptureBusyError`` inside another
    capture.
    """
    turn = _one_at_a_time
    if not turn.acquire(blocking=False):
        raise CaptureBusyError(
            "A capture is being taken already; this one was left out.", "Wait until it is done."
        )
    try:
        start_ns, clock_ns = now_ns(), time.monotonic_ns()
        look = _Look(number, source, Moment(unit, ended), limits)
        look.take(Roots(is_own_thread))
        capture = Capture(
            id=number,
            t_ns=start_ns,
            unit=unit,
            reason=reason,
            duration_ns=time.monotonic_ns() - clock_ns,
            objects=look.heap_objects,
            complete=look.complete,
            note="; ".join(look.notes),
        )
        return CaptureRows(capture, look.suspects, look.objects, look.references, look.links)
    finally:
        turn.release()


class _Look:
    """One look at the heap, from suspects to rows. The objects it holds are gone after ``take``."""

    def __init__(self, number: int, source: SuspectSource, moment: Moment, limits: Limits) -> None:
        self._number = number
        self._source = source
        self._moment = moment
        self._limits = limits
        self._deadline = Deadline(limits.seconds)
        self.heap_objects = sum(count for _kind, count in count_by_type())
        self.complete = True
        self.notes: list[str] = []
        self.suspects: list[Suspect] = []
        self.objects: list[HeldObject] = []
        self.references: list[Reference] = []
        self.links: list[ChainLink] = []

    def take(self, roots: Roots) -> None:
        leads, living = self._source.find(
            self._moment,
            self._deadline,
            suspects=self._limits.suspects,
            objects=self._limits.objects,
        )
        leads, living = _without_our_own(leads, living)
        self.suspects = [
            self._suspect(rank, lead, kind)
            for rank, (lead, kind) in enumerate(zip(leads, living.types, strict=True), start=1)
        ]
        web = search(living, roots, self._deadline)
        graph = Graph(self._number, web, self._source.births(web.objects), Namer())
        for rank, targets in enumerate(living.targets, start=1):
            for place, joined in enumerate(joined_chains(web, targets, graph.namer), start=1):
                graph.add_chain(rank, place, joined)
        if not graph.add_surroundings(self._deadline):
            self.notes.append("the time was up before all that stands around the chains was seen")
        self.objects, self.references, self.links = graph.objects, graph.references, graph.links
        self._take_notes(leads, living, web)

    def _suspect(self, rank: int, lead: Lead, kind: str) -> Suspect:
        return Suspect(
            capture=self._number,
            rank=rank,
            site=lead.site,
            type=kind,
            bytes=lead.bytes,
            blocks=lead.blocks,
            first_unit=lead.units[0],
            last_unit=lead.units[-1],
            units=len(lead.units),
            steadiness=lead.steadiness,
        )

    def _take_notes(self, leads: Sequence[Lead], living: Living, web: Web) -> None:
        if not leads:
            self.notes.append("nothing that old units left behind was found")
        lost = [str(rank) for rank, targets in enumerate(living.targets, start=1) if not targets]
        if lost:
            self.notes.append(f"no living object was found for suspect {', '.join(lost)}")
        if not living.buffers.isdisjoint(living.objects):
            self.notes.append(
                "of some containers only the growth of their own buffer is known, not which of"
                " their entries made them grow"
            )
        if not (living.complete and web.complete):
            self.complete = False
            self.notes.append(web.note or OUT_OF_TIME)
        frozen = gc.get_freeze_count()
        if frozen > _FROZEN_BY_PYTHON:
            self.notes.append(
                f"{frozen:,} objects are frozen (gc.freeze): what they hold was not looked for"
            )


def _without_our_own(leads: Sequence[Lead], living: Living) -> tuple[list[Lead], Living]:
    """Without the suspects that are rows of the recording, allocated at a unit's mark."""
    kept = [place for place, kind in enumerate(living.types) if not is_our_name(kind)]
    living.types = [living.types[place] for place in kept]
    living.targets = [living.targets[place] for place in kept]
    return [leads[place] for place in kept], living
