"""The Python face of the canvas heat map: a view goes out as bytes, a selection comes back."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

from diagnostics.figures.heatmap_view import HeatmapSelection, HeatmapView

_HERE = Path(__file__).parent

_mount = st.components.v2.component(
    "page87_heatmap",
    css=(_HERE / "heatmap.css").read_text(encoding="utf-8"),
    js=(_HERE / "heatmap.js").read_text(encoding="utf-8"),
)


def heatmap(view: HeatmapView, *, key: str, height: int = 480) -> HeatmapSelection | None:
    """Draw the view, ``height`` CSS pixels high, and give what the user has selected on it.

    None until something is selected, and again after Escape. What the user selects stays selected
    while new data arrive; ``view.selection`` takes over whenever it differs from the last one sent.
    """
    picked = _picked(st.session_state.get(key))
    result = _mount(
        key=key,
        data=encode(view, picked=picked, height=height),
        # Streamlit offers a state value in the result only where a callback is named for it.
        on_picked_change=_no_callback,
    )
    return selection_from(_picked(result))


def encode(view: HeatmapView, *, picked: Mapping[str, Any], height: int) -> bytes:
    """The view as one compressed block of bytes, as heatmap.js reads it.

    Compressed (zlib) is: the header's length (uint32), the header (JSON, padded with spaces to four
    bytes), the column edges (float32), the cells (uint8, row by row) and the density of small
    collections (uint8, one a column, or nothing). All numbers are little endian. ``picked`` is what
    the browser last reported, so that a map that is mounted anew shows it again.
    """
    rows, columns = view.values.shape
    header = {
        "title": view.title,
        "yTitle": view.y_title,
        "yUp": view.y_up,
        "unitTitle": view.unit_title,
        "height": height,
        "rows": rows,
        "columns": columns,
        "labels": list(view.row_labels),
        "details": list(view.row_details),
        "keys": [_plain(row_key) for row_key in view.row_keys],
        "nowKey": _plain(view.now_row_key),
        "scale": {
            "kind": view.scale.kind,
            "min": view.scale.min_bytes,
            "max": view.scale.max_bytes,
        },
        "legend": [[int(i), text] for i, text in view.legend or view.scale.legend()],
        "gcLines": [
            [round(float(line.t_s), 6), round(float(line.pause_ms), 3), line.generation, line.text]
            for line in view.gc_lines
        ],
        "hasDensity": view.gc_density is not None,
        "unitMarks": [[round(float(t_s), 6), label] for t_s, label in view.unit_marks],
        "wanted": _as_cell(view.selection),
        "picked": dict(picked),
    }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 4)
    edges = np.asarray(view.column_edges_s, dtype="<f4") if columns else np.zeros(0, "<f4")
    density = b"" if view.gc_density is None else view.gc_density.tobytes()
    packed = b"".join(
        (len(text).to_bytes(4, "little"), text, edges.tobytes(), view.values.tobytes(), density)
    )
    # Level 1: the cells are mostly flat, a higher level costs more time than the bytes are worth.
    return zlib.compress(packed, level=1)


def selection_from(picked: Mapping[str, Any]) -> HeatmapSelection | None:
    """The selection in what the browser reported; None when it is empty or has another shape."""
    cell = picked.get("cell")
    if not isinstance(cell, Mapping):
        return None
    row_key, row_to = cell.get("row_key"), cell.get("row_to")
    t_s, column = cell.get("t_s"), cell.get("column")
    if not isinstance(row_key, str | int) or not isinstance(row_to, str | int | None):
        return None
    if not isinstance(t_s, int | float) or not isinstance(column, int):
        return None
    return HeatmapSelection(row_key=row_key, row_to=row_to, t_s=float(t_s), column=column)


def _picked(state: object) -> Mapping[str, Any]:
    picked = state.get("picked") if isinstance(state, Mapping) else None
    return picked if isinstance(picked, Mapping) else {}


def _as_cell(selection: HeatmapSelection | None) -> dict[str, Any] | None:
    if selection is None:
        return None
    return {
        "row_key": _plain(selection.row_key),
        "row_to": _plain(selection.row_to),
        "t_s": selection.t_s,
        "column": selection.column,
    }


def _plain(row_key: str | int | None) -> str | int | None:
    """Row keys taken from tables may be numpy integers, which JSON does not know."""
    return int(row_key) if isinstance(row_key, np.integer) else row_key


def _no_callback() -> None:
    """The script runs again anyway; there is nothing to do before it does."""
