"""What is alive, by allocation stack: callers on top, what they call below, width for bytes."""

from __future__ import annotations

import html
from collections.abc import Sequence
from hashlib import blake2b

import plotly.graph_objects as go

from diagnostics.analysis.alive import StackNode
from diagnostics.analysis.format import counted, format_bytes, format_share
from diagnostics.analysis.sites import OTHER, Place, library_of, short_path
from diagnostics.figures.theme import FAINT, framed, say_empty

# In pairs for light and dark, calm enough to read a label on: a library keeps its colour.
_LIGHT = (
    "rgb(246,214,148)",
    "rgb(247,192,160)",
    "rgb(238,190,205)",
    "rgb(208,197,232)",
    "rgb(183,208,238)",
    "rgb(180,220,214)",
    "rgb(201,222,172)",
    "rgb(224,215,200)",
)
_DARK = (
    "rgb(122,88,20)",
    "rgb(131,70,40)",
    "rgb(124,56,84)",
    "rgb(88,70,130)",
    "rgb(44,86,138)",
    "rgb(28,102,98)",
    "rgb(72,100,36)",
    "rgb(94,84,70)",
)
_ROW_PX = 24
_FRAME_PX = 70
_MOST_PX = 900
_LETTERS = 170  # what a rectangle of the whole width has room for


def icicle(
    nodes: Sequence[StackNode],
    *,
    title: str = "Allocation stacks of what is alive",
    gap: str = "",
    dark: bool = False,
) -> go.Figure:
    """``nodes`` from ``stack_tree``; ``gap`` says why there are none. The figure is as high as the
    stacks are deep, up to a limit; a click on a rectangle zooms into it."""
    figure = framed(title, "", "", dark=dark)
    if not nodes:
        return say_empty(figure, gap or "Nothing is alive here.")
    whole = nodes[0].bytes
    figure.add_icicle(
        ids=[node.id for node in nodes],
        parents=[node.parent for node in nodes],
        labels=[html.escape(_name(node.place)) for node in nodes],
        values=[node.bytes for node in nodes],
        branchvalues="total",
        sort=False,  # they come sorted, and "other" stays last
        tiling={"orientation": "v", "pad": 1},
        pathbar={"visible": True, "thickness": _ROW_PX},
        marker={"colors": [_colour(node.place, dark=dark) for node in nodes]},
        textposition="middle left",
        textinfo="text",
        text=[html.escape(_text(node, whole)) for node in nodes],
        textfont={"color": "rgb(240,240,240)" if dark else "rgb(30,30,30)"},
        hoverinfo="text",
        hovertext=[_hover(node, whole) for node in nodes],
        root_color="rgba(0,0,0,0)",
    )
    figure.update_layout(
        height=min(_MOST_PX, _FRAME_PX + _ROW_PX * (_depth(nodes) + 1)),
        uniformtext={"minsize": 10, "mode": "hide"},  # no letters too small to read
    )
    return figure


def _name(place: Place) -> str:
    """Short enough for a rectangle: "objects page.py:412", or the label of a wider group."""
    if place.line is None:
        return place.label
    where = f"{short_path(place.file).rsplit('/', 1)[-1]}:{place.line}"
    return f"{place.function} {where}" if place.function else where


def _text(node: StackNode, whole: int) -> str:
    """Name and size, or as much of the name as the rectangle has room for."""
    name = _name(node.place)
    text = f"{name}, {format_bytes(node.bytes)}"
    room = int(_LETTERS * node.bytes / whole)
    if len(text) <= room:
        return text
    return name if len(name) <= room else f"{name[: max(1, room - 1)]}…"


def _hover(node: StackNode, whole: int) -> str:
    share = format_share(node.bytes / whole)
    lines = [
        node.place.label,
        f"{format_bytes(node.bytes)}, {share} of what is shown",
        counted(node.blocks, "block"),
    ]
    if 0 < node.own_bytes < node.bytes:
        lines.append(f"{format_bytes(node.own_bytes)} allocated right here")
    if node.place.detail not in ("", node.place.label):
        lines.append(node.place.detail)
    return "<br>".join(_wrapped(line) for line in lines)


def _wrapped(text: str, most: int = 90) -> str:
    """A hover text in lines that fit on a screen."""
    pieces = [text[at : at + most] for at in range(0, len(text), most)]
    return "<br>".join(map(html.escape, pieces))


def _colour(place: Place, *, dark: bool) -> str:
    if not place.key or place.key == OTHER.key:
        return FAINT
    colours = _DARK if dark else _LIGHT
    library = library_of(place.file) if place.file else place.key
    return colours[blake2b(library.encode(), digest_size=2).digest()[0] % len(colours)]


def _depth(nodes: Sequence[StackNode]) -> int:
    depths: dict[str, int] = {"": 0}
    for node in nodes:  # callers come first
        depths[node.id] = depths[node.parent] + 1
    return max(depths.values())
