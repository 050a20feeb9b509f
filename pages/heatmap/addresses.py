"""The lens by address: which mappings of the process are resident, and where inside them."""

from __future__ import annotations

import streamlit as st

from diagnostics.analysis.address import bins_of, few_readings, mappings_at, residency_sentence
from diagnostics.analysis.watch import Watch
from diagnostics.figures.heatmap import to_view
from diagnostics.figures.heatmap_view import HeatmapSelection, Scale
from diagnostics.recording.reader import RecordingReader
from pages.common.prose import prose
from pages.components.heatmap import heatmap


def draw(watch: Watch, scale: Scale) -> None:
    """The map of mappings, and the bins of the one that was picked."""
    table = watch.addresses()
    if not table.values.size:
        st.info(_why_not(watch))
        return
    view = to_view(
        table,
        scale=scale,
        units=watch.units.figures(),
        unit_title=watch.unit_kind,
        title="Resident memory by address over time",
        y_title="mapping",
    )
    if not watch.is_running:
        with RecordingReader(watch.path) as reader:
            few = few_readings(reader)
        if few:
            st.info(few)
    picked = heatmap(view, key="address-map", height=max(360, 120 + 14 * len(table.rows)))
    if picked is None:
        st.caption(
            "Each row is a mapping of the process, in the order of addresses; colour is what of it"
            " is resident. Click a mapping to look inside it."
        )
        return
    _inside(watch, picked, scale)


def _inside(watch: Watch, picked: HeatmapSelection, scale: Scale) -> None:
    key = str(picked.row_key)
    if not key.isdigit():
        st.caption("These are many small mappings, added up.")
        return
    t_ns = int(picked.t_s * 1e9)
    with RecordingReader(watch.path) as reader:
        rows = [row for row in mappings_at(reader, t_ns).rows if row.mapping.id == int(key)]
        if not rows:
            st.caption("That mapping did not exist at that moment.")
            return
        sentence = residency_sentence(rows[0], bins_of(reader, rows[0].mapping, t_ns))
    st.markdown(f"**{prose(sentence)}**")
    bins = watch.bins(int(key))
    if not bins.values.size:
        st.caption("Only the largest writable mappings are looked into.")
        return
    view = to_view(bins, scale=scale, title="Inside the mapping, in bins of 64 KiB", y_title="bin")
    heatmap(view, key=f"bins-{key}", height=420)


def _why_not(watch: Watch) -> str:
    with RecordingReader(watch.path) as reader:
        for probe in reader.probes():
            if probe.name == "mappings" and probe.state != "on":
                return f"The mappings of the process could not be read: {probe.detail}"
    return "No reading of the process's mappings is in this recording."
