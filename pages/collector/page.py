"""Garbage collector: pauses over time, what they gave back, and in which unit they fell."""

from __future__ import annotations

import streamlit as st

from diagnostics.analysis.collector import event_table, generation_table, pause_table
from diagnostics.analysis.format import counted, format_count, format_seconds, format_share
from diagnostics.analysis.watch import Watch
from diagnostics.figures.collector import gc_generations, gc_pauses
from pages.common import opened, screen

path = opened.required()
st.title("Garbage collector")


def draw(watch: Watch) -> None:
    """The figures of the run's collections, then the single ones."""
    account = watch.collector
    generations = generation_table(account)
    labels = {unit.index: unit.label for unit in watch.units.figures()}
    longest = event_table(account.longest(), labels)
    dark = screen.is_dark()

    # Beside each other as far as there is room, and never cut.
    with st.container(horizontal=True, gap="medium"):
        collections = format_count(int(generations["count"].sum()))
        st.metric("Collections", collections, width="content")
        st.metric(
            "Share of the run",
            format_share(account.share(watch.outcome.t_ns)),
            help=f"{format_seconds(account.pause_total_ns / 1e9)} in all.",
            width="content",
        )
        longest_pause = format_seconds(account.pause_max_ns / 1e9)
        st.metric("Longest pause", longest_pause, width="content")
        st.metric(
            "Could not be freed",
            counted(int(generations["uncollectable"].sum()), "object"),
            help="Objects in cycles that the collector found and could not take apart.",
            width="content",
        )
    screen.show_figure(
        gc_pauses(pause_table(account), longest, dark=dark),
        key="pauses",
        alt="Pauses of the garbage collector over time, by generation.",
    )
    screen.show_figure(
        gc_generations(generations, dark=dark),
        key="generations",
        alt="Objects that each generation's collections freed, and those they could not.",
    )
    st.subheader("Longest pauses")
    if longest.empty:
        st.caption("No collection of generation 2, and no pause of more than 1 ms.")
    else:
        st.dataframe(
            longest,
            hide_index=True,
            column_config={
                "t_s": st.column_config.NumberColumn("at (s)", format="%.2f"),
                "pause_s": st.column_config.NumberColumn("pause (s)", format="%.4f"),
                "unit": None,
                "unit_label": "fell in",
            },
        )
    if account.own.count:
        st.caption(
            f"{counted(account.own.count, 'collection')} set off by the workbench itself"
            f" ({format_seconds(account.own.pause_total_ns / 1e9)}) are in none of these figures."
        )


screen.refreshed(draw, path)
