"""Heat map: allocation sites against time, with collections and unit boundaries."""

from __future__ import annotations

from typing import get_args

import streamlit as st

from diagnostics.analysis.format import format_bytes, format_seconds
from diagnostics.analysis.heatmap import HeatTable, row_figures
from diagnostics.analysis.sites import Grouping
from diagnostics.analysis.source_lines import numbered_source
from diagnostics.analysis.watch import Watch
from diagnostics.figures.heatmap import to_view
from diagnostics.figures.heatmap_view import HeatmapSelection, Scale
from diagnostics.recording.reader import RecordingReader
from pages.common import opened, screen
from pages.components.heatmap import heatmap

LENSES = {"site": "By code site"}
GROUPS: tuple[Grouping, ...] = get_args(Grouping)
SCALES: dict[Scale, str] = {"log": "Logarithmic", "linear": "Linear"}

path = opened.required()
st.title("Heat map")

lens_box, group_box, scale_box, rows_box = st.columns([2, 3, 2, 2])
with lens_box:
    st.segmented_control(
        "Lens", list(LENSES), format_func=LENSES.__getitem__, default="site", key="lens"
    )
with group_box:
    group = st.segmented_control("Group by", GROUPS, default="line", required=True, key="group")
with scale_box:
    scale = st.segmented_control(
        "Colours",
        list(SCALES),
        format_func=SCALES.__getitem__,
        default="log",
        required=True,
        key="scale",
    )
with rows_box:
    rows = st.slider("Rows", 10, 100, 30, step=10, key="rows")


def details(table: HeatTable, picked: HeatmapSelection) -> None:
    """The row that was clicked: its figures, and its source."""
    figures = row_figures(table, str(picked.row_key), picked.t_s * 1e9)
    if figures is None:
        st.caption("That row is not among the largest any more. Raise the number of rows.")
        return
    place = figures.place
    st.subheader(place.label)
    st.caption(place.detail)
    at, peak, end = st.columns(3)
    at.metric(f"Alive at {format_seconds(picked.t_s)}", format_bytes(figures.bytes))
    peak.metric(
        f"At most, at {format_seconds(figures.peak_ns / 1e9)}", format_bytes(figures.peak_bytes)
    )
    end.metric("At the end", format_bytes(figures.end_bytes))
    if not place.file:
        return
    with RecordingReader(path) as reader:
        source = reader.source(place.file)
    if place.line is not None and source:
        st.code(numbered_source(source, place.line), language="python")
    else:
        st.caption("The recording holds no source lines of this place.")


def draw(watch: Watch) -> None:
    """The map, and below it what was clicked."""
    table = watch.heat(group, rows)
    units = watch.units.figures()
    view = to_view(
        table,
        scale=scale,
        gc=watch.collector,
        units=units,
        unit_title=units[0].kind if units else "page",
        title=f"Memory by {group} over time",
        y_title=group,
    )
    picked = heatmap(view, key="site-map", height=max(360, 120 + 18 * len(table.rows)))
    st.caption(
        "Colour: bytes alive that the row allocated. Lines: collections of generation 2 and pauses"
        " of more than 1 ms; the strip above shows how often the small ones ran. Click a cell, drag"
        " over rows, or use the arrow keys and Enter."
    )
    if picked is not None:
        details(table, picked)


screen.refreshed(draw, path)
