"""The drops of the heap in the recording on screen, worked out no more often than it is worth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from diagnostics.analysis.drops import Drop, heap_drops
from diagnostics.analysis.watch import Watch
from diagnostics.recording.reader import RecordingReader

_EVERY_NS = 5_000_000_000
"""Telling what freed a drop reads the heap's whole course, beside a loader that may run here."""


def drops_of(watch: Watch) -> Sequence[Drop]:
    """Every drop with what freed it; of a run that goes on they are up to five seconds old."""
    t_ns = watch.outcome.t_ns
    return _read(watch.path, watch.outcome.state, t_ns // _EVERY_NS if watch.is_running else t_ns)


@st.cache_resource(max_entries=8, show_spinner=False)
def _read(path: Path, state: str, moment: int) -> Sequence[Drop]:
    """``state`` and ``moment`` tell one stage of a recording from the next."""
    with RecordingReader(path) as reader:
        return heap_drops(reader)
