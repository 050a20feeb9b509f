"""Suspects: a table, for the chosen one its allocation and its holders, and the graph below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import streamlit as st
from streamlit.elements.lib.column_types import ColumnConfig

from diagnostics.analysis.format import counted, format_bytes, span
from diagnostics.analysis.held_graph import HeldGraph, Links, read_graph, steps
from diagnostics.analysis.kinds.holding import size_in_words
from diagnostics.analysis.sites import site_label
from diagnostics.analysis.stacks import Stacks
from diagnostics.analysis.suspect_table import suspect_table
from diagnostics.analysis.suspects import Held, best_capture, suspects_of
from diagnostics.analysis.watch import Watch
from diagnostics.figures.holders import holder_view
from diagnostics.recording.model import Capture, Frame
from diagnostics.recording.reader import RecordingReader
from pages.common import keys, sitemap
from pages.common.prose import code, prose
from pages.components.holders import holders
from pages.leaks import taken

_FRAMES = 8


@dataclass(frozen=True)
class Look:
    """What one capture found. What units imported is no suspect: it comes once."""

    suspects: Sequence[Held]
    imported_bytes: int
    graph: HeldGraph
    stacks: Stacks


def draw(watch: Watch) -> None:
    """The view, from the recording as it is now."""
    with RecordingReader(watch.path) as reader:
        captures = reader.captures()
        best = best_capture(reader)
    if best is None:
        _nothing_captured(watch)
        return
    box, button = st.columns([4, 1], vertical_alignment="bottom")
    with box:
        capture = taken.choose(watch.path, captures, best)
    with button:
        taken.button(watch, len(captures))
    look = _look(watch.path, capture)
    taken.about(capture, watch.unit_kind)
    _say_what_was_imported(look)
    if not look.suspects:
        st.success("Nothing that old units left behind was found.")
        return
    suspect = _choose(watch, look.suspects, capture)
    _explain(watch, look, suspect)


@st.cache_resource(max_entries=8, show_spinner=False)
def _look(path: Path, capture: Capture) -> Look:
    """The rows of one capture; they do not change once it is there."""
    with RecordingReader(path) as reader:
        stacks = Stacks(reader.sites())
        found = suspects_of(reader, capture, stacks)
        return Look(
            suspects=[held for held in found if not held.imported],
            imported_bytes=sum(held.bytes for held in found if held.imported),
            graph=read_graph(reader, capture),
            stacks=stacks,
        )


def _say_what_was_imported(look: Look) -> None:
    if look.imported_bytes:
        st.caption(
            f"Left out: {format_bytes(look.imported_bytes)} of code and classes that came with"
            " imported modules. They come once, and stay as long as the modules do."
        )


def _choose(watch: Watch, suspects: Sequence[Held], capture: Capture) -> Held:
    """The table. Its rows are those of one capture and stay where they are."""
    event = st.dataframe(
        suspect_table(suspects, watch.unit_kind),
        hide_index=True,
        key=keys.of(watch.path, f"suspects-{capture.id}"),
        on_select="rerun",
        selection_mode="single-row-required",
        alt="Suspects: groups of live blocks that old units left behind, largest first.",
        column_config={
            "share": _percent("share", "Of the bytes of all suspects."),
            "steadiness": _percent(
                "steadiness",
                f"Of the {watch.unit_kind}s between the first and the last, so many left some.",
            ),
        },
    )
    rows = event["selection"]["rows"]
    return suspects[rows[0] if rows else 0]


def _percent(title: str, meaning: str) -> ColumnConfig:
    return st.column_config.ProgressColumn(
        title, format="%.0f %%", min_value=0, max_value=100, width="small", help=meaning
    )


def _explain(watch: Watch, look: Look, suspect: Held) -> None:
    born = span(watch.unit_kind, suspect.first_unit, suspect.last_unit)
    st.markdown(f"#### {prose(f'{size_in_words(suspect)}, born in {born}')}")
    left, right = st.columns(2, gap="large")
    with left:
        _stack(watch.path, suspect)
    with right:
        chain = _choose_chain(watch.path, look.graph, suspect)
        if chain is None:
            _no_chain()
        else:
            _ladder(look.graph, chain)
    if chain is not None:
        holders(
            holder_view(look.graph, chain, look.stacks, unit_kind=watch.unit_kind),
            key=keys.of(watch.path, "holders"),
        )


def _stack(path: Path, suspect: Held) -> None:
    """The allocation stack; the line of people's own code that they can change stands out."""
    heading = "**Allocated in**, outermost call first"
    if not suspect.stack:
        st.markdown(heading)
        st.caption(
            "Without the sampled engine a suspect is a type that became more, and nobody knows"
            " where its objects were allocated."
        )
        return
    lines = [heading, ""]
    mine = suspect.own_frame
    first = max(0, len(suspect.stack) - _FRAMES)
    outermost = first
    if mine is not None and mine not in suspect.stack[first:]:
        # Deep in a library: their own line still stands there, above what is folded below it.
        outermost = len(suspect.stack) - 1 - suspect.stack[::-1].index(mine)
    if outermost:
        lines.append(f"- *{counted(outermost, 'call')} further out*")
    if outermost < first:
        lines.append(_call(path, suspect.stack[outermost], mine))
        if between := first - outermost - 1:
            lines.append(f"- *{counted(between, 'call')} between*")
    lines += [_call(path, frame, mine) for frame in suspect.stack[first:]]
    st.markdown("\n".join(lines))


def _call(path: Path, frame: Frame, mine: Frame | None) -> str:
    place = code(site_label(frame.file, frame.line, frame.function))
    if frame != mine:
        return f"- {place}"
    with RecordingReader(path) as reader:
        text = reader.source(frame.file).get(frame.line, "")
    return f"- **{place}**" + (f"  \n  {code(text)}" if text else "")


def _choose_chain(path: Path, graph: HeldGraph, suspect: Held) -> Links | None:
    """The chain to show; a choice where there are several."""
    chains = graph.chains.get(suspect.rank, ())
    if not chains:
        return None
    if len(chains) == 1:
        return chains[0]
    place: int = st.segmented_control(
        "Chain",
        range(len(chains)),
        format_func=lambda number: f"Way {number + 1} ({chains[number][0].count} found)",
        default=0,
        required=True,
        key=keys.of(path, f"chain-{graph.capture.id}-{suspect.rank}"),
        label_visibility="collapsed",
    )
    return chains[place]


def _ladder(graph: HeldGraph, chain: Links) -> None:
    """The chain in words, from the root down; the references to cut are marked."""
    lines = ["**Held by**, from the root down", ""]
    for step in steps(graph, chain):
        how = f"{code(step.how)} → " if step.how else ""
        note = f" · {prose(step.note)}" if step.note else ""
        wrong = " :red-badge[cut here]" if step.likely_wrong else ""
        lines.append(f"1. {how}**{prose(step.what)}**{note}{wrong}")
    st.markdown("\n".join(lines))
    if any(link.likely_wrong for link in chain):
        st.caption(
            "What stands above the first *cut here* has a reason to live, the object has none any"
            " more: any one of the marked references, cut, lets it go, and the first lets most go."
        )
    if chain[0].count > 1:
        st.caption(f"{chain[0].count} objects of different units were found held in this way.")


def _no_chain() -> None:
    st.markdown("**Held by**")
    st.caption(
        "No holder was found: the objects may have gone before the capture came to them, or"
        " the time for the search was up. The note above says which."
    )


def _nothing_captured(watch: Watch) -> None:
    """Why there is nothing to see, and what to do next."""
    taken.button(watch, 0)
    if watch.is_running:
        st.info(
            "Nobody has looked yet who holds what. A capture is taken when the memory has grown,"
            " and at the end of the run."
        )
        return
    st.info(
        "This recording holds no capture of who holds what. One is taken when the memory has grown,"
        " and at the end of a run while its result is still held. Record it again, with the sampled"
        " engine, which knows where each object was allocated."
    )
    st.page_link(sitemap.page(sitemap.RECORD), label="Record a run")
