"""The heat map on synthetic data, for the browser tests: ?picture=NAME picks one of PICTURES."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import streamlit as st

from diagnostics.figures.heatmap_view import ColourScale, GcLine, HeatmapSelection, HeatmapView
from pages.components.heatmap import heatmap

PAGES = 120
POISONOUS = 87


def leak(columns: int, now: float) -> HeatmapView:
    """Pages that stay alive after their birth; page 87 is far larger than its neighbours."""
    rng = np.random.default_rng(87)
    seconds_a_page = rng.uniform(0.06, 0.14, PAGES)
    seconds_a_page[POISONOUS - 1] = 0.9
    births = np.concatenate([[0.0], np.cumsum(seconds_a_page)[:-1]])
    sizes = rng.lognormal(np.log(2.5e6), 0.5, PAGES)
    sizes[POISONOUS - 1] = 96e6
    edges = np.linspace(0, now, columns + 1)
    age = edges[None, 1:] - births[:, None]
    kept = sizes[:, None] * (0.35 + 0.65 * np.exp(-np.maximum(age, 0) / 1.2))
    kept *= rng.uniform(0.96, 1.04, kept.shape)
    kept[::9] *= np.where(age[::9] > 3, 0.02, 1)
    scale = ColourScale("log", max_bytes=96e6, min_bytes=1e5)
    born = births <= now
    marks = [(float(t), str(n)) for n, t in enumerate(births, start=1) if t <= now]
    lines = [
        GcLine(float(t), float(p), 2, f"generation 2: {p:.0f} ms, 1,204 collected")
        for t, p in zip(rng.uniform(0, now, 24), rng.lognormal(3, 0.8, 24), strict=True)
    ]
    return HeatmapView(
        values=scale.to_index(np.where(age >= 0, kept, 0))[born],
        row_labels=[f"page {n}" for n in range(1, len(marks) + 1)],
        row_details=[f"born on page {n}" for n in range(1, len(marks) + 1)],
        row_keys=list(range(1, len(marks) + 1)),
        column_edges_s=edges,
        scale=scale,
        title=f"Memory by page of birth, {len(marks)} of {PAGES} pages",
        y_title="page of birth",
        gc_lines=lines,
        gc_density=rng.integers(0, 256, columns).astype(np.uint8),
        unit_marks=marks,
        now_row_key=len(marks),
        y_up=True,
    )


def sites(rows: int) -> HeatmapView:
    """Lines of code against time, most of them steady, some growing."""
    rng = np.random.default_rng(7)
    files = ["layout.py", "psparser.py", "pdfinterp.py", "converter.py", "utils_of_a_long_name.py"]
    labels = [f"{files[n % 5]}:{int(rng.integers(20, 900))}" for n in range(rows - 1)]
    top = 40e6 / np.arange(1, rows + 1) ** 1.4
    growth = np.linspace(0, 1, 300)[None, :] ** rng.uniform(0.2, 3, (rows, 1))
    scale = ColourScale("log", max_bytes=40e6, min_bytes=4e4)
    return HeatmapView(
        values=scale.to_index(top[:, None] * growth * (rng.random((rows, 300)) > 0.01)),
        row_labels=[*labels, "other"],
        row_details=[*(f"pdfminer/{label} in LTChar.__init__" for label in labels), "other sites"],
        row_keys=[f"site-{n}" for n in range(rows)],
        column_edges_s=np.linspace(0, 312, 301),
        scale=scale,
        title="Memory by line of code",
        y_title="code site",
        gc_lines=[GcLine(t, 80, 2, "generation 2: 80 ms, 0 collected") for t in range(20, 312, 40)],
        gc_density=np.linspace(255, 0, 300).astype(np.uint8),
        unit_marks=[(3.0 * n, f"{n + 1}") for n in range(104)],
    )


def exact() -> HeatmapView:
    """Four rows, five seconds, known cells: rows a to d from the top, brightest in d."""
    values = np.zeros((4, 5), np.uint8)
    values[1, 2] = 128
    values[3, :] = 255
    return HeatmapView(
        values=values,
        row_labels=["a", "b", "c", "d"],
        row_details=["row a", "row b", "row c", "row d"],
        row_keys=["key-a", "key-b", "key-c", "key-d"],
        column_edges_s=[0, 1, 2, 3, 4, 5],
        scale=ColourScale("linear", max_bytes=25.5e6),
        title="Known cells",
        y_title="row",
        gc_lines=[GcLine(2.5, 30, 2, "generation 2: 30 ms")],
        unit_marks=[(0.0, "1"), (2.0, "2")],
    )


def total() -> None:
    """The known cells, and below them a total that doubles twice."""
    totals = np.array([10e6, 10e6, 20e6, 40e6, 40e6], np.int64)
    heatmap(exact(), key="map", height=520, totals=totals)


def crowded() -> HeatmapView:
    """Collections that nearly fall together, and one by itself."""
    pauses = [(1.0, 5), (1.03, 50), (4.0, 1)]
    return replace(exact(), gc_lines=[GcLine(t, ms, 2, f"{ms} ms") for t, ms in pauses])


def long_labels() -> HeatmapView:
    """Known cells whose rows are named by line and function, and by a file."""
    labels = [
        "a/b.py:7 in f",
        "package/folder/module.py:419 in OneClass.a_method_with_a_name",
        "package/folder/module.py:420 in OneClass.a_method_with_a_name_as_long_as_this_one_here",
        "extension_of_a_long_name.cpython-311-x86_64-linux-gnu-and-more-of-it.so",
    ]
    return replace(exact(), row_labels=labels, unit_marks=(), gc_lines=())


def needle() -> HeatmapView:
    """One bright cell in 1,500 rows and 3,000 columns: finer than the pixels of any screen."""
    values = np.ones((1500, 3000), np.uint8)
    values[777, 1234] = 255
    names = [f"row {n}" for n in range(1500)]
    edges = np.linspace(0, 30, 3001)
    scale = ColourScale("linear", max_bytes=1e6)
    return HeatmapView(values, names, names, names, edges, scale, "A needle", "row")


def empty() -> HeatmapView:
    """What a recording shows before its first frame."""
    nothing = np.zeros((0, 0), np.uint8)
    scale = ColourScale("linear", max_bytes=1)
    return HeatmapView(nothing, [], [], [], [], scale, "Memory by page of birth", "page of birth")


@st.fragment(run_every=0.1)
def live() -> None:
    """A recording that grows: one more column's worth each refresh, and more pages."""
    refresh = st.session_state.get("refresh", 0) + 1
    st.session_state["refresh"] = refresh
    show(leak(columns=600, now=4.0 + 0.08 * refresh))
    st.text(f"refresh {refresh}")


def show(view: HeatmapView) -> None:
    """The map, and in words what is selected on it."""
    selection = heatmap(view, key="map", height=520)
    st.text(f"selection: {selection}")


def steered() -> None:
    """The page itself selects row d, besides the user."""
    wanted = HeatmapSelection("key-d", None, 4.5) if st.checkbox("Show row d") else None
    show(replace(exact(), selection=wanted))


PICTURES: dict[str, Callable[[], None]] = {
    "units": lambda: show(leak(columns=600, now=13.0)),
    "sites": lambda: show(sites(rows=24)),
    "many-sites": lambda: show(sites(rows=600)),
    "exact": lambda: show(exact()),
    "total": total,
    "crowded": lambda: show(crowded()),
    "long-labels": lambda: show(long_labels()),
    "steered": steered,
    "needle": lambda: show(needle()),
    "empty": lambda: show(empty()),
    "live": live,
}

st.set_page_config(page_title="Heat map", layout="wide")
PICTURES[st.query_params.get("picture", "units")]()
