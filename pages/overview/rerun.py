"""The measurement that would decide, offered as a button where the Record page can make it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

import streamlit as st

from diagnostics.analysis.kinds import Rerun
from diagnostics.analysis.watch import Watch
from diagnostics.launch.documents import sample_documents
from diagnostics.loaders.registry import all_loaders
from diagnostics.probes.heap import default_engine
from diagnostics.recording.reader import RecordingReader
from pages.common import keys, sitemap
from pages.common.prose import prose

_CHOICES = {"engine": "engine", "where": "where"}
"""Options of a rerun that the form has a field for, and that field's key."""
_ALWAYS = frozenset({"settle", "capture"})
"""Options that every run of the Record page has."""


def offer(watch: Watch, rerun: Rerun) -> None:
    """Say which measurement would decide, with a button that leads to it."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**What would decide:** {prose(rerun.why)}", width="stretch")
        if can_make(rerun.options) and st.button("Set up that run", key="rerun", type="primary"):
            preset(watch.path, rerun.options)
            st.switch_page(sitemap.page(sitemap.RECORD))
    problem = _why_unreadable(_meta(watch.path)) if can_make(rerun.options) else None
    if problem:
        st.caption(
            f"The command line that this recording keeps cannot be read ({prose(problem)}). The"
            " form gets the measurement; choose the document there."
        )


def can_make(options: Mapping[str, bool | str]) -> bool:
    """Whether the Record page, on this machine, can make a run with these options."""
    _, why_not_sampled = default_engine()
    if options.get("engine") == "sampled" and why_not_sampled:
        return False
    return options.keys() <= _CHOICES.keys() | _ALWAYS


def preset(path: Path, options: Mapping[str, bool | str]) -> None:
    """Fill in the form of the Record page: what ran before, with these options."""
    st.session_state.pop(keys.STARTED, None)  # else that page shows the run before
    fields = {_CHOICES[name]: value for name, value in options.items() if name in _CHOICES}
    st.session_state.update(fields | _document(_meta(path)))


def _meta(path: Path) -> Mapping[str, object]:
    with RecordingReader(path) as reader:
        return reader.meta()


def _why_unreadable(meta: Mapping[str, object]) -> str | None:
    """Why the command line that recorded a document cannot be split into words; None if it can."""
    document, command = meta.get("document"), meta.get("command")
    if isinstance(document, dict) and isinstance(command, str):
        try:
            shlex.split(command)
        except ValueError as error:  # an unclosed quote: whoever records may name any command
            return str(error)
    return None


def _document(meta: Mapping[str, object]) -> dict[str, str]:
    """The fields for the document that was recorded, as far as it is still there."""
    document = meta.get("document")
    command = meta.get("command")
    if not isinstance(document, dict) or not isinstance(command, str) or _why_unreadable(meta):
        return {}
    words = shlex.split(command)
    subject = Path(words[-1]) if words else Path()
    if not subject.is_file():
        return {}
    loader = document.get("loader")
    known = {f"loader-for-{subject.suffix.lower()}": loader} if loader in all_loaders() else {}
    if sample_documents().get(subject.name) == subject:
        return {"document-source": "A sample", "sample": subject.name, **known}
    return {"document-source": "A path on this machine", "path": str(subject), **known}
