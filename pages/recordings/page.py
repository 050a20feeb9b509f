"""Recordings: every run, to open, rename, download, upload or delete."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from diagnostics.analysis.library import LibraryEntry, list_recordings
from diagnostics.analysis.tables import library_table
from diagnostics.errors import Page87Error
from diagnostics.recording import shelf
from diagnostics.recording.places import recordings_folder
from diagnostics.recording.texts import storable
from pages.common import opened, screen, sitemap
from pages.common.columns import fitted
from pages.common.prose import code, prose

_MAX_UPLOAD_MB = 200

st.title("Recordings")


@st.dialog("Delete this recording?")
def confirm_deletion(entry: LibraryEntry) -> None:
    """Ask before a file goes for good."""
    st.write(f"{code(entry.path.name)} will be deleted for good.")
    yes, no = st.columns(2)
    if yes.button("Delete", type="primary", width="stretch"):
        try:
            shelf.delete(entry.path)
        except Page87Error as error:
            screen.show_error(error)
            return
        if opened.name() == entry.path.name:
            opened.close_recording()
        st.rerun()
    if no.button("Keep it", width="stretch"):
        st.rerun()


@st.dialog("Rename")
def ask_for_name(entry: LibraryEntry) -> None:
    """Give the file another name."""
    name = st.text_input("New name", value=entry.path.stem)
    if st.button("Rename", type="primary"):
        try:
            renamed = shelf.rename(entry.path, name)
        except Page87Error as error:
            screen.show_error(error)
            return
        if opened.name() == entry.path.name:
            opened.open_recording(renamed)
        st.rerun()


def say_what_hides(path: Path) -> bool:
    """Say where the app was started with another file of that name, which would open instead."""
    other = opened.hidden_by(path)
    if other is not None:
        st.warning(
            f"The app was started with another file of this name, {code(str(other))}."
            " Rename this one to open it."
        )
    return other is not None


def actions(entry: LibraryEntry) -> None:
    """What can be done with the chosen recording."""
    st.subheader(code(entry.path.name))
    if storable(entry.path.name) != entry.path.name:
        st.warning(
            "The name of this file is no UTF-8, which an address in the browser has to be."
            " Rename it in its folder to open it."
        )
        return
    if entry.error:
        st.warning(prose(entry.error))
    else:
        st.caption(prose(entry.reason))
    hidden = say_what_hides(entry.path)
    cells = st.columns(5)
    if cells[0].button(
        "Open", type="primary", width="stretch", disabled=bool(entry.error) or hidden
    ):
        opened.open_recording(entry.path)
        st.switch_page(sitemap.page(sitemap.OVERVIEW), query_params=opened.query(entry.path))
    cells[1].download_button(
        "Download",
        lambda: shelf.whole_file(entry.path),
        file_name=entry.path.name,
        mime="application/vnd.sqlite3",
        width="stretch",
        disabled=bool(entry.error),
        on_click="ignore",
    )
    if cells[2].button("Rename", width="stretch"):
        ask_for_name(entry)
    if cells[3].button("Delete", width="stretch"):
        confirm_deletion(entry)


entries = list_recordings(recordings_folder())
if entries:
    table = library_table(entries)
    chosen = st.dataframe(
        table,
        hide_index=True,
        column_config=fitted(table),
        on_select="rerun",
        selection_mode="single-row",
        key="library",
        alt="The recordings in your folder, the newest first.",
    )
    picked = chosen["selection"]["rows"]
    if picked and picked[0] < len(entries):
        actions(entries[picked[0]])
    else:
        st.caption("Choose a row to open, download, rename or delete it.")
else:
    st.info("There are no recordings yet.")
    st.page_link(sitemap.page(sitemap.RECORD), label="Record a run")

with st.expander("Add a recording that somebody sent you", expanded=not entries):
    sent = st.file_uploader(
        "A .p87 file", type=["p87"], max_upload_size=_MAX_UPLOAD_MB, key="upload-recording"
    )
    if sent is not None and st.button("Add it", type="primary"):
        try:
            added = shelf.take_in(sent, sent.name)
        except Page87Error as error:
            screen.show_error(error)
        else:
            if not say_what_hides(added):
                opened.open_recording(added)
                st.switch_page(sitemap.page(sitemap.OVERVIEW), query_params=opened.query(added))

st.caption(f"Folder: {recordings_folder()}")
