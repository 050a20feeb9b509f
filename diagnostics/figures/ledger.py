"""The ledger as a stacked area chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import wrap

import pandas as pd
import plotly.graph_objects as go

from diagnostics.analysis.format import format_bytes, format_seconds, format_share
from diagnostics.analysis.ledger import PART_NAMES, LedgerParts, ledger_table
from diagnostics.figures.theme import (
    BLUE,
    BYTES_AXIS,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    framed,
    legend_below,
    say_empty,
)

PART_COLOURS: Mapping[str, str] = {
    "python": ORANGE,
    "pymalloc_empty": "rgb(244,190,140)",
    "native": BLUE,
    "malloc_free": "rgb(160,195,235)",
    "recorder": RED,
    "file_backed": GREEN,
    "shared": PURPLE,
    "rest": GREY,
}
"""What is free has the paler colour of what it was free of."""

_NOTE_LETTERS = 75  # in a line, so that it fits into half a screen
_NOTE_LINE_PX = 18

_BESIDE = {
    "children": ("child processes", "dash"),
    "group_anonymous": ("control group: anonymous", "dot"),
    "group_cache": ("control group: page cache", "dashdot"),
}


def ledger(rows: Sequence[LedgerParts], *, dark: bool = False) -> go.Figure:
    """``rows`` from ``LiveLedger``: the parts of RSS over time, stacked; their top is RSS."""
    figure = framed("Where the resident memory is", "time (s)", "memory (bytes)", dark=dark)
    figure.update_yaxes(**BYTES_AXIS)
    legend_below(figure)
    if not rows:
        return say_empty(figure, "The parts of the memory were not measured.")
    table = ledger_table(rows)
    for name, title in PART_NAMES.items():
        if table[name].fillna(0).any():
            _add_part(figure, title, PART_COLOURS[name], table["t_s"], table[name], table["rss"])
    _add_note(figure, rows[-1].note)
    return figure


def memory_beside(rows: Sequence[LedgerParts], *, dark: bool = False) -> go.Figure | None:
    """Child processes and the control group over time, where they were read and are not 0; None
    where nothing is. A page cache of gigabytes would press the parts of RSS flat, so these have an
    axis of their own."""
    table = ledger_table(rows)
    known = [name for name in _BESIDE if table[name].fillna(0).any()]
    if not known:
        return None
    figure = framed("Beside this process", "time (s)", "memory (bytes)", dark=dark)
    figure.update_yaxes(**BYTES_AXIS)
    figure.update_layout(showlegend=True)
    for name in known:
        title, dash = _BESIDE[name]
        _add_line(figure, title, dash, table["t_s"], table[name])
    return figure


def _add_note(figure: go.Figure, note: str) -> None:
    """Why parts are missing, between the title and the areas."""
    lines = wrap(note, _NOTE_LETTERS)
    if not lines:
        return
    figure.update_layout(margin={"t": figure.layout.margin.t + _NOTE_LINE_PX * len(lines)})
    figure.add_annotation(
        text="<br>".join(lines),
        **{"x": 0, "y": 1, "xref": "paper", "yref": "paper", "xanchor": "left"},
        **{"yanchor": "bottom", "align": "left", "showarrow": False, "font": {"size": 11}},
    )


def _add_part(
    figure: go.Figure, title: str, colour: str, t_s: pd.Series, sizes: pd.Series, rss: pd.Series
) -> None:
    sizes = sizes.fillna(0)
    figure.add_scatter(
        x=t_s,
        y=sizes,
        name=title,
        mode="lines",
        stackgroup="parts",
        line={"width": 0.5, "color": colour},
        fillcolor=colour,
        hoverinfo="text",
        text=[
            f"{title} {format_bytes(size)} at {format_seconds(at)},"
            f" {format_share(size / whole)} of {format_bytes(whole)}"
            for size, at, whole in zip(sizes, t_s, rss, strict=True)
        ],
    )


def _add_line(figure: go.Figure, title: str, dash: str, t_s: pd.Series, sizes: pd.Series) -> None:
    known = sizes.notna()
    figure.add_scatter(
        x=t_s[known],
        y=sizes[known],
        name=title,
        mode="lines",
        line={"width": 2, "color": GREY, "dash": dash},
        hoverinfo="text",
        text=[
            f"{title} {format_bytes(size)} at {format_seconds(at)}, not part of RSS"
            for size, at in zip(sizes[known], t_s[known], strict=True)
        ],
    )
