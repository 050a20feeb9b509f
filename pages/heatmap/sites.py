"""The code-site lens: which line held how many bytes, and when."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from diagnostics.analysis.format import format_bytes, format_seconds
from diagnostics.analysis.heatmap import HeatTable, row_figures
from diagnostics.analysis.source_lines import numbered_source
from diagnostics.analysis.watch import Watch
from diagnostics.figures.heatmap import to_view
from diagnostics.figures.heatmap_view import HeatmapSelection, Scale
from diagnostics.recording.reader import RecordingReader
from pages.common.drops import drops_of
from pages.common.prose import prose
from pages.components.heatmap import heatmap
from pages.heatmap.stacks import ask_for_group, show_stacks


def draw(watch: Watch, scale: Scale) -> None:
    """The map, and below it what was picked, in the source and in the stacks of that moment."""
    with st.container(horizontal=True, gap="medium"):
        group = ask_for_group("group")
        rows = st.slider("Rows", 10, 100, 30, step=10, key="rows", width=240)
    table = watch.heat(group, rows)
    view = to_view(
        table,
        scale=scale,
        gc=watch.collector,
        drops=drops_of(watch),
        units=watch.units.figures(),
        unit_title=watch.unit_kind,
        title=f"Memory by {group} over time",
        y_title=group,
    )
    picked = heatmap(view, key="site-map", height=max(360, 120 + 18 * len(table.rows)))
    if picked is None:
        st.caption(
            "Colour: bytes alive that the row allocated. Lines: collections of generation 2 and"
            " pauses of more than 1 ms; the strip above shows how often the small ones ran. Click"
            " a cell, drag over rows, or use the arrow keys and Enter."
        )
        return
    _row(watch.path, table, picked)
    st.subheader(f"The whole heap at {format_seconds(picked.t_s)}")
    show_stacks(
        watch.path, int(picked.t_s * 1e9), None, group, label="everything alive", key="site-icicle"
    )


def _row(path: Path, table: HeatTable, picked: HeatmapSelection) -> None:
    figures = row_figures(table, str(picked.row_key), picked.t_s * 1e9)
    if figures is None:
        st.caption("That row is not among the largest any more. Raise the number of rows.")
        return
    place = figures.place
    st.subheader(prose(place.label))
    st.caption(prose(place.detail))
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
