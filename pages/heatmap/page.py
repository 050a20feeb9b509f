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
    lens = st.segmented_control(
        "Lens",
        list(LENSES),
        format_func=LENSES.__getitem__,
        default="birth",
        required=True,
        key="lens",
    )
    scale: Scale = st.segmented_control(
        "Colours",
        list(SCALES),
        format_func=SCALES.__getitem__,
        default="log",
        required=True,
        key="scale",
    )

screen.refreshed(lambda watch: DRAW[lens](watch, scale), path)
