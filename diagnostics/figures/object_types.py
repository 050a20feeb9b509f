"""Objects by type."""

from __future__ import annotations

import html
from collections.abc import Sequence

import plotly.graph_objects as go

from diagnostics.analysis.format import format_count
from diagnostics.analysis.object_types import TypeGrowth
from diagnostics.figures.theme import BLUE, framed, say_empty


def types_growth(types: Sequence[TypeGrowth], *, dark: bool = False) -> go.Figure:
    """A bar a type: how many more objects of it there were at the end than at the first count."""
    figure = framed("Types that became more", "more objects than at first", "", dark=dark)
    figure.update_xaxes(tickformat=",d")
    if not types:
        return say_empty(figure, "No objects were counted.")
    figure.add_bar(
        x=[row.growth for row in types],
        y=[html.escape(row.name) for row in types],
        orientation="h",
        marker={"color": BLUE},
        hoverinfo="text",
        hovertext=[
            f"{html.escape(row.name)}<br>{row.growth:+,} objects, "
            f"{format_count(row.count)} at the end"
            for row in types
        ],
    )
    figure.update_yaxes(autorange="reversed")  # the largest on top
    return figure
