"""The measurement that would decide, offered as a button where the Record page can make it."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from diagnostics.analysis.kinds import Rerun
from diagnostics.analysis.watch import Watch
from diagnostics.launch.again import Again, again
from diagnostics.launch.app import AppSettings
from diagnostics.launch.documents import sample_documents
from diagnostics.probes.heap import default_engine
from diagnostics.recording.reader import RecordingReader
from pages.common import keys, sitemap
from pages.common.prose import prose
from pages.record.form import PATH, SAMPLE, SCRIPT

_CHOICES = {"engine": "engine", "where": "where"}
"""Options of a rerun that the form has a field for, and that field's key."""
_ALWAYS = frozenset({"settle", "capture"})
"""Options that every run of the Record page has."""


def offer(watch: Watch, rerun: Rerun) -> None:
    """Say which measurement would decide, with a button that leads to it.

    There is no button where the form would make another run than the one that was recorded: then
    it is said how to make it.
    """
    made = can_make(rerun.options)
    with RecordingReader(watch.path) as reader:
        run = again(reader.meta(), rerun.options, AppSettings.from_environment())
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**What would decide:** {prose(rerun.why)}", width="stretch")
        if made and not run.why_not and st.button("Set up that run", key="rerun", type="primary"):
            preset(run, rerun.options)
            st.switch_page(sitemap.page(sitemap.RECORD))
    if made and run.why_not:
        st.caption(prose(run.why_not))


def can_make(options: Mapping[str, bool | str]) -> bool:
    """Whether the Record page, on this machine, can measure a run with these options; without any,
    the measurement is a call in people's own code."""
    _, why_not_sampled = default_engine()
    if options.get("engine") == "sampled" and why_not_sampled:
        return False
    return bool(options) and options.keys() <= _CHOICES.keys() | _ALWAYS


def preset(run: Again, options: Mapping[str, bool | str]) -> None:
    """Fill in the form of the Record page: what ran before, with these options."""
    st.session_state.pop(keys.STARTED, None)  # else that page shows the run before
    fields = {_CHOICES[name]: value for name, value in options.items() if name in _CHOICES}
    st.session_state.update(fields | _subject(run))


def _subject(run: Again) -> dict[str, object]:
    """The fields that say what to run."""
    if run.document is None:
        return {"document-source": SCRIPT, "script": run.script}
    field = f"loader-for-{run.document.suffix.lower()}"
    loader = {field: run.loader} if run.loader else {}
    if sample_documents().get(run.document.name) == run.document.absolute():
        return {"document-source": SAMPLE, "sample": run.document.name, **loader}
    return {"document-source": PATH, "path": str(run.document), **loader}
