"""Allocation stacks of what is alive, as an icicle and as a table."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import streamlit as st

from diagnostics.analysis.alive import Alive, alive_at, stack_table, stack_tree, top_stacks
from diagnostics.analysis.sites import Grouping
from diagnostics.analysis.stacks import shown_sites
from diagnostics.figures.icicle import icicle
from diagnostics.recording.reader import RecordingReader
from pages.common import screen

GROUPS: tuple[Grouping, ...] = get_args(Grouping)


def ask_for_group(key: str) -> Grouping:
    """By what the rows or rectangles are put together."""
    return st.segmented_control("Group by", GROUPS, default="line", required=True, key=key)


def show_stacks(
    path: Path, t_ns: int, units: range | None, group: Grouping, *, label: str, key: str
) -> Alive:
    """Draw what of ``units`` (None: of everything) was alive at ``t_ns``, and give it back."""
    with RecordingReader(path) as reader:
        alive = alive_at(reader, t_ns, units)
        sites = shown_sites(reader.sites())
    screen.show_figure(
        icicle(stack_tree(alive, sites, group, label=label), gap=alive.gap, dark=screen.is_dark()),
        key=key,
        alt="Allocation stacks of what is alive: callers above what they call, width for bytes.",
    )
    if alive.bytes:
        st.dataframe(stack_table(top_stacks(alive, sites, group)), hide_index=True, key=f"{key}-t")
    return alive
