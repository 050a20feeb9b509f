"""What the heat map sends to the browser and takes back, and what its colours mean."""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from diagnostics.figures.heatmap_view import ColourScale, GcLine, HeatmapSelection, HeatmapView
from pages.components.heatmap.component import Standing, encode, selection_from, settle


def view(rows: int = 2, columns: int = 3) -> HeatmapView:
    return HeatmapView(
        values=np.arange(rows * columns, dtype=np.uint8).reshape(rows, columns),
        row_labels=[f"a.py:{n}" for n in range(rows)],
        row_details=[f"pkg/a.py:{n} in f" for n in range(rows)],
        row_keys=list(range(rows)),
        column_edges_s=np.arange(columns + 1) / 2,
        scale=ColourScale("linear", max_bytes=255.0),
        title="Memory",
        y_title="site",
    )


def unpacked(data: bytes) -> tuple[dict[str, Any], bytes]:
    raw = zlib.decompress(data)
    (length,) = struct.unpack_from("<I", raw)
    return json.loads(raw[4 : 4 + length]), raw[4 + length :]


def test_arrays_follow_the_header_in_order_and_aligned() -> None:
    shown = replace(view(), gc_density=np.array([7, 8, 9], np.uint8))

    data = encode(shown, selection=None, sequence=0, height=400)
    header, arrays = unpacked(data)

    assert (header["rows"], header["columns"], header["height"]) == (2, 3, 400)
    assert struct.unpack_from("<4f", arrays) == (0.0, 0.5, 1.0, 1.5)
    assert arrays[16:22] == bytes([0, 1, 2, 3, 4, 5])
    assert arrays[22:] == bytes([7, 8, 9])
    assert (len(zlib.decompress(data)) - len(arrays)) % 4 == 0, (
        "float32 has to start at a multiple of four"
    )


def test_keys_marks_and_lines_reach_the_browser_as_plain_json() -> None:
    shown = replace(
        view(),
        row_keys=[np.int64(3), "b"],
        now_row_key=np.int64(3),
        gc_lines=[GcLine(1.25, 40.0, 2, "generation 2: 40 ms")],
        unit_marks=[(0.5, "87")],
    )
    selection = HeatmapSelection(row_key=np.int64(3), row_to="b", t_s=0.25)

    header, _ = unpacked(encode(shown, selection=selection, sequence=4, height=400))

    assert header["keys"] == [3, "b"]
    assert header["nowKey"] == 3
    assert header["gcLines"] == [[1.25, 40.0, 2, "generation 2: 40 ms"]]
    assert header["unitMarks"] == [[0.5, "87"]]
    assert header["selection"] == {"row_key": 3, "row_to": "b", "t_s": 0.25, "column": None}
    assert header["sequence"] == 4


def test_an_empty_view_has_a_header_and_nothing_else() -> None:
    nothing = replace(
        view(), values=np.zeros((0, 0), np.uint8), row_labels=[], row_details=[], row_keys=[]
    )

    header, arrays = unpacked(encode(nothing, selection=None, sequence=0, height=400))

    assert (header["rows"], header["columns"], arrays) == (0, 0, b"")


def test_a_full_window_of_noise_stays_under_130_kb() -> None:
    """200 rows, 600 columns, 100 collections, 200 units; no packing makes noise smaller."""
    rng = np.random.default_rng(1)
    shown = replace(
        view(200, 600),
        values=rng.integers(0, 256, (200, 600)).astype(np.uint8),
        row_labels=[f"layout.py:{rng.integers(1000)}" for _ in range(200)],
        row_details=[f"pdfminer/layout.py:{rng.integers(1000)} in LTChar.f" for _ in range(200)],
        gc_density=rng.integers(0, 256, 600).astype(np.uint8),
        gc_lines=[GcLine(t, 74.5, 2, f"generation 2: 74.5 ms at {t}") for t in rng.random(100)],
        unit_marks=[(float(t), f"{n}") for n, t in enumerate(np.sort(rng.random(200)))],
    )

    assert len(encode(shown, selection=None, sequence=0, height=480)) < 130_000


@pytest.mark.parametrize(
    ("scale", "sizes", "indices"),
    [
        (
            ColourScale("linear", max_bytes=255),
            [0, 0.1, 1, 127.6, 255, 999],
            [0, 1, 1, 128, 255, 255],
        ),
        # 1 kB to 1 GB: a factor of a thousand, half way on a log scale, is 1 MB at 1 + 254 / 2.
        (
            ColourScale("log", max_bytes=1e9, min_bytes=1e3),
            [0, 10, 1e3, 1e6, 1e9],
            [0, 1, 1, 128, 255],
        ),
        (ColourScale("log", max_bytes=5, min_bytes=5), [0, 5], [0, 255]),
    ],
)
def test_sizes_become_colour_indices(
    scale: ColourScale, sizes: list[float], indices: list[int]
) -> None:
    assert scale.to_index(sizes).tolist() == indices


def test_an_index_stands_for_the_size_in_the_middle_of_its_step() -> None:
    assert ColourScale("linear", max_bytes=510).to_bytes(100) == pytest.approx(200)
    log = ColourScale("log", max_bytes=1e9, min_bytes=1e3)
    assert log.to_bytes(128) == pytest.approx(1e6)
    assert log.to_bytes(0) == 0


def test_legends_are_round_and_end_at_the_largest_size() -> None:
    assert ColourScale("linear", max_bytes=25.5e6).legend() == [
        (100, "10 MB"),
        (200, "20 MB"),
        (255, "25.5 MB"),
    ]
    assert ColourScale("log", max_bytes=1e9, min_bytes=1e3).legend() == [
        (1, "1 kB"),
        (43, "10 kB"),
        (86, "100 kB"),
        (128, "1 MB"),
        (170, "10 MB"),
        (213, "100 MB"),
        (255, "1 GB"),
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"row_labels": ["one"]},
        {"row_keys": [1, 2, 3]},
        {"column_edges_s": [0, 1]},
        {"gc_density": np.zeros(2, np.uint8)},
        {"values": np.zeros((2, 3), np.float64)},
    ],
)
def test_parts_that_do_not_fit_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"rows|columns|uint8"):
        replace(view(), **change)


def test_what_the_browser_picked_becomes_a_selection() -> None:
    cell = {"row_key": 86, "row_to": 90, "t_s": 2, "column": 7}

    assert selection_from({"sequence": 1, "cell": cell}) == HeatmapSelection(86, 90, 2.0, 7)


@pytest.mark.parametrize(
    "picked",
    [
        {},
        {"cell": None},
        {"cell": [1]},
        {"cell": {"row_key": None, "row_to": None, "t_s": 1, "column": 1}},
        {"cell": {"row_key": 1, "row_to": {}, "t_s": 1, "column": 1}},
        {"cell": {"row_key": 1, "row_to": None, "t_s": "soon", "column": 1}},
    ],
)
def test_anything_else_is_no_selection(picked: dict[str, Any]) -> None:
    assert selection_from(picked) is None


A, B, C = (HeatmapSelection(key, None, 1.0, 1) for key in "abc")


def settled(
    *runs: tuple[HeatmapSelection | None, HeatmapSelection | None, int],
) -> list[HeatmapSelection | None]:
    """What is shown after each run; a run is (wanted by the page, picked by the user, sequence)."""
    standing: Standing | None = None
    shown = []
    for wanted, picked, sequence in runs:
        standing = settle(wanted=wanted, picked=picked, sequence=sequence, before=standing)
        shown.append(standing.shown)
    return shown


def test_a_page_without_wishes_shows_what_the_user_picks() -> None:
    assert settled((None, None, 0), (None, A, 1), (None, A, 1), (None, None, 2)) == [
        None,
        A,
        A,
        None,
    ]


def test_a_page_that_passes_back_what_it_got_loses_no_pick() -> None:
    """The page's wish lags one run behind: it wants A in the run in which the user picks B."""
    assert settled((None, None, 0), (None, A, 1), (A, B, 2), (B, C, 3)) == [None, A, B, C]


def test_a_new_wish_of_the_page_takes_over_and_is_not_undone_by_an_old_pick() -> None:
    assert settled((None, A, 1), (C, A, 1), (C, A, 1), (None, A, 1)) == [A, C, C, None]


def test_a_wish_that_only_lost_its_column_and_digits_is_no_new_wish() -> None:
    from_url = HeatmapSelection("a", None, 1.0004)

    assert settled((None, None, 0), (None, A, 1), (from_url, B, 2), (from_url, B, 2))[-1] == B


def test_a_wish_outlives_the_browsers_state() -> None:
    """Another page was open meanwhile: the sequence starts again, and the next pick counts."""
    assert settled((None, A, 5), (A, None, 0), (A, B, 1)) == [A, A, B]
