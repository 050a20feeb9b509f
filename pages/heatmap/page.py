"""Heat map: three lenses on the same memory, with collections and unit boundaries."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from diagnostics.analysis.watch import Watch
from diagnostics.figures.heatmap_view import Scale
from pages.common import opened, screen
from pages.heatmap import addresses, births, sites

LENSES: dict[str, str] = {
    "birth": "By birth unit",
    "site": "By code site",
    "address": "By address",
}
DRAW: dict[str, Callable[[Watch, Scale], None]] = {
    "birth": births.draw,
    "site": sites.draw,
    "address": addresses.draw,
}
SCALES: dict[Scale, str] = {"log": "Logarithmic", "linear": "Linear"}

path = opened.required()
st.title("Heat map")

with st.container(horizontal=True, gap="medium"):  # the second goes below where both find no room
    lens = screen.choose_one("Lens", LENSES, key="lens")
    scale = screen.choose_one("Colours", SCALES, key="scale")

screen.refreshed(lambda watch: DRAW[lens](watch, scale), path)
