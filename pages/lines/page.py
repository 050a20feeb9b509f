"""Lines: the line profile beside the source."""

from __future__ import annotations

import streamlit as st

from diagnostics.analysis.lines import line_table
from diagnostics.analysis.sites import short_path
from diagnostics.analysis.watch import Watch
from diagnostics.recording.reader import RecordingReader
from pages.common import opened, screen

MB = 1_000_000

path = opened.required()
st.title("Lines")


def draw(_: Watch) -> None:
    """One table a function, in the order of the source; a click on a column's head sorts."""
    with RecordingReader(path) as reader:
        table = line_table(reader.line_profile())
    if table.empty:
        st.info(
            "This run has no line profile. Name the functions that you suspect: in the field"
            " *Functions for the line profile* on the Record page, as `--lines module:function`"
            " on the command line, or as `record(lines=[...])`."
        )
        return
    st.write(
        "**Added** is how much the process's memory (RSS) grew while the line ran, summed over all"
        " its runs; **after** is what the process held when the line had run last. A line that"
        " never ran has no figures. This profile makes the functions it watches many times slower."
    )
    for (function, file), rows in table.groupby(["function", "file"], sort=False):
        st.subheader(str(function))
        st.caption(short_path(str(file)))
        shown = rows.assign(added_mb=rows["increment_bytes"] / MB, after_mb=rows["rss_bytes"] / MB)
        st.dataframe(
            shown,
            hide_index=True,
            height="content",
            column_order=["line", "added_mb", "after_mb", "hits", "source"],
            column_config={
                "line": st.column_config.NumberColumn("line", format="%d"),
                "added_mb": st.column_config.NumberColumn("added (MB)", format="%+.2f"),
                "after_mb": st.column_config.NumberColumn("after (MB)", format="%.1f"),
                "hits": st.column_config.NumberColumn("runs", format="%d"),
                "source": st.column_config.TextColumn("source", width="large"),
            },
            key=f"lines-{function}",
        )


screen.refreshed(draw, path)
