"""The heap engines: which code allocated what lives. Chosen by name."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from diagnostics.errors import UsageError
from diagnostics.probes import sampled, traced
from diagnostics.probes.base import Budget, Probe
from diagnostics.probes.ledger import LiveCounter
from diagnostics.probes.sampled import SampledEngine
from diagnostics.probes.traced import TracemallocEngine


class HeapEngine(Probe, LiveCounter, Protocol):
    """A probe that writes ``HeapTotal`` rows and the series "heap" by allocation site."""

    engine_name: str


@dataclass(frozen=True, slots=True)
class EngineKind:
    """What there is to choose. ``make`` takes the number of frames and the budget for snapshots."""

    note: str
    """What it measures and costs, for people who choose."""
    make: Callable[[int, Budget], HeapEngine] | None
    usual_frames: int
    most_frames: int


ENGINES: Mapping[str, EngineKind] = {
    "sampled": EngineKind(
        "an estimate by birth page and full stack, at little cost",
        SampledEngine,
        sampled.MOST_FRAMES,
        sampled.MOST_FRAMES,
    ),
    "exact": EngineKind(
        "every block, through tracemalloc; makes loaders several times slower",
        TracemallocEngine,
        1,
        traced.MOST_FRAMES,
    ),
    "none": EngineKind("no heap: process, collector and types only", None, 1, sampled.MOST_FRAMES),
}

DEFAULT = "default"
"""The name that stands for the best engine there is here."""

_ALIASES = {"tracemalloc": "exact"}


def default_engine() -> tuple[str, str]:
    """The engine to use where nobody chose one, and why it is not the sampled one ("" if it is)."""
    try:
        importlib.import_module("diagnostics.probes._heap")
    except ImportError as error:
        return "exact", (
            f"The sampled heap engine was not built here ({error}), so the exact one is used,"
            " which makes the run several times slower. To build it, install a C compiler and"
            " Python's headers, and install page87 again."
        )
    return "sampled", ""


def engine_name(name: str) -> str:
    """The full name of an engine; raises ``UsageError`` for one that is not known."""
    known = _ALIASES.get(name, name)
    if known not in ENGINES:
        raise UsageError(
            f"There is no heap engine {name!r}.",
            f"Choose one of: {', '.join([*ENGINES, *_ALIASES])}.",
        )
    return known


def make_engine(name: str, *, frames: int | None, budget: Budget) -> HeapEngine | None:
    """A new engine, None for "none". ``frames``: how many of each allocation stack are kept; None
    for the engine's usual number.

    Raises ``UsageError`` for a name that is not known and for more frames than it can keep.
    """
    kind = ENGINES[engine_name(name)]
    wanted = kind.usual_frames if frames is None else frames
    if not 1 <= wanted <= kind.most_frames:
        raise UsageError(
            f"The engine {name} cannot keep {wanted} frames of a stack.",
            f"Choose 1 to {kind.most_frames}.",
        )
    return kind.make(wanted, budget) if kind.make is not None else None
