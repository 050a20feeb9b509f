"""The units side by side."""

from __future__ import annotations

import html
from collections.abc import Sequence

import plotly.graph_objects as go

from diagnostics.analysis.format import format_bytes, format_seconds
from diagnostics.analysis.timeline import NS
from diagnostics.analysis.units import UnitFigures, highest_of_runs, highest_unit
from diagnostics.figures.theme import BLUE, BYTES_AXIS, RED, framed, say_empty

_MOST_BARS = 600  # a bar a pixel or two on a wide screen
_WHOLE_TICKS = 20


def unit_peaks(units: Sequence[UnitFigures], *, dark: bool = False) -> go.Figure:
    """A bar a unit: its highest resident set above where it began; the highest is named.

    Of more units than a screen has room for, each bar shows the highest of a few neighbours.
    """
    known = [unit for unit in units if unit.peak_bytes is not None]
    kind = known[0].kind if known else "unit"
    shown = highest_of_runs(known, _MOST_BARS)
    title = f"Peak of each {kind}, above where it began"
    if len(shown) < len(known):
        title += f" (each bar the highest of {-(-len(known) // _MOST_BARS)})"
    figure = framed(title, kind, "peak above start (bytes)", dark=dark)
    figure.update_yaxes(**BYTES_AXIS)
    if not shown:
        return say_empty(figure, "No peaks were recorded.")
    figure.add_bar(
        x=[unit.index for unit in shown],
        y=[unit.peak_bytes for unit in shown],
        marker={"color": [RED if unit.status == "failed" else BLUE for unit in shown]},
        marker_line_width=0,
        hoverinfo="text",
        hovertext=[_hover(unit) for unit in shown],
    )
    if shown[-1].index - shown[0].index < _WHOLE_TICKS:
        figure.update_xaxes(dtick=1)  # there is no page 1.5
    _name_highest(figure, highest_unit(shown))
    return figure


def _hover(unit: UnitFigures) -> str:
    lines = [
        unit.label,
        f"peak {format_bytes(unit.peak_bytes or 0, signed=True)}",
        f"kept at its end {format_bytes(unit.retained_bytes or 0, signed=True)}",
        f"took {format_seconds(unit.duration_ns / NS)}",
    ]
    if unit.error:
        lines.append(f"failed: {unit.error}")
    return "<br>".join(html.escape(line) for line in lines)


def _name_highest(figure: go.Figure, unit: UnitFigures | None) -> None:
    if unit is None or not unit.peak_bytes:
        return
    figure.add_annotation(
        x=unit.index,
        y=unit.peak_bytes,
        text=f"{html.escape(unit.label)}: {format_bytes(unit.peak_bytes)}",
        showarrow=False,
        yshift=10,
    )
