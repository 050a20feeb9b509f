"""How the run ended, and the figures that matter."""

from __future__ import annotations

import streamlit as st

from diagnostics.analysis.format import counted, format_bytes, format_seconds, format_share
from diagnostics.analysis.summary import Summary
from diagnostics.analysis.summary_text import headline
from pages.common.prose import prose


def ending(summary: Summary) -> None:
    """How the run ended, in words: quietly where it finished or goes on, else in a colour."""
    first, *rest = headline(summary)
    if summary.outcome.state in ("finished", "running"):
        st.markdown(prose(first))
        return
    text = "  \n".join([f"**{prose(first)}**", *map(prose, rest)])
    (st.warning if summary.outcome.state == "cancelled" else st.error)(text)


def show(summary: Summary) -> None:
    """The figures of the run, each with what it means."""
    with st.container(horizontal=True, gap="medium"):
        _figures(summary)


def _figures(summary: Summary) -> None:
    process, units, gc = summary.process, summary.units, summary.gc
    if process.rss_peak_bytes is not None and process.rss_start_bytes is not None:
        growth = (process.rss_end_bytes or 0) - process.rss_start_bytes
        _figure(
            "Highest memory (RSS)",
            format_bytes(process.rss_peak_bytes),
            f"{format_bytes(growth, signed=True)} kept at the end",
            help="The most the process held at once, and how much more it held at its end than"
            " at its start, before anything was released.",
        )
    if process.heap_peak_bytes is not None:
        _figure(
            "Highest Python heap",
            format_bytes(process.heap_peak_bytes),
            f"{format_bytes(process.heap_end_bytes or 0)} at the end",
            help="Live Python memory that the engine counted.",
        )
    if units.peak_bytes_max is not None:
        _figure(
            f"Highest {prose(units.kind)}",
            prose(units.peak_bytes_max.label),
            f"{format_bytes(units.peak_bytes_max.bytes, signed=True)} above its start",
            help=f"How far memory rose while it was worked on. Measured as: {units.peak_method}.",
        )
    _figure(
        "Work done",
        prose(counted(units.count, units.kind)),
        f"{prose(counted(units.failed, units.kind))} failed" if units.failed else "none failed",
    )
    _figure(
        "Garbage collector",
        format_share(gc.share),
        f"longest pause {format_seconds(gc.pause_max_s)}",
        help="Share of the run that was spent in collections.",
    )


def _figure(label: str, value: str, note: str, help: str = "") -> None:  # noqa: A002
    """A figure with a second one below it, which is no change of the first."""
    st.metric(
        label,
        value,
        note,
        delta_color="off",
        delta_arrow="off",
        help=help or None,
        width="content",
    )
