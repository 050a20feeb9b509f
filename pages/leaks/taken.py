"""Which capture is looked at, and the button that asks for another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import streamlit as st

from diagnostics.analysis.format import counted, format_count, format_seconds
from diagnostics.analysis.watch import Watch
from diagnostics.recording.model import Capture, CaptureReason
from pages.common import captures as asking
from pages.common import keys
from pages.common.prose import prose

_CHOSEN = "leaks-capture"

_NS = 1e9
_WHY: Mapping[CaptureReason, str] = {
    "end of the run": "at the end of the run",
    "retention grew": "when the memory had grown",
    "near the limit": "near the limit",
    "asked for": "asked for",
    "signal": "by signal",
}


def choose(path: Path, captures: Sequence[Capture], best: Capture) -> Capture:
    """The capture that the reader wants to see: the one that shows most, until another is chosen.

    A new one does not push itself in front of what is being read, unless it was asked for here.
    """
    by_id = {capture.id: capture for capture in captures}
    chosen_key, awaited_key = keys.of(path, _CHOSEN), keys.of(path, keys.CAPTURE_AWAITED)
    awaited = st.session_state.get(awaited_key)
    if awaited is not None and len(captures) > awaited:
        del st.session_state[awaited_key]
        st.session_state[chosen_key] = captures[-1].id
    if st.session_state.get(chosen_key) not in by_id:
        st.session_state[chosen_key] = best.id
    if len(captures) == 1:
        return captures[0]
    chosen: int = st.selectbox(
        "Capture",
        list(by_id),
        format_func=lambda key: _title(by_id[key]),
        key=chosen_key,
        label_visibility="collapsed",
    )
    return by_id[chosen]


def button(watch: Watch, taken: int) -> None:
    """ "Capture now", as long as the run goes on and can be asked; ``taken`` captures are there."""
    if not (watch.is_running and asking.can_capture(watch.path)):
        return
    awaited_key = keys.of(watch.path, keys.CAPTURE_AWAITED)
    waiting = st.session_state.get(awaited_key) == taken
    if st.button(
        "Capturing…" if waiting else "Capture now",
        key="leaks-capture-now",
        disabled=waiting,
        help="Looks who holds what at this moment. The run pauses for as long as it takes.",
    ):
        st.session_state[awaited_key] = taken
        asking.capture_now(watch.path)
        st.rerun(scope="fragment")


def about(capture: Capture, unit_kind: str) -> None:
    """When it was taken, and how far it came."""
    at = f"in {unit_kind} {capture.unit}" if capture.unit else "outside any unit"
    text = (
        f"Captured {_WHY[capture.reason]}, at {format_seconds(capture.t_ns / _NS)} {at}:"
        f" {counted(capture.objects, 'object')} looked at in"
        f" {format_seconds(capture.duration_ns / _NS)}."
    )
    st.caption(prose(text))
    if not capture.complete:
        st.warning(prose(f"The capture is not complete: {capture.note or 'it was cut short'}."))
    elif capture.note:
        st.caption(prose(f"Note: {capture.note}."))


def _title(capture: Capture) -> str:
    return (
        f"Capture {format_count(capture.id)}: {_WHY[capture.reason]},"
        f" at {format_seconds(capture.t_ns / _NS)}"
    )
