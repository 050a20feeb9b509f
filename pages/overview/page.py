"""Overview: what ran, how it ended, the numbers that matter, the timeline."""

from __future__ import annotations

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from diagnostics.analysis.format import (
    counted,
    format_bytes,
    format_seconds,
    format_share,
)
from diagnostics.analysis.object_types import type_growth
from diagnostics.analysis.summary import Summary, summarise
from diagnostics.analysis.summary_text import headline
from diagnostics.analysis.tables import log_table, probe_table, site_table, worst_units
from diagnostics.analysis.timeline import memory_curves, unit_marks
from diagnostics.analysis.watch import Watch
from diagnostics.figures.object_types import types_growth
from diagnostics.figures.timeline import timeline
from diagnostics.figures.units import unit_peaks
from diagnostics.recording.reader import RecordingReader
from pages.common import opened, screen

_TONES = {"finished": st.success, "running": st.info, "cancelled": st.warning}


def ending(summary: Summary) -> None:
    """How the run ended, in words, in the colour of it."""
    first, *rest = headline(summary)
    _TONES.get(summary.outcome.state, st.error)("  \n".join([f"**{first}**", *rest]))


def _figure(cell: DeltaGenerator, label: str, value: str, note: str, help: str = "") -> None:  # noqa: A002
    """A figure with a second one below it, which is no change of the first."""
    cell.metric(label, value, note, delta_color="off", delta_arrow="off", help=help or None)


def numbers(summary: Summary) -> None:
    """The figures that matter, each with what it means."""
    process, units, gc = summary.process, summary.units, summary.gc
    cells = st.columns(5)
    if process.rss_peak_bytes is not None and process.rss_start_bytes is not None:
        growth = (process.rss_end_bytes or 0) - process.rss_start_bytes
        _figure(
            cells[0],
            "Highest memory (RSS)",
            format_bytes(process.rss_peak_bytes),
            f"{format_bytes(growth, signed=True)} kept at the end",
            help="The most the process held at once, and how much more it held at its end than"
            " at its start, before anything was released.",
        )
    if process.heap_peak_bytes is not None:
        _figure(
            cells[1],
            "Highest Python heap",
            format_bytes(process.heap_peak_bytes),
            f"{format_bytes(process.heap_end_bytes or 0)} at the end",
            help="Live Python memory that the engine counted.",
        )
    if units.peak_bytes_max is not None:
        _figure(
            cells[2],
            f"Highest {units.kind}",
            units.peak_bytes_max.label,
            f"{format_bytes(units.peak_bytes_max.bytes, signed=True)} above its start",
            help=f"How far memory rose while it was worked on. Measured as: {units.peak_method}.",
        )
    _figure(
        cells[3],
        "Work done",
        counted(units.count, units.kind),
        f"{counted(units.failed, units.kind)} failed" if units.failed else "none failed",
    )
    _figure(
        cells[4],
        "Garbage collector",
        format_share(gc.share),
        f"longest pause {format_seconds(gc.pause_max_s)}",
        help="Share of the run that was spent in collections.",
    )


def charts(watch: Watch) -> None:
    """The timeline, and the peak of each unit below it."""
    units = watch.units.figures()
    dark = screen.is_dark()
    screen.show_figure(
        timeline(memory_curves(watch.series), unit_marks(units), units, dark=dark),
        key="timeline",
        alt="Memory of the process and the Python heap over time, with unit marks.",
    )
    screen.show_figure(
        unit_peaks(units, dark=dark),
        key="unit-peaks",
        alt="For each unit, how far memory rose above where the unit began.",
    )


def table(title: str, rows: pd.DataFrame, empty: str) -> None:
    """A table with its title, or a sentence where it would be empty."""
    st.subheader(title)
    if rows.empty:
        st.caption(empty)
    else:
        st.dataframe(rows, hide_index=True)


path = opened.required()
st.title("Overview")


def draw(watch: Watch) -> None:
    """Everything on the page, from the recording as it is now."""
    with RecordingReader(path) as reader:
        summary = summarise(reader)
        log = reader.log()
        types = type_growth(reader)
    ending(summary)
    numbers(summary)
    charts(watch)
    left, right = st.columns(2)
    with left:
        table(
            f"Highest {summary.units.kind or 'unit'}s",
            worst_units(watch.units.figures()),
            "No unit was marked: wrap the loop in units(), or yield pages from the loader.",
        )
    with right:
        table(
            "Where the memory was allocated",
            site_table(summary.sites_at_peak or summary.sites),
            "The heap was not recorded (engine: none).",
        )
    if types:
        screen.show_figure(
            types_growth(types, dark=screen.is_dark()),
            key="types",
            alt="Types of object whose number grew most during the run.",
        )
    with st.expander("What recording cost, and how each probe fared"):
        cost = summary.cost
        st.write(
            f"Recording took {format_seconds(cost.recorder_cpu_s)} of CPU time and"
            f" {format_bytes(cost.recording_bytes)} on disk; {cost.dropped} measurements were"
            f" dropped. Heap engine: {cost.engine}."
        )
        st.dataframe(probe_table(summary.probes), hide_index=True)
    if log:
        with st.expander(f"Log ({counted(len(log), 'line')})"):
            st.dataframe(log_table(log), hide_index=True)


screen.refreshed(draw, path)
