"""Which recording is open: it stands in the address, so that a link opens the same view."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from diagnostics.launch.app import AppSettings
from diagnostics.recording.places import SUFFIX, recordings_folder
from pages.common import keys, sitemap
from pages.common.prose import code

PARAMETER = "recording"


def name() -> str | None:
    """The name of the open recording: from the address, else from this session."""
    named = st.query_params.get(PARAMETER)
    if named:
        st.session_state[keys.OPENED] = named
    kept: str | None = st.session_state.get(keys.OPENED)
    return kept


def path_of(named: str) -> Path | None:
    """The file behind a name; None if there is none.

    A name is a file in the folder of recordings, or one that the command line named when the app
    was started. It is never a path, so that an address cannot make the app open any file.
    """
    for given in AppSettings.from_environment().recordings:
        if given.name == named:
            return given
    if not named.endswith(SUFFIX) or Path(named).name != named:
        return None
    path = recordings_folder() / named
    return path if path.is_file() else None


def hidden_by(path: Path) -> Path | None:
    """The file that stands behind the name of ``path`` instead of it; None if it does itself."""
    found = path_of(path.name)
    return None if found is None or found.resolve() == path.resolve() else found


def open_recording(path: Path) -> None:
    """Make ``path`` the open recording of this session."""
    st.session_state[keys.OPENED] = path.name
    st.query_params[PARAMETER] = path.name


def query(path: Path) -> dict[str, str]:
    """The address parameters under which ``path`` is the open recording."""
    return {PARAMETER: path.name}


def close_recording() -> None:
    """No recording is open any more."""
    st.session_state.pop(keys.OPENED, None)
    st.query_params.pop(PARAMETER, None)


def keep_in_url() -> None:
    """Put the name back into the address: a click in the sidebar drops it."""
    named = name()
    if named and st.query_params.get(PARAMETER) != named:
        st.query_params[PARAMETER] = named


def show_in_sidebar() -> None:
    """Say which recording the pages speak of."""
    named = name()
    if named:
        st.sidebar.caption(f"Open: {code(named)}")
    else:
        st.sidebar.caption("No recording is open.")


def required() -> Path:
    """The file of the open recording; without one the page ends here with what to do next."""
    named = name()
    if named is None:
        st.info("No recording is open. Record a run, or open one that you have.")
        _ways_out()
        st.stop()
    path = path_of(named)
    if path is None:
        st.warning(
            f"There is no recording {code(named)} here. It may have been renamed or deleted."
        )
        _ways_out()
        st.stop()
    return path


def _ways_out() -> None:
    st.page_link(sitemap.page(sitemap.RECORD), label="Record a run")
    st.page_link(sitemap.page(sitemap.RECORDINGS), label="Open a recording")
