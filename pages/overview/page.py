"""Overview: the verdict in words, the numbers that matter, the charts that are its evidence."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from diagnostics.analysis.cost_text import cost_in_words, losses
from diagnostics.analysis.format import counted, format_bytes
from diagnostics.analysis.summary import Summary
from diagnostics.analysis.tables import log_table, probe_table, site_table, worst_units
from diagnostics.analysis.watch import Watch
from diagnostics.recording.reader import RecordingReader
from pages.common import opened, screen
from pages.common.prose import prose
from pages.overview import charts, numbers, verdict
from pages.overview.summaries import summary_of

path = opened.required()
st.title("Overview")


def draw(watch: Watch) -> None:
    """Everything on the page, from the recording as it is now."""
    summary = summary_of(watch)
    numbers.ending(summary)
    verdict.show(watch, summary)
    numbers.show(summary)
    charts.show(watch, summary)
    _tables(watch, summary)
    _cost(summary)
    _log(watch)


def _tables(watch: Watch, summary: Summary) -> None:
    left, right = st.columns(2)
    with left:
        _table(
            f"Highest {prose(summary.units.kind or 'unit')}s",
            worst_units(watch.units.figures()),
            "No unit was marked: wrap the loop in units(), or yield pages from the loader.",
        )
    with right:
        _table(
            "Where the memory was allocated",
            site_table(summary.sites_at_peak or summary.sites),
            "The heap was not recorded (engine: none).",
        )


def _table(title: str, rows: pd.DataFrame, empty: str) -> None:
    """A table with its title, or a sentence where it would be empty."""
    st.subheader(title)
    if rows.empty:
        st.caption(empty)
    else:
        st.dataframe(rows, hide_index=True)


def _cost(summary: Summary) -> None:
    with st.expander("What recording cost, and how each probe fared"):
        cost = summary.cost
        st.write(
            f"Recording took {cost_in_words(cost)}. The file has"
            f" {format_bytes(cost.recording_bytes)}. Heap engine: {cost.engine}."
        )
        for sentence in losses(summary.probes, cost):
            st.markdown(f"- Lost: {prose(sentence)}")
        st.dataframe(probe_table(summary.probes), hide_index=True)


def _log(watch: Watch) -> None:
    with RecordingReader(watch.path) as reader:
        log = reader.log()
    if log:
        with st.expander(f"Log ({counted(len(log), 'line')})"):
            st.dataframe(log_table(log), hide_index=True)


screen.refreshed(draw, path)
