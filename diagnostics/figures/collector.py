"""The garbage collector's pauses."""

from __future__ import annotations

import html
from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from diagnostics.analysis.format import counted, format_count, format_seconds
from diagnostics.figures.theme import GENERATIONS, GREEN, RED, framed, legend_below, say_empty

_TICKS = {
    **{1e-6: "1 µs", 1e-5: "10 µs", 1e-4: "100 µs", 1e-3: "1 ms", 1e-2: "10 ms", 1e-1: "100 ms"},
    **{1.0: "1 s", 10.0: "10 s", 100.0: "100 s"},
}


def gc_pauses(
    pauses: pd.DataFrame, events: pd.DataFrame | None = None, *, dark: bool = False
) -> go.Figure:
    """``pauses`` from ``pause_table``: the longest pauses over time, by generation. ``events`` from
    ``event_table``: single collections, drawn larger, with what they found and the unit."""
    figure = framed("Pauses of the garbage collector", "time (s)", "pause (s)", dark=dark)
    legend_below(figure)
    figure.update_yaxes(type="log", tickvals=list(_TICKS), ticktext=list(_TICKS.values()))
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
            name="over 1 ms, or generation 2",
            mode="markers",
            # Rings around the dots: one colour for all, which the legend can show.
            marker={"color": RED, "size": 11, "symbol": "circle-open", "line": {"width": 1.5}},
            hoverinfo="text",
            text=[_hover(event) for event in events.to_dict("records")],
        )
    return figure


def gc_generations(generations: pd.DataFrame, *, dark: bool = False) -> go.Figure:
    """``generations`` from ``generation_table``: objects that each generation's collections freed,
    and above them those that they could not free."""
    figure = framed("Objects found by the garbage collector", "", "objects (count)", dark=dark)
    figure.update_yaxes(rangemode="tozero", tickformat=",d")
    if not generations["count"].sum():
        return say_empty(figure, "The collector has not run.")
    names = [
        f"generation {generation}<br>{counted(count, 'collection')}"
        for generation, count in zip(generations["generation"], generations["count"], strict=True)
    ]
    for column, color in (("collected", GREEN), ("uncollectable", RED)):
        figure.add_bar(
            x=names,
            y=generations[column],
            name=column,
            marker={"color": color},
            text=[format_count(count) if count else "" for count in generations[column]],
            textposition="auto",
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
    figure.update_layout(barmode="stack", showlegend=True)
    return figure


def _hover(event: Mapping[Hashable, Any]) -> str:
    return (
        f"generation {event['generation']}, {format_seconds(event['pause_s'])}<br>"
        f"{html.escape(str(event['unit_label']))}, {event['collected']} collected, "
        f"{event['uncollectable']} uncollectable"
    )
