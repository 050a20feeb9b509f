"""Objects by type."""

from __future__ import annotations

import html
from collections.abc import Sequence

import plotly.graph_objects as go

from diagnostics.analysis.format import format_count, format_seconds
from diagnostics.analysis.type_counts import CountMark, TypeCourse
from diagnostics.figures.theme import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    framed,
    legend_below,
    say_empty,
)

_NS = 1e9
_LINES = (BLUE, ORANGE, GREEN, PURPLE, RED, GREY)


def types_over_units(
    courses: Sequence[TypeCourse],
    marks: Sequence[CountMark],
    *,
    unit_kind: str = "page",
    dark: bool = False,
) -> go.Figure:
    """A line a type: how many more objects of it than at the first mark, at each mark.

    ``courses`` from ``type_courses`` for these ``marks``; the six that grew most are drawn. A
    count outside any unit, such as the last one, stands at the newest unit.
    """
    since = f"at the end of {unit_kind} {marks[0].unit}" if marks and marks[0].unit else "at first"
    figure = framed(f"More objects than {since}, by type", unit_kind, "more objects", dark=dark)
    figure.update_yaxes(tickformat="~s")
    legend_below(figure)
    if not courses:
        return say_empty(figure, "No type became more.")
    for course, colour in zip(courses, _LINES, strict=False):
        figure.add_scatter(
            x=[mark.unit or mark.last_unit for mark in marks],
            y=[count - course.counts[0] for count in course.counts],
            name=html.escape(course.name.rpartition(".")[2]),
            mode="lines+markers",
            line={"color": colour, "width": 2},
            marker={"size": 6},
            hoverinfo="text",
            text=[
                f"{html.escape(course.name)}<br>{count - course.counts[0]:+,} to"
                f" {format_count(count)} {_when(mark, unit_kind)}"
                for count, mark in zip(course.counts, marks, strict=True)
            ],
        )
    return figure


def _when(mark: CountMark, unit_kind: str) -> str:
    if mark.unit:
        return f"at the end of {unit_kind} {mark.unit}"
    return f"outside any {unit_kind}, at {format_seconds(mark.t_ns / _NS)}"
