"""The charts below the verdict: memory over time, where it is, the peaks, the settlement."""

from __future__ import annotations

import plotly.graph_objects as go
import streamlit as st

from diagnostics.analysis.format import format_seconds
from diagnostics.analysis.ledger import LiveLedger, line_of
from diagnostics.analysis.settlement import sentences
from diagnostics.analysis.summary import Summary
from diagnostics.analysis.timeline import memory_curves, unit_marks
from diagnostics.analysis.watch import Watch
from diagnostics.figures.drops import mark_drops
from diagnostics.figures.ledger import ledger, memory_beside
from diagnostics.figures.settlement import settlement
from diagnostics.figures.theme import GREY
from diagnostics.figures.timeline import timeline
from diagnostics.figures.units import unit_peaks
from pages.common import screen
from pages.common.drops import drops_of
from pages.common.prose import prose

_NS = 1e9
_SMALL_PX, _TIMELINE_PX, _LEDGER_PX, _BESIDE_PX = 290, 360, 380, 220
_LEFT_PX = 64  # room for the labels of both axes of memory, so that their times stand in line


def show(watch: Watch, summary: Summary) -> None:
    """All charts, the two over time first and in line."""
    live = watch.ledger()
    moment_s = _chosen(watch, live)
    _timeline(watch, moment_s)
    _parts(watch, live, moment_s)
    if summary.explanation.settlement is not None:
        _settlement(summary)
    peaks = unit_peaks(watch.units.figures(), dark=screen.is_dark())
    peaks.update_layout(height=_SMALL_PX)
    screen.show_figure(
        peaks,
        key="unit-peaks",
        alt="For each unit, how far memory rose above where the unit began.",
    )


def _chosen(watch: Watch, live: LiveLedger) -> float | None:
    """The moment that the reader asks for, in seconds; the latest while the run goes on."""
    peak, end = live.peak(), live.end()
    if peak is None or end is None or watch.is_running or end.t_ns == 0:
        return None
    st.subheader("Evidence")
    return st.slider(
        "Moment (s)",
        0.0,
        end.t_ns / _NS,
        peak.t_ns / _NS,
        step=end.t_ns / _NS / 500,
        key="moment",
        format="%.2f",
        help="It starts at the highest memory. The line of numbers below the charts is of this"
        " moment.",
    )


def _timeline(watch: Watch, moment_s: float | None) -> None:
    units = watch.units.figures()
    figure = timeline(memory_curves(watch.series), unit_marks(units), units, dark=screen.is_dark())
    mark_drops(figure, drops_of(watch))
    _align(figure, watch, moment_s, height=_TIMELINE_PX)
    screen.show_figure(
        figure,
        key="timeline",
        alt="Memory of the process and the Python heap over time, with unit marks, and what freed"
        " the memory where the heap fell.",
    )


def _parts(watch: Watch, live: LiveLedger, moment_s: float | None) -> None:
    figure = ledger(live.rows(), dark=screen.is_dark())
    _align(figure, watch, moment_s, height=_LEDGER_PX)
    at = live.end() if moment_s is None else live.at(round(moment_s * _NS))
    line = "" if at is None else f"At {format_seconds(at.t_ns / _NS)}: {line_of(at)}"
    screen.show_figure(figure, key="ledger", alt=f"Parts of the resident memory over time. {line}")
    if line:
        st.markdown(prose(line))
    beside = memory_beside(live.rows(), dark=screen.is_dark())
    if beside is not None:
        _align(beside, watch, moment_s, height=_BESIDE_PX)
        screen.show_figure(
            beside,
            key="beside",
            alt="Memory of child processes and of the control group over time; none of it is part"
            " of this process's resident memory.",
        )


def _align(figure: go.Figure, watch: Watch, moment_s: float | None, *, height: int) -> None:
    """One axis of time for all charts over it, and the chosen moment on each."""
    figure.update_layout(height=height, margin={"l": _LEFT_PX})
    figure.update_xaxes(range=[0, max(watch.outcome.t_ns / _NS, 0.1)])
    figure.update_yaxes(automargin=False)
    if moment_s is not None:
        figure.add_vline(x=moment_s, line={"color": GREY, "width": 1, "dash": "dot"})


def _settlement(summary: Summary) -> None:
    report = summary.explanation.settlement
    told = sentences(report) if report is not None else []
    figure = settlement(report, dark=screen.is_dark())
    figure.update_layout(height=_SMALL_PX)
    # Over the whole width, for its labels crowd in half of a narrow window.
    screen.show_figure(
        figure,
        key="settlement",
        alt=f"What letting go gave back at the end of the run. {' '.join(told)}",
    )
    st.markdown("\n".join(f"- {prose(text)}" for text in told))
