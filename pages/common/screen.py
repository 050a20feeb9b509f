"""Small pieces that every page shows in the same way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import plotly.graph_objects as go
import streamlit as st

from diagnostics.analysis.watch import Watch
from diagnostics.errors import Page87Error
from pages.common import keys
from pages.common.prose import prose

REFRESH_S = 1.0

Choice = TypeVar("Choice", bound=str)


def is_dark() -> bool:
    """Whether the browser shows the dark theme."""
    return bool(st.context.theme.type == "dark")


def choose_one(
    label: str, names: Mapping[Choice, str], *, key: str, labelled: bool = True
) -> Choice:
    """A switch between a few things: ``names`` are the words on it. The first stands at first."""
    chosen: Choice = st.segmented_control(
        label,
        list(names),
        format_func=names.__getitem__,
        default=next(iter(names)),
        required=True,
        key=key,
        label_visibility="visible" if labelled else "collapsed",
    )
    return chosen


def show_figure(figure: go.Figure, *, key: str, alt: str) -> None:
    """A chart with its text alternative; the figure brings its own colours for both themes."""
    st.plotly_chart(figure, theme=None, key=key, alt=alt, config={"displaylogo": False})


def show_error(error: Page87Error) -> None:
    """What happened and what to do next; never a traceback."""
    st.error(f"{prose(error.message)}\n\n{prose(error.next_step)}".strip())


def watch(path: Path) -> Watch:
    """The accumulators of the open recording, brought up to date.

    A recording that cannot be read ends the page with the reason.
    """
    kept = st.session_state.get(keys.WATCH)
    try:
        if isinstance(kept, Watch) and kept.path == path:
            if kept.is_running:
                kept.update()
            return kept
        fresh = Watch(path)
    except Page87Error as error:
        show_error(error)
        st.stop()
    st.session_state[keys.WATCH] = fresh
    return fresh


def refreshed(draw: Callable[[Watch], None], path: Path) -> None:
    """Draw now, and again each second while the recording grows."""
    was_running = watch(path).is_running

    @st.fragment(run_every=REFRESH_S if was_running else None)
    def refreshing() -> None:
        now = watch(path)
        draw(now)
        if was_running and not now.is_running:
            st.rerun()  # the whole page once more, without the timer

    refreshing()
