"""The birth-unit lens: the page of the document up, time to the right, bytes still alive."""

from __future__ import annotations

import streamlit as st

from diagnostics.analysis.format import format_bytes, format_seconds, span
from diagnostics.analysis.watch import Watch
from diagnostics.figures.heatmap_view import HeatmapSelection, Scale
from diagnostics.figures.retention import birth_view
from pages.common.drops import drops_of
from pages.common.prose import prose
from pages.components.heatmap import heatmap
from pages.heatmap.stacks import ask_for_group, show_stacks


def draw(watch: Watch, scale: Scale) -> None:
    """The map with the total below it, what it shows in one sentence, and what was picked."""
    table = watch.births()
    if table.gap:
        st.info(table.gap)
        return
    kind = watch.unit_kind
    view = birth_view(
        table,
        scale=scale,
        gc=watch.collector,
        drops=drops_of(watch),
        units=watch.units.figures(),
        unit_kind=kind,
    )
    picked = heatmap(view, key="birth-map", height=600, totals=table.totals)
    st.markdown(f"**{prose(watch.shape().sentence)}**")
    if picked is None:
        st.caption(
            f"Colour: bytes that were born in a {prose(kind)} and are still alive; blue: all of"
            f" them together. Click a cell to see what is alive of that {prose(kind)} at that"
            " moment; drag over several for a range. Arrow keys and Enter do the same."
        )
        return
    _details(watch, picked)


def _details(watch: Watch, picked: HeatmapSelection) -> None:
    units = watch.births().units_between(picked.row_key, picked.row_to)
    if units is None:
        return
    kind = watch.unit_kind
    name = "outside any unit" if units == range(1) else span(kind, units.start, units.stop - 1)
    st.subheader(f"Alive at {format_seconds(picked.t_s)}: {prose(name)}")
    group = ask_for_group("birth-group")
    alive = show_stacks(
        watch.path, int(picked.t_s * 1e9), units, group, label=name, key="birth-icicle"
    )
    st.caption(f"{format_bytes(alive.bytes)} in all, as the sampled engine estimates it.")
