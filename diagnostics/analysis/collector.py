"""The garbage collector's work, as tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd

from diagnostics.analysis.gc_account import GcAccount
from diagnostics.recording.model import GcEvent

NS = 1e9


def generation_table(account: GcAccount) -> pd.DataFrame:
    """One row a generation: ``generation``, ``count``, ``pause_total_s``, ``pause_max_s``,
    ``collected``, ``uncollectable`` (objects)."""
    return pd.DataFrame(
        [
            (
                generation,
                totals.count,
                totals.pause_total_ns / NS,
                totals.pause_max_ns / NS,
                totals.collected,
                totals.uncollectable,
            )
            for generation, totals in account.generations.items()
        ],
        columns=[
            "generation",
            "count",
            "pause_total_s",
            "pause_max_s",
            "collected",
            "uncollectable",
        ],
    )


def pause_table(account: GcAccount) -> pd.DataFrame:
    """The longest pauses over time, thinned: ``generation``, ``t_s``, ``pause_s``."""
    rows = [
        (generation, point.t_ns / NS, point.value / NS)
        for generation, pauses in account.pauses.items()
        for point in pauses.points()
    ]
    table = pd.DataFrame(rows, columns=["generation", "t_s", "pause_s"])
    return table.astype({"generation": "int64", "t_s": "float64", "pause_s": "float64"})


def event_table(events: Iterable[GcEvent], labels: Mapping[int, str]) -> pd.DataFrame:
    """Single collections: ``t_s``, ``pause_s``, ``generation``, ``collected``, ``uncollectable``,
    ``unit`` (its number) and ``unit_label``; ``labels`` by number of unit."""
    columns = {
        "t_s": "float64",
        "pause_s": "float64",
        "generation": "int64",
        "collected": "int64",
        "uncollectable": "int64",
        "unit": "int64",
        "unit_label": "str",
    }
    rows = [
        (
            event.t_ns / NS,
            event.pause_ns / NS,
            event.generation,
            event.collected,
            event.uncollectable,
            event.unit,
            labels.get(event.unit, f"unit {event.unit}") if event.unit else "outside any unit",
        )
        for event in events
    ]
    return pd.DataFrame(rows, columns=list(columns)).astype(columns)


def small_collections(
    account: GcAccount, column_edges_ns: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """How many small collections fall into each column; those after the last edge count there."""
    columns = len(column_edges_ns) - 1
    counts = np.zeros(max(columns, 0), np.int64)
    if columns < 1:
        return counts
    for t_ns, number in account.small_counts():
        column = int(np.searchsorted(column_edges_ns, t_ns, side="right")) - 1
        counts[min(column, columns - 1)] += number
    return counts
