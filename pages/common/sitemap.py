"""The pages, in the order of the sidebar.

Each page is a folder: Streamlit takes ``pages/*.py`` beside the main script for pages of its older
multipage mode when the first request after a start is a deep link.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

if TYPE_CHECKING:
    from streamlit.navigation.page import StreamlitPage

PAGES = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Entry:
    """One page: its folder (and address), its name on the screen, and what it is for."""

    folder: str
    title: str
    help: str

    @property
    def script(self) -> Path:
        return PAGES / self.folder / "page.py"


RECORD = Entry("record", "Record", "Run a loader and watch its memory grow, page by page.")
OVERVIEW = Entry("overview", "Overview", "How the run ended, and the numbers that matter.")
LEAKS = Entry("leaks", "Leaks", "What is still alive, which line allocated it, and who holds it.")
HEATMAP = Entry("heatmap", "Heat map", "Allocation sites over time, with collections.")
COLLECTOR = Entry("collector", "Garbage collector", "Pauses, and what they gave back.")
LINES = Entry("lines", "Lines", "Memory line by line, for the functions that were named.")
RECORDINGS = Entry("recordings", "Recordings", "Every run: open, rename, download, delete.")

GROUPS: dict[str, tuple[Entry, ...]] = {
    "Run": (RECORD,),
    "Recording": (OVERVIEW, LEAKS, HEATMAP, COLLECTOR, LINES),
    "Library": (RECORDINGS,),
}


def page(entry: Entry) -> StreamlitPage:
    """The page for ``st.switch_page`` and ``st.page_link``."""
    return st.Page(
        entry.script,
        title=entry.title,
        url_path=entry.folder,
        default=entry is RECORD,
        help=entry.help,
    )


def navigation() -> StreamlitPage:
    """Draw the sidebar's navigation; returns the page that the address names."""
    return st.navigation(
        {group: [page(entry) for entry in entries] for group, entries in GROUPS.items()}
    )
