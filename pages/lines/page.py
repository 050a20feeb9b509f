"""Lines: the line profile beside the source."""

from __future__ import annotations

from textwrap import dedent

import pandas as pd
import streamlit as st
from pandas.io.formats.style import Styler

from diagnostics.analysis.lines import line_table
from diagnostics.analysis.sites import short_path
from diagnostics.analysis.watch import Watch
from diagnostics.recording.reader import RecordingReader
from pages.common import opened, screen
from pages.common.prose import code, code_line, prose

MB = 1_000_000
# Else a browser breaks lines of code at their spaces, and the table cuts them off at half a screen.
UNBROKEN = """<style>
[class*=st-key-lines-] td * { max-width: none !important; white-space: pre !important }
</style>"""

path = opened.required()
st.title("Lines")


def draw(_: Watch) -> None:
    """One table a function, in the order of the source."""
    with RecordingReader(path) as reader:
        table = line_table(reader.line_profile())
    if table.empty:
        st.info(
            "This run has no line profile. Name the functions that you suspect: in the field"
            " *Functions for the line profile* on the Record page, as `--lines script.py:function`"
            " or `--lines module:function` on the command line, or as `record(lines=[...])`."
        )
        return
    st.write(
        "**Added** is how much the process's memory (RSS) grew while the line ran, summed over all"
        " its runs; **after** is what the process held when the line had run last. A line that"
        " never ran has no figures. This profile makes the functions it watches many times slower."
    )
    st.html(UNBROKEN)
    functions = table.groupby(["function", "file"], sort=False)
    for number, ((function, file), rows) in enumerate(functions):
        st.subheader(code(str(function)))
        st.caption(prose(short_path(str(file))))
        with st.container(key=f"lines-{number}"):
            st.table(
                _shown(rows),
                hide_index=True,
                border="horizontal",
                alt=f"Memory line by line in {function}.",
            )


def _shown(rows: pd.DataFrame) -> Styler:
    """The lines of one function, with nothing in the place of figures that do not exist."""
    source = dedent("\n".join(rows["source"])).split("\n")
    table = pd.DataFrame(
        {
            "line": rows["line"],
            "added (MB)": rows["increment_bytes"] / MB,
            "after (MB)": rows["rss_bytes"] / MB,
            "runs": rows["hits"],
            "source": [code_line(line) for line in source],
        }
    )
    return table.style.format(
        {"added (MB)": "{:+.2f}", "after (MB)": "{:.1f}", "runs": "{:,d}"}, na_rep=""
    )


screen.refreshed(draw, path)
