"""The settlement as a waterfall."""

from __future__ import annotations

import html
from collections.abc import Mapping

import plotly.graph_objects as go

from diagnostics.analysis.format import format_bytes
from diagnostics.analysis.settlement import (
    SettlementReport,
    gave_back,
    left_over_sentence,
    sentence,
)
from diagnostics.figures.theme import BLUE, BYTES_AXIS, GREEN, GREY, RED, framed, say_empty
from diagnostics.recording.model import SettlementName

_STEP_NAMES: Mapping[SettlementName, str] = {
    "result released": "result<br>released",
    "collection": "garbage<br>collection",
    "malloc_trim": "malloc_trim",
}


def settlement(report: SettlementReport | None, *, dark: bool = False) -> go.Figure:
    """``report`` from ``last_settlement``: RSS from the end of the run down to what stays, and a
    line where it began."""
    figure = framed("What letting go gave back", "", "resident memory (bytes)", dark=dark)
    figure.update_yaxes(**BYTES_AXIS)
    if report is None:
        return say_empty(figure, "This run did not settle.")
    steps = report.steps
    first, last = steps[0].rss_before, steps[-1].rss_after
    # What came or went between two steps (other threads) belongs to the one before.
    ends = [step.rss_before for step in steps[1:]] + [last]
    changes = [end - step.rss_before for step, end in zip(steps, ends, strict=True)]
    figure.add_waterfall(
        x=["end of<br>the run", *(_STEP_NAMES[step.step] for step in steps), "stays"],
        measure=["absolute", *("relative" for _ in steps), "total"],
        y=[first, *changes, 0],
        decreasing={"marker": {"color": GREEN}},
        increasing={"marker": {"color": RED}},
        totals={"marker": {"color": BLUE}},
        connector={"line": {"color": GREY, "width": 1}},
        textposition="outside",
        text=[
            format_bytes(first),
            *(format_bytes(-gave_back(step), signed=True) for step in steps),
            format_bytes(last),
        ],
        hoverinfo="text",
        hovertext=[
            f"{format_bytes(first)} were resident when the run had ended.",
            *(html.escape(sentence(step)) for step in steps),
            left_over_sentence(report),
        ],
        showlegend=False,
    )
    figure.add_hline(
        y=report.start_rss,
        line={"color": GREY, "width": 1, "dash": "dash"},
        annotation_text=f"at the start {format_bytes(report.start_rss)}",
        annotation_position="top",
    )
    return figure
