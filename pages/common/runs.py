"""The runs of this server, shared by all sessions."""

from __future__ import annotations

import threading

import streamlit as st

from diagnostics.launch.registry import Runs


@st.cache_resource
def runs() -> Runs:
    """One registry for the server: a run outlives the session that started it."""
    return Runs(_is_workbench_thread)


def _is_workbench_thread(thread: int) -> bool:
    """Whether a thread is one of the server's, by its name; a loader's own are named otherwise."""
    names = (known.name for known in threading.enumerate() if known.ident == thread)
    return next(names, "").startswith(_SERVER_THREADS)


_SERVER_THREADS = ("MainThread", "ScriptRunner", "AnyIO", "asyncio_", "page87-supervisor")
