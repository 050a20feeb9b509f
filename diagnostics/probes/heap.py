"""The heap engines: which code allocated what lives. Chosen by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from diagnostics.errors import UsageError
from diagnostics.probes.base import Budget, Probe
from diagnostics.probes.traced import MOST_FRAMES, TracemallocEngine


class HeapEngine(Probe, Protocol):
    """A probe that writes ``HeapTotal`` rows and the series "heap" by allocation site."""

    engine_name: str


ENGINES: Mapping[str, Callable[[int, Budget], HeapEngine] | None] = {
    "exact": TracemallocEngine,
    "none": None,
}
"""Factories by name, called with the number of frames and the budget for snapshots."""

ENGINE_NOTES: Mapping[str, str] = {
    "exact": "every block, through tracemalloc; makes loaders several times slower",
    "none": "no heap: process, collector and types only",
}
"""What each engine measures and costs, for people who choose."""

_ALIASES = {"tracemalloc": "exact"}


def make_engine(name: str, *, frames: int, budget: Budget) -> HeapEngine | None:
    """A new engine, None for "none". ``frames``: how many of each allocation stack are kept.

    Raises ``UsageError`` for a name that is not known and for frames outside 1 to 25.
    """
    known = _ALIASES.get(name, name)
    if known not in ENGINES:
        raise UsageError(
            f"There is no heap engine {name!r}.",
            f"Choose one of: {', '.join([*ENGINES, *_ALIASES])}.",
        )
    if not 1 <= frames <= MOST_FRAMES:
        raise UsageError(
            f"{frames} frames of a stack cannot be kept.", f"Choose 1 to {MOST_FRAMES}."
        )
    factory = ENGINES[known]
    return factory(frames, budget) if factory is not None else None
