"""The birth-unit lens as pictures: the map, and the total beside it on the same axis of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import plotly.graph_objects as go

from diagnostics.analysis.birth import BirthTable
from diagnostics.analysis.drops import Drop
from diagnostics.analysis.format import format_bytes, format_seconds
from diagnostics.analysis.gc_account import GcAccount
from diagnostics.analysis.timeline import NS
from diagnostics.analysis.units import UnitFigures
from diagnostics.figures.heatmap import to_view
from diagnostics.figures.heatmap_view import HeatmapView
from diagnostics.figures.theme import BLUE, BYTES_AXIS, framed, say_empty

_TOTAL_PX = 130


def birth_view(
    table: BirthTable,
    *,
    scale: Literal["log", "linear"] = "log",
    gc: GcAccount | None = None,
    drops: Sequence[Drop] = (),
    units: Sequence[UnitFigures] = (),
    unit_kind: str = "page",
) -> HeatmapView:
    """The map of ``table`` for the canvas or ``heatmap``: units upward, the one in progress marked.

    ``gc`` adds collections, ``drops`` (from ``heap_drops``) what freed the memory where the heap
    fell about one, ``units`` (from ``unit_figures``) the places where they start.
    """
    view = to_view(
        table,
        scale=scale,
        gc=gc,
        drops=drops,
        units=units,
        unit_title=unit_kind,
        title=f"Memory by the {unit_kind} it was born in",
        y_title=unit_kind,
    )
    return replace(view, y_up=True, now_row_key=table.now_key)


def total_chart(table: BirthTable, *, dark: bool = False) -> go.Figure:
    """All that is alive over time, as a thin area whose axis of time is that of the map."""
    figure = framed("Alive in all", "time (s)", "bytes", dark=dark)
    figure.update_layout(height=_TOTAL_PX, showlegend=False, margin={"t": 34})
    figure.update_yaxes(**BYTES_AXIS, nticks=3)
    if not table.totals.size:
        return say_empty(figure, table.gap or "No memory was measured yet.")
    edges_s = table.column_edges_ns / NS
    figure.update_xaxes(range=[float(edges_s[0]), float(edges_s[-1])])
    # The value of a column holds from edge to edge; the last one is said twice to reach its end.
    sizes = [*table.totals.tolist(), int(table.totals[-1])]
    figure.add_scatter(
        x=edges_s,
        y=sizes,
        mode="lines",
        line={"color": BLUE, "width": 1, "shape": "hv"},
        fill="tozeroy",
        hoverinfo="text",
        text=[
            f"{format_bytes(size)} at {format_seconds(float(t_s))}"
            for size, t_s in zip(sizes, edges_s, strict=True)
        ],
    )
    return figure
