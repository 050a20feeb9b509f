"""The Python face of the canvas heat map: a view goes out as bytes, a selection comes back."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import streamlit as st

from diagnostics.figures.heatmap_view import HeatmapSelection, HeatmapView, RowKey

_HERE = Path(__file__).parent
_SCRIPTS = ("total.js", "heatmap.js")  # one module: a component cannot import from its own files

_mount = st.components.v2.component(
    "page87_heatmap",
    css=(_HERE / "heatmap.css").read_text(encoding="utf-8"),
    js="\n".join((_HERE / name).read_text(encoding="utf-8") for name in _SCRIPTS),
)


def heatmap(
    view: HeatmapView,
    *,
    key: str,
    height: int = 480,
    totals: npt.NDArray[np.integer] | None = None,
) -> HeatmapSelection | None:
    """Draw the view, ``height`` CSS pixels high, and give what is selected on it.

    With ``totals``, bytes for each column, a small chart of them stands below the cells, on the
    same axis of time.

    None until something is selected, and again after Escape. What the user selects stays selected
    while new data arrive. ``view.selection`` takes over when it changes to something that was not
    returned here before: a page may pass back what it got, or pass nothing at all.
    """
    state = st.session_state.get(key)
    picked = state.get("picked") if isinstance(state, Mapping) else None
    sequence = picked.get("sequence", 0) if isinstance(picked, Mapping) else 0
    memory = f"{key}: standing selection"
    standing = settle(
        wanted=view.selection,
        picked=selection_from(picked),
        sequence=sequence,
        before=st.session_state.get(memory),
    )
    st.session_state[memory] = standing
    _mount(
        key=key,
        data=encode(
            view, selection=standing.shown, sequence=sequence, height=height, totals=totals
        ),
        # Streamlit keeps a state value only where a callback is named for it.
        on_picked_change=_no_callback,
    )
    return standing.shown


@dataclass(frozen=True)
class Standing:
    """After a run: what the page wanted, what is shown, the number of the user's last pick."""

    wanted: HeatmapSelection | None
    shown: HeatmapSelection | None
    sequence: int


def settle(
    *,
    wanted: HeatmapSelection | None,
    picked: HeatmapSelection | None,
    sequence: int,
    before: Standing | None,
) -> Standing:
    """Who decides what is shown: a new pick of the user, else a new wish of the page, else nobody.

    ``before`` is None in the first run. A sequence that went back means that the browser's state
    was dropped (another page was open meanwhile), which counts as a first run.
    """
    if before is None or sequence < before.sequence:
        shown = picked if wanted is None else wanted
    elif sequence > before.sequence:
        shown = picked
    elif _identity(wanted) in (_identity(before.wanted), _identity(before.shown)):
        shown = before.shown
    else:
        shown = wanted
    return Standing(wanted, shown, sequence)


def _identity(selection: HeatmapSelection | None) -> tuple[RowKey, RowKey | None, float] | None:
    """What makes two selections the same: a URL may round the time and lose the column."""
    if selection is None:
        return None
    return selection.row_key, selection.row_to, round(selection.t_s, 3)


def encode(
    view: HeatmapView,
    *,
    selection: HeatmapSelection | None,
    sequence: int,
    height: int,
    totals: npt.NDArray[np.integer] | None = None,
) -> bytes:
    """The view as one compressed block of bytes, as heatmap.js reads it.

    Compressed (zlib) is: the header's length (uint32), the header (JSON, padded with spaces to four
    bytes), the column edges (float32), the totals (float32, one a column, or nothing), the cells
    (uint8, row by row) and the density of small collections (uint8, one a column, or nothing). All
    numbers are little endian. ``sequence`` is the number of the last pick that Python knows of.

    Raises ValueError when there are totals for another number of columns.
    """
    rows, columns = view.values.shape
    if totals is not None and totals.shape != (columns,):
        raise ValueError(f"totals has shape {totals.shape} for {columns} columns")
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
        "hasTotals": totals is not None,
        "hasDensity": view.gc_density is not None,
        "unitMarks": [[round(float(t_s), 6), label] for t_s, label in view.unit_marks],
        "selection": _as_cell(selection),
        "sequence": sequence,
    }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 4)
    edges = np.asarray(view.column_edges_s, dtype="<f4") if columns else np.zeros(0, "<f4")
    packed = b"".join(
        (
            len(text).to_bytes(4, "little"),
            text,
            edges.tobytes(),
            b"" if totals is None else totals.astype("<f4").tobytes(),
            view.values.tobytes(),
            b"" if view.gc_density is None else view.gc_density.tobytes(),
        )
    )
    # Level 1: the cells are mostly flat, a higher level costs more time than the bytes are worth.
    return zlib.compress(packed, level=1)


def selection_from(picked: object) -> HeatmapSelection | None:
    """The selection in what the browser reported; None when it is empty or has another shape."""
    cell = picked.get("cell") if isinstance(picked, Mapping) else None
    if not isinstance(cell, Mapping):
        return None
    row_key, row_to = cell.get("row_key"), cell.get("row_to")
    t_s, column = cell.get("t_s"), cell.get("column")
    if not isinstance(row_key, str | int) or not isinstance(row_to, str | int | None):
        return None
    if not isinstance(t_s, int | float) or not isinstance(column, int):
        return None
    return HeatmapSelection(row_key=row_key, row_to=row_to, t_s=float(t_s), column=column)


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
