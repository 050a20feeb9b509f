"""Types: how many objects of which type came, since a unit that the reader chooses."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from diagnostics.analysis.format import format_seconds, sentence_case
from diagnostics.analysis.type_counts import (
    CountMark,
    TypeCourse,
    count_marks,
    course_table,
    type_courses,
)
from diagnostics.analysis.watch import Watch
from diagnostics.figures.object_types import types_over_units
from diagnostics.recording.reader import RecordingReader
from pages.common import keys, screen
from pages.common.prose import prose

_NS = 1e9


def draw(watch: Watch) -> None:
    """The view, from the recording as it is now."""
    kind = watch.unit_kind
    with RecordingReader(watch.path) as reader:
        marks = count_marks(reader)
        if len(marks) < 2:
            _too_few(watch, len(marks))
            return
        marks = marks[_choose_start(watch, marks) :]
        courses = type_courses(reader, marks)
    screen.show_figure(
        types_over_units(courses, marks, unit_kind=kind, dark=screen.is_dark()),
        key="types-lines",
        alt=f"For each type, how many more objects there were at each {kind}.",
    )
    if courses:
        _table(courses)
    st.caption(
        f"Counted at the end of {kind}s, as often as the budget allows, and once at the end of the"
        " run. Counted are objects that the collector tracks: instances and containers, no strings"
        " or numbers. Nothing was collected for it, so garbage that waits for the collector counts"
        " too. A type with fewer than 50 objects is part of *other*. Objects of the"
        " workbench's own classes are left out."
    )


def _table(courses: Sequence[TypeCourse]) -> None:
    st.dataframe(
        course_table(courses),
        hide_index=True,
        height="content",
        column_config={
            "steadiness": st.column_config.ProgressColumn(
                "steadiness",
                format="%.0f %%",
                min_value=0,
                max_value=100,
                width="small",
                help="Of the steps from count to count, so many made it more.",
            )
        },
    )


def _choose_start(watch: Watch, marks: Sequence[CountMark]) -> int:
    """The place of the mark to count from: the first, until the reader chooses another."""
    kind = watch.unit_kind
    starts = range(len(marks) - 1)
    if len(starts) < 2:
        st.caption(
            prose(sentence_case(f"{_when(marks[0], kind)} and at the end: two counts in all."))
        )
        return 0
    chosen: int = st.select_slider(
        f"Since the end of which {prose(kind)}",
        starts,
        format_func=lambda place: _when(marks[place], kind),
        key=keys.of(watch.path, "types-since"),
    )
    return chosen


def _when(mark: CountMark, kind: str) -> str:
    return f"{kind} {mark.unit}" if mark.unit else format_seconds(mark.t_ns / _NS)


def _too_few(watch: Watch, marks: int) -> None:
    if watch.is_running:
        st.info("The objects have not been counted twice yet. They are, at the end of units.")
    elif marks:
        st.info(
            "The objects were counted once only, so nothing can be said of growth. A run with more"
            " units is counted more often."
        )
    else:
        st.info(
            "Objects were not counted in this recording. `record(..., types=True)` does it, and"
            " the Record page always."
        )
