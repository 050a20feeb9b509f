"""The Python face of the holder graph: a view goes out once, the browser does the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamlit as st

from diagnostics.figures.holders import HolderView

_HERE = Path(__file__).parent
_SCRIPTS = ("layout.js", "holders.js")  # one module: a component cannot import from its own files

_mount = st.components.v2.component(
    "page87_holders",
    css=(_HERE / "holders.css").read_text(encoding="utf-8"),
    js="\n".join((_HERE / name).read_text(encoding="utf-8") for name in _SCRIPTS),
)


def holders(view: HolderView, *, key: str) -> None:
    """Draw the graph of ``view``. What the reader has opened stays open while the page refreshes,
    for as long as ``view.key`` is the same."""
    _mount(key=key, data=encode(view))


def encode(view: HolderView) -> dict[str, Any]:
    """The view as holders.js reads it: JSON, with texts that are ready to be shown.

    A node is [id, lead, title, note, is a root, facts, stack], an edge [holder, held, label, is
    likely wrong].
    """
    return {
        "key": view.key,
        "title": view.title,
        "words": view.words,
        "chain": list(view.chain),
        "nodes": [
            [
                node.id,
                node.lead,
                node.title,
                node.note,
                node.root,
                list(map(list, node.facts)),
                node.stack,
            ]
            for node in view.nodes
        ],
        "edges": [[edge.holder, edge.held, edge.label, edge.likely_wrong] for edge in view.edges],
        "stacks": {str(site): list(lines) for site, lines in view.stacks.items()},
    }
