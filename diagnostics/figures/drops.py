"""Drops of the heap on the timeline, each with what freed it."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from diagnostics.analysis.drops import Cause, Drop
from diagnostics.analysis.format import counted, format_bytes, format_seconds
from diagnostics.figures.theme import BLUE, GREEN

_NS = 1e9
_MOST = 300
_LOOKS: dict[Cause, tuple[str, str]] = {
    "collector": (BLUE, "triangle-down"),
    "reference count": (GREEN, "circle"),
}


def mark_drops(figure: go.Figure, drops: Sequence[Drop]) -> None:
    """Add the drops to a figure of memory over time: a mark for each, at the foot of its fall.

    Of more than 300 the largest are drawn.
    """
    shown = sorted(drops, key=lambda drop: -drop.bytes)[:_MOST]
    for cause, (colour, symbol) in _LOOKS.items():
        of_cause = [drop for drop in shown if drop.cause == cause]
        if of_cause:
            figure.add_scatter(
                x=[drop.end_ns / _NS for drop in of_cause],
                y=[drop.after for drop in of_cause],
                name=f"drop by {cause}",
                mode="markers",
                marker={"symbol": symbol, "size": 8, "color": colour},
                hoverinfo="text",
                text=[_words(drop) for drop in of_cause],
            )


def _words(drop: Drop) -> str:
    text = (
        f"{format_bytes(drop.before)} to {format_bytes(drop.after)} at"
        f" {format_seconds(drop.end_ns / _NS)}: freed by the {drop.cause}"
    )
    if drop.collected:
        objects = counted(drop.collected, "object")
        text += f"<br>collections freed {objects} with {format_bytes(drop.freed)} meanwhile"
    return text if drop.certain else f"{text}<br>estimated: both may have had a part"
