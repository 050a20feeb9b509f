"""The garbage collector's pauses."""

from __future__ import annotations

import html
from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from diagnostics.analysis.format import format_count, format_seconds
from diagnostics.figures.theme import GENERATIONS, GREEN, RED, framed, say_empty


def gc_pauses(
    pauses: pd.DataFrame, events: pd.DataFrame | None = None, *, dark: bool = False
) -> go.Figure:
    """``pauses`` from ``pause_table``: the longest pauses over time, by generation. ``events`` from
    ``event_table``: single collections, drawn larger, with what they found and the unit."""
    figure = framed("Pauses of the garbage collector", "time (s)", "pause (s)", dark=dark)
    figure.update_yaxes(type="log", dtick=1, tickformat="~s", ticksuffix="s")
    if pauses.empty:
        return say_empty(figure, "The collector has not run.")
    for generation, color in GENERATIONS.items():
        rows = pauses[pauses["generation"] == generation]
        if rows.empty:
            continue
        figure.add_scatter(
            x=rows["t_s"],
            y=rows["pause_s"],
            name=f"generation {generation}",
            mode="markers",
            marker={"color": color, "size": 5},
            hoverinfo="text",
            text=[
                f"generation {generation}, {format_seconds(pause)} at {format_seconds(t_s)}"
                for pause, t_s in zip(rows["pause_s"], rows["t_s"], strict=True)
            ],
        )
    if events is not None and not events.empty:
        figure.add_scatter(
            x=events["t_s"],
            y=events["pause_s"],
            name="long, or generation 2",
            mode="markers",
            marker={
                "color": [GENERATIONS[generation] for generation in events["generation"]],
                "size": 9,
                "line": {"width": 1, "color": RED},
            },
            hoverinfo="text",
            text=[_hover(event) for event in events.to_dict("records")],
        )
    return figure


def gc_generations(generations: pd.DataFrame, *, dark: bool = False) -> go.Figure:
    """``generations`` from ``generation_table``: objects that each generation's collections freed,
    beside those that they could not free."""
    figure = framed(
        "Objects found by the garbage collector", "generation", "objects (count)", dark=dark
    )
    figure.update_yaxes(rangemode="tozero", tickformat=",d")
    if not generations["count"].sum():
        return say_empty(figure, "The collector has not run.")
    names = [f"generation {generation}" for generation in generations["generation"]]
    for column, color in (("collected", GREEN), ("uncollectable", RED)):
        figure.add_bar(
            x=names,
            y=generations[column],
            name=column,
            marker={"color": color},
            hoverinfo="text",
            hovertext=[
                f"generation {row['generation']}<br>"
                f"{format_count(row[column])} objects {column}<br>"
                f"in {format_count(row['count'])} collections, "
                f"{format_seconds(row['pause_total_s'])} in all, "
                f"longest {format_seconds(row['pause_max_s'])}"
                for row in generations.to_dict("records")
            ],
        )
    figure.update_layout(barmode="group")
    return figure


def _hover(event: Mapping[Hashable, Any]) -> str:
    return (
        f"generation {event['generation']}, {format_seconds(event['pause_s'])}<br>"
        f"{html.escape(str(event['unit_label']))}, {event['collected']} collected, "
        f"{event['uncollectable']} uncollectable"
    )
