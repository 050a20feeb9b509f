"""Leaks: what is still alive, which line allocated it, who holds it; and which types grow."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from diagnostics.analysis.watch import Watch
from pages.common import opened, screen
from pages.leaks import suspects, types

VIEWS: dict[str, str] = {"suspects": "Suspects and holders", "types": "Types since a unit"}
DRAW: dict[str, Callable[[Watch], None]] = {"suspects": suspects.draw, "types": types.draw}

path = opened.required()
st.title("Leaks")
view = screen.choose_one("View", VIEWS, key="leaks-view", labelled=False)
screen.refreshed(DRAW[view], path)
