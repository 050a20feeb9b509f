"""The live view of a run: progress, the numbers of this moment, the heat map, the timeline."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from diagnostics.analysis.format import format_bytes, format_seconds
from diagnostics.analysis.timeline import memory_curves, unit_marks
from diagnostics.analysis.watch import Watch
from diagnostics.figures.heatmap import to_view
from diagnostics.figures.retention import birth_view
from diagnostics.figures.timeline import timeline
from diagnostics.launch.progress import Progress
from diagnostics.recording.reader import RecordingReader
from pages.common import keys, opened, screen, sitemap
from pages.common.prose import prose
from pages.common.runs import runs
from pages.components.heatmap import heatmap

_LIVE_ROWS = 20


def show(path: Path) -> None:
    """The run at ``path``, while it goes on and when it has ended."""
    screen.refreshed(_draw, path)


def _draw(watch: Watch) -> None:
    _progress(watch)
    _numbers(watch)
    _map(watch)
    units = watch.units.figures()
    screen.show_figure(
        timeline(memory_curves(watch.series), unit_marks(units), units, dark=screen.is_dark()),
        key="live-timeline",
        alt="Memory of the process and the Python heap over time, with unit marks.",
    )


def _map(watch: Watch) -> None:
    """The birth-unit lens; by code site where the engine does not know birth units."""
    units = watch.units.figures()
    births = watch.births()
    if not births.gap:
        view = birth_view(births, gc=watch.collector, units=units, unit_kind=watch.unit_kind)
        heatmap(view, key="live-map", height=440)
        st.markdown(f"**{prose(watch.shape().sentence)}**")
    else:
        view = to_view(
            watch.heat(rows=_LIVE_ROWS),
            gc=watch.collector,
            units=units,
            unit_title=watch.unit_kind,
        )
        heatmap(view, key="live-map", height=440)


def _progress(watch: Watch) -> None:
    with RecordingReader(watch.path) as reader:
        progress = Progress.of(reader)
    bar, button = st.columns([5, 1], vertical_alignment="bottom")
    with bar:
        if progress.share is not None:
            st.progress(progress.share, text=prose(progress.text))
        else:
            st.write(prose(progress.text))
    with button:
        if watch.is_running and runs().can_cancel(watch.path):
            asked = runs().is_cancelling(watch.path)
            if st.button(
                "Cancelling…" if asked else "Cancel",
                disabled=asked,
                width="stretch",
                help="In this process the run stops at its next page; in a child at once.",
            ):
                runs().cancel(watch.path)
                st.rerun(scope="fragment")
        elif st.button("Record another", width="stretch"):
            st.session_state.pop(keys.STARTED, None)
            st.rerun()
    if not watch.is_running:
        _ending(watch)


def _ending(watch: Watch) -> None:
    outcome = watch.outcome
    tone = {"finished": st.success, "cancelled": st.warning}.get(outcome.state, st.error)
    text = f"**{outcome.state.capitalize()}.** {outcome.reason}"
    if outcome.error_message:
        text += f"\n\n{outcome.error_type}: {outcome.error_message}"
    tone(text)
    st.page_link(
        sitemap.page(sitemap.OVERVIEW),
        label="Open the overview of this recording",
        query_params=opened.query(watch.path),
    )


def _numbers(watch: Watch) -> None:
    now, heap, peak, time = st.columns(4)
    resident = watch.series.rss.points()
    if resident:
        now.metric("Memory now (RSS)", format_bytes(resident[-1].value))
    highest = watch.series.rss.peak()
    if highest is not None:
        peak.metric("Highest so far", format_bytes(highest.value))
    python = watch.series.heap.points()
    if python:
        heap.metric("Python heap now", format_bytes(python[-1].value))
    time.metric("Running for", format_seconds(watch.outcome.t_ns / 1e9))
