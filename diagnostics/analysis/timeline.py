"""Memory over time and the units on it, as tables."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import asdict

import pandas as pd

from diagnostics.analysis.series import LiveSeries
from diagnostics.analysis.units import UnitFigures

NS = 1e9

_UNIT_COLUMNS = {
    "index": "int64",
    "kind": "str",
    "label": "str",
    "start_s": "float64",
    "duration_s": "float64",
    "peak_bytes": "Int64",
    "retained_bytes": "Int64",
    "rss_peak_bytes": "Int64",
    "status": "str",
    "error": "str",
    "bytes": "int64",
    "characters": "int64",
    "method": "str",
}


def memory_curves(series: LiveSeries) -> pd.DataFrame:
    """The curves in long form: columns ``curve`` ("RSS", "USS", "PSS", "Python heap"), ``t_s``,
    ``bytes``. A curve without points has no rows."""
    curves = {
        "RSS": series.rss,
        "USS": series.uss,
        "PSS": series.pss,
        "Python heap": series.heap,
    }
    rows = [
        (name, point.t_ns / NS, point.value)
        for name, curve in curves.items()
        for point in curve.points()
    ]
    table = pd.DataFrame(rows, columns=["curve", "t_s", "bytes"])
    return table.astype({"curve": "str", "t_s": "float64", "bytes": "int64"})


def unit_table(figures: Iterable[UnitFigures]) -> pd.DataFrame:
    """One row a unit: ``index``, ``kind``, ``label``, ``start_s``, ``duration_s``, ``peak_bytes``
    (above its start), ``retained_bytes``, ``rss_peak_bytes``, ``status``, ``error``, ``bytes`` and
    ``characters`` (of its output), ``method`` (of the peak). Sizes not measured are NA."""
    table = pd.DataFrame([asdict(unit) for unit in figures])
    if table.empty:
        return pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in _UNIT_COLUMNS.items()})
    table["start_s"] = table["start_ns"] / NS
    table["duration_s"] = table["duration_ns"] / NS
    return table[list(_UNIT_COLUMNS)].astype(_UNIT_COLUMNS)


def unit_marks(figures: Sequence[UnitFigures], most: int = 100) -> pd.DataFrame:
    """Where units start: columns ``index``, ``label``, ``t_s``, in order of time.

    All of them where there are at most ``most``; else every 2nd, 5th, 10th, 20th … so that the
    marks stay readable.
    """
    table = pd.DataFrame(
        [(unit.index, unit.label, unit.start_ns / NS) for unit in marked_units(figures, most)],
        columns=["index", "label", "t_s"],
    )
    return table.astype({"index": "int64", "label": "str", "t_s": "float64"})


def marked_units(figures: Sequence[UnitFigures], most: int) -> list[UnitFigures]:
    """The units that ``unit_marks`` marks."""
    step = _round_step(len(figures), most)
    return sorted(figures[step - 1 :: step], key=lambda unit: unit.start_ns)


def _round_step(count: int, most: int) -> int:
    """The smallest of 1, 2, 5, 10, 20 … that leaves at most ``most`` of ``count``."""
    steps = (factor * int(10**power) for power in itertools.count() for factor in (1, 2, 5))
    return next(step for step in steps if count <= step * most)
