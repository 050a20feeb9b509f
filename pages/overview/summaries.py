"""The summary of the recording on screen, drawn no more often than it is worth."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from diagnostics.analysis.summary import Summary, summarise
from diagnostics.analysis.watch import Watch
from diagnostics.recording.reader import RecordingReader

_EVERY_NS = 5_000_000_000
"""A verdict reads the whole recording, beside a loader that may run in this very process."""


def summary_of(watch: Watch) -> Summary:
    """The summary, verdict included; of a run that goes on it is up to five seconds old."""
    t_ns = watch.outcome.t_ns
    moment = t_ns // _EVERY_NS if watch.is_running else t_ns
    return _drawn(watch.path, watch.outcome.state, moment)


@st.cache_resource(max_entries=8, show_spinner=False)
def _drawn(path: Path, state: str, moment: int) -> Summary:
    """``state`` and ``moment`` tell one stage of a recording from the next."""
    with RecordingReader(path) as reader:
        return summarise(reader)
