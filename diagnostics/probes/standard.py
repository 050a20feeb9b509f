"""The probes of a recording, in the order in which they are started."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from diagnostics.probes.base import Budget, Probe
from diagnostics.probes.collector import GcProbe
from diagnostics.probes.heap import DEFAULT, HeapEngine, default_engine, make_engine
from diagnostics.probes.ledger import LedgerProbe
from diagnostics.probes.mappings import MappingProbe
from diagnostics.probes.object_types import TypeProbe
from diagnostics.probes.process import ProcessProbe
from diagnostics.probes.sampled import SampledEngine

if TYPE_CHECKING:
    from diagnostics.holders.sources import SuspectSource

_SNAPSHOT_SHARE = 0.05
"""Snapshots of the exact engine and type counts together may take this share of the CPU time."""

_TYPES_SHARE = 0.002
"""Type counts alone, beside an engine that takes no snapshots."""

_CAPTURE_SHARE = 0.01
"""Captures because retention grew; the others are taken whatever they cost."""

_FIRST_CAPTURE_NS = 100_000_000
"""So long takes a look at a heap of some 100,000 objects: a shorter run does without."""


@dataclass(frozen=True, slots=True)
class ProbeSet:
    """The probes, and those of them that others ask for something."""

    probes: list[Probe]
    engine: HeapEngine | None
    ledger: LedgerProbe
    capture_budget: Budget
    growth_source: Callable[[], SuspectSource] | None
    """Suspects from counts by type, where no engine knows the birth of a block."""

    @property
    def sampled(self) -> SampledEngine | None:
        """The engine, if it knows the birth unit of what lives."""
        return self.engine if isinstance(self.engine, SampledEngine) else None

    @property
    def live_bytes(self) -> Callable[[], int | None] | None:
        """Tells live Python bytes fast enough for a collector's callback, where anything does."""
        return self.sampled.fast_live_bytes if self.sampled is not None else None


def standard_probes(
    settings: Mapping[str, Any], why_not_sampled: Callable[[str], None]
) -> ProbeSet:
    """The probes for a recorder's settings. Raises ``UsageError`` for an engine that is not known.

    ``why_not_sampled`` is told where the engine of choice cannot be had.
    """
    name = settings["engine"]
    if name == DEFAULT:
        name, reason = default_engine()
        if reason:
            why_not_sampled(reason)
    process = ProcessProbe()
    budget = Budget(_SNAPSHOT_SHARE, set_aside=process.set_aside)
    # The process probe comes first: a unit's peak is read before others take memory to measure.
    probes: list[Probe] = [process, GcProbe(), MappingProbe()]
    if settings["lines"]:
        from diagnostics.probes.lines import LineProbe

        probes.append(LineProbe(settings["lines"]))
    engine = make_engine(name, frames=settings["frames"], budget=budget)
    ledger = LedgerProbe(engine)
    probes.append(ledger)  # stopped before the engine, it reads a last time
    if engine is not None:
        probes.append(engine)
    types = None
    if settings["types"]:  # after the engine: the first picture of the heap should come first
        takes_snapshots = engine is not None and engine.engine_name == "exact"
        own_budget = Budget(_TYPES_SHARE, set_aside=process.set_aside)
        types = TypeProbe(budget if takes_snapshots else own_budget)
        probes.append(types)
    return ProbeSet(
        probes,
        engine,
        ledger,
        Budget(_CAPTURE_SHARE, set_aside=process.set_aside, first_ns=_FIRST_CAPTURE_NS),
        types.growth_source if types is not None else None,
    )
