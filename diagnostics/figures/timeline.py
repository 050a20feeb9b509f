"""Memory over time, with the units on it."""

from __future__ import annotations

import html
from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go

from diagnostics.analysis.format import format_bytes, format_seconds
from diagnostics.analysis.timeline import NS
from diagnostics.analysis.units import UnitFigures, poisonous_unit
from diagnostics.figures.theme import (
    BYTES_AXIS,
    CURVES,
    FAINT,
    RED,
    framed,
    legend_below,
    say_empty,
)

_MOST_FAILURES = 200


def timeline(
    curves: pd.DataFrame,
    marks: pd.DataFrame,
    units: Sequence[UnitFigures] = (),
    *,
    dark: bool = False,
) -> go.Figure:
    """``curves`` from ``memory_curves``, ``marks`` from ``unit_marks``, ``units`` from
    ``unit_figures``: failed ones are crossed, and one whose peak stands out is named."""
    figure = framed("Memory over time", "time (s)", "memory (bytes)", dark=dark)
    figure.update_yaxes(**BYTES_AXIS)
    legend_below(figure, y=-0.4)
    if curves.empty:
        return say_empty(figure, "No memory was measured yet.")
    highest = int(curves["bytes"].max())
    _add_marks(figure, marks, highest)
    for name, color in CURVES.items():
        curve = curves[curves["curve"] == name]
        if not curve.empty:
            _add_curve(figure, name, color, curve)
    _add_failures(figure, [unit for unit in units if unit.status == "failed"])
    _name_peak(figure, poisonous_unit(units))
    return figure


def _add_curve(figure: go.Figure, name: str, color: str, curve: pd.DataFrame) -> None:
    figure.add_scatter(
        x=curve["t_s"],
        y=curve["bytes"],
        name=name,
        mode="lines",
        line={"color": color, "width": 2},
        hoverinfo="text",
        text=[
            f"{name} {format_bytes(size)} at {format_seconds(t_s)}"
            for size, t_s in zip(curve["bytes"], curve["t_s"], strict=True)
        ],
    )


def _add_marks(figure: go.Figure, marks: pd.DataFrame, height: int) -> None:
    if marks.empty:
        return
    # One trace with gaps: hundreds of shapes would each be laid out again at every refresh.
    figure.add_scatter(
        x=[x for t_s in marks["t_s"] for x in (t_s, t_s, None)],
        y=[0, height, None] * len(marks),
        text=[html.escape(label) for label in marks["label"] for _ in range(3)],
        name="starts of units",
        mode="lines",
        line={"color": FAINT, "width": 1},
        hovertemplate="start of %{text}<extra></extra>",
    )


def _add_failures(figure: go.Figure, failed: Sequence[UnitFigures]) -> None:
    if not failed:
        return
    shown = failed[:: -(-len(failed) // _MOST_FAILURES)]
    figure.add_scatter(
        x=[(unit.start_ns + unit.duration_ns) / NS for unit in shown],
        y=[unit.rss_peak_bytes or 0 for unit in shown],
        name="failed",
        mode="markers",
        marker={"symbol": "x", "size": 9, "color": RED},
        hoverinfo="text",
        text=[html.escape(f"{unit.label} failed: {unit.error or ''}") for unit in shown],
    )


def _name_peak(figure: go.Figure, unit: UnitFigures | None) -> None:
    if unit is None or unit.peak_bytes is None:
        return
    middle_s = (unit.start_ns + unit.duration_ns / 2) / NS
    text = f"{html.escape(unit.label)}: {format_bytes(unit.peak_bytes, signed=True)}"
    # The curves are samples and may have missed it: the point keeps it inside the picture.
    figure.add_scatter(
        x=[middle_s],
        y=[unit.rss_peak_bytes],
        name="highest peak",
        mode="markers",
        marker={"symbol": "circle-open", "size": 10, "color": RED},
        hoverinfo="text",
        text=[text],
    )
    figure.add_annotation(
        x=middle_s,
        y=unit.rss_peak_bytes,
        text=text,
        arrowcolor=RED,
        font={"color": RED},
        ax=0,
        ay=-28,
    )
