"""Record: choose a loader and a document, press Start, watch the memory grow."""

from __future__ import annotations

import streamlit as st

from pages.common import keys, opened
from pages.record.form import ask
from pages.record.live import show

started = st.session_state.get(keys.STARTED)
path = opened.path_of(started) if started else None

st.title("Record")
if path is None:
    ask()
else:
    show(path)
