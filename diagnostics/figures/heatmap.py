"""The memory heat map: from a table to a picture, and its Plotly form for notebooks and reports."""

from __future__ import annotations

import html
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from diagnostics.analysis.collector import small_collections
from diagnostics.analysis.drops import Drop, freed_by
from diagnostics.analysis.format import format_bytes, format_count, format_seconds
from diagnostics.analysis.gc_account import GcAccount
from diagnostics.analysis.heatmap import HeatTable
from diagnostics.analysis.timeline import NS, marked_units
from diagnostics.analysis.units import UnitFigures
from diagnostics.figures.heatmap_view import BRIGHTEST, ColourScale, GcLine, HeatmapView
from diagnostics.figures.theme import BLUE, FAINT, framed, say_empty, size_colours
from diagnostics.recording.model import GcEvent

_MOST_MARKS = 5000  # the canvas thins them again, to what the zoom has room for
_MOST_LINES = 100
_DECADES = 4  # what a log scale spans below its highest value: beyond, all is "hardly anything"


def to_view(
    table: HeatTable,
    *,
    scale: Literal["log", "linear"] = "log",
    gc: GcAccount | None = None,
    drops: Sequence[Drop] = (),
    units: Sequence[UnitFigures] = (),
    unit_title: str = "page",
    title: str = "Memory by line of code over time",
    y_title: str = "line of code",
) -> HeatmapView:
    """The picture of ``table``, for the canvas or ``heatmap``: bytes become colour indexes here.

    ``gc`` adds collections; with ``drops`` (from ``heap_drops``) each says whether the heap fell
    there, and what freed the memory. ``units`` (from ``unit_figures``) adds where they start.
    """
    colours = colour_scale(table.values, scale)
    density = None
    if gc is not None:
        density = _density(small_collections(gc, table.column_edges_ns))
    return HeatmapView(
        values=colours.to_index(table.values),
        row_labels=table.row_labels,
        row_details=table.row_details,
        row_keys=table.row_keys,
        column_edges_s=table.column_edges_ns / NS,
        scale=colours,
        title=title,
        y_title=y_title,
        gc_lines=_gc_lines(gc, drops) if gc is not None else (),
        gc_density=density,
        unit_marks=_unit_marks(units),
        unit_title=unit_title,
    )


def colour_scale(values: npt.NDArray[np.int64], kind: Literal["log", "linear"]) -> ColourScale:
    """The scale that fits ``values``, in bytes; a log scale spans at most four decades."""
    highest = float(np.max(values, initial=1))
    if kind == "linear":
        return ColourScale("linear", highest)
    lowest = float(np.min(values[values > 0], initial=highest))
    return ColourScale("log", highest, max(lowest, highest / 10**_DECADES))


def heatmap(view: HeatmapView, table: HeatTable | None = None, *, dark: bool = False) -> go.Figure:
    """The picture as a Plotly figure. With its ``table`` hover texts tell exact bytes, without it
    what the colour stands for."""
    figure = framed(view.title, "time (s)", "", dark=dark)
    if not view.values.size:
        return say_empty(figure, "No heap was recorded.")
    if table is not None:
        sizes = table.values.tolist()
    else:
        by_index = [view.scale.to_bytes(index) for index in range(BRIGHTEST + 1)]
        sizes = [[by_index[index] for index in row] for row in view.values.tolist()]
    legend = view.legend or view.scale.legend()
    rows = _row_names(view)
    figure.add_heatmap(
        z=view.values,
        x=np.asarray(view.column_edges_s),
        y=rows,
        zmin=0,
        zmax=BRIGHTEST,
        colorscale=size_colours(dark=dark),
        colorbar={
            "title": "bytes",
            "tickvals": [index for index, _ in legend],
            "ticktext": [text for _, text in legend],
        },
        text=[[format_bytes(size) for size in row] for row in sizes],
        hovertemplate="%{y}<br>%{text} at %{x:.1f} s<extra></extra>",
    )
    figure.update_yaxes(
        type="category",
        categoryorder="array",
        categoryarray=rows,
        autorange=True if view.y_up else "reversed",
        title=view.y_title,
    )
    _add_lines(figure, view)
    return figure


def _row_names(view: HeatmapView) -> list[str]:
    """The labels, but the full detail where two rows have the same label."""
    often = Counter(view.row_labels)
    return [
        html.escape(label if often[label] == 1 else detail)
        for label, detail in zip(view.row_labels, view.row_details, strict=True)
    ]


def _add_lines(figure: go.Figure, view: HeatmapView) -> None:
    # On an axis of their own: on the rows' axis a height would be taken for a row's name.
    figure.update_layout(yaxis2={"overlaying": "y", "range": [0, 1], "visible": False})
    shown = view.unit_marks[:: -(-len(view.unit_marks) // _MOST_LINES) or 1]
    lines = (
        ("starts of units", FAINT, [(t_s, f"start of {view.unit_title} {n}") for t_s, n in shown]),
        ("collections", BLUE, [(line.t_s, line.text) for line in view.gc_lines]),
    )
    for name, color, marks in lines:
        if marks:
            figure.add_scatter(
                x=[x for t_s, _ in marks for x in (t_s, t_s, None)],
                y=[0, 1, None] * len(marks),
                yaxis="y2",
                text=[html.escape(text) for _, text in marks for _ in range(3)],
                name=name,
                mode="lines",
                line={"color": color, "width": 1},
                hovertemplate="%{text}<extra></extra>",
            )


def _gc_lines(account: GcAccount, drops: Sequence[Drop]) -> list[GcLine]:
    return [
        GcLine(
            t_s=event.t_ns / NS,
            pause_ms=event.pause_ns / 1e6,
            generation=event.generation,
            text=_collection_in_words(event, drops),
        )
        for event in account.notable()
    ]


def _collection_in_words(event: GcEvent, drops: Sequence[Drop]) -> str:
    """A collection, what it freed, and who freed what the heap lost about that time: a line on the
    map may stand where memory went by itself."""
    text = (
        f"generation {event.generation}, {format_seconds(event.pause_ns / NS)}, "
        f"{format_count(event.collected)} collected"
    )
    freed = freed_by(event)
    if freed is not None:
        text += f", {format_bytes(freed)} freed"
    end_ns = event.t_ns + event.pause_ns
    place = bisect_left(drops, end_ns, key=lambda drop: drop.end_ns)
    if place < len(drops) and drops[place].start_ns < end_ns:
        drop = drops[place]
        text += f"; the heap fell by {format_bytes(drop.bytes)}: {drop.cause}"
        text += "" if drop.certain else " (estimated)"
    return text


def _unit_marks(units: Sequence[UnitFigures]) -> list[tuple[float, str]]:
    return [(unit.start_ns / NS, str(unit.index)) for unit in marked_units(units, _MOST_MARKS)]


def _density(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    """Counts as 0 (none) to 255 (most); any collection at all shows."""
    most = int(np.max(counts, initial=0))
    if not most:
        return np.zeros(counts.shape, np.uint8)
    shares = np.minimum(np.ceil(counts * (BRIGHTEST / most)), BRIGHTEST)
    density: npt.NDArray[np.uint8] = shares.astype(np.uint8)
    return density
