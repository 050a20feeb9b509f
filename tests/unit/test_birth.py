"""The birth-unit lens: made-up runs whose picture is known, cell by cell."""

from itertools import pairwise

import numpy as np
import pytest
from births import MB, S, band, leak, write_run
from hand_built import build
from hypothesis import given, settings
from hypothesis import strategies as st

from diagnostics.analysis.birth import BirthHeat
from diagnostics.analysis.heatmap import row_figures
from diagnostics.figures.heatmap import heatmap
from diagnostics.figures.retention import birth_view, total_chart
from diagnostics.recording.model import UnitRow, alive_id
from diagnostics.recording.reader import RecordingReader
from diagnostics.recording.writer import RecordingWriter


def table_of(path, columns=16, rows=400, now_ns=None, **more):
    heat = BirthHeat(columns, rows, first_width_ns=1 * S)
    with RecordingReader(path) as reader:
        heat.feed(reader)
    return heat.table(now_ns, **more)


def in_mb(table):
    return dict(zip(table.row_keys, (table.values // MB).tolist(), strict=True))


def test_a_leak_fills_a_triangle(tmp_path):
    table = table_of(write_run(tmp_path / "run.p87", 4, leak(3 * MB), lambda page: 5 * MB))

    # One column a second. Page p takes 5 MB from p + 0.5 s to p + 1 s and then keeps 3: the higher
    # value is what a column shows, and what holds up to an edge still counts in the next column.
    assert in_mb(table) == {
        "1": [0, 5, 5, 3, 3, 3],
        "2": [0, 0, 5, 5, 3, 3],
        "3": [0, 0, 0, 5, 5, 3],
        "4": [0, 0, 0, 0, 5, 5],
    }
    assert table.totals.tolist() == [0, 5 * MB, 8 * MB, 11 * MB, 14 * MB, 14 * MB]
    assert table.row_labels == ["page 1", "page 2", "page 3", "page 4"]
    assert table.column_edges_ns.tolist() == [k * S for k in range(7)]


def test_a_healthy_loader_draws_a_diagonal(tmp_path):
    table = table_of(write_run(tmp_path / "run.p87", 4, lambda page: {}, lambda page: 5 * MB))

    assert in_mb(table) == {
        "1": [0, 5, 5, 0, 0, 0],
        "2": [0, 0, 5, 5, 0, 0],
        "3": [0, 0, 0, 5, 5, 0],
        "4": [0, 0, 0, 0, 5, 5],
    }


def test_a_bounded_cache_draws_a_band(tmp_path):
    # given pages that stay until the tenth page after them ends, eleven seconds after they began
    table = table_of(write_run(tmp_path / "run.p87", 30, band(10, 2 * MB)), columns=64)

    lit = table.values > 0
    for row, page in enumerate(range(1, 31)):
        assert np.flatnonzero(lit[row]).tolist() == list(range(page, min(page + 11, 31) + 1))


def test_a_poisonous_page_draws_one_bright_row(tmp_path):
    run = write_run(
        tmp_path / "run.p87", 120, lambda page: {}, lambda page: (141 if page == 87 else 2) * MB
    )
    table = table_of(run, columns=600)

    peaks = table.values.max(axis=1) // MB
    assert peaks.tolist() == [2] * 86 + [141] + [2] * 33
    figures = row_figures(table, table.key_of(87), 87.7 * S)
    assert (figures.bytes, figures.peak_ns, figures.end_bytes) == (141 * MB, 87 * S, 0)


def test_what_is_born_outside_has_a_row_of_its_own(tmp_path):
    run = write_run(tmp_path / "run.p87", 3, lambda page: {0: 30 * MB}, lambda page: 5 * MB)

    table = table_of(run)
    assert table.row_keys == ["0", "1", "2", "3"]
    assert table.row_labels[0] == "outside any page"
    assert in_mb(table)["0"] == [0, 0, 30, 30, 30]
    assert (table.totals // MB).tolist() == [0, 5, 35, 35, 35]
    assert table_of(run, outside=False).row_keys == ["1", "2", "3"]


def test_what_the_last_frame_says_holds_until_now(tmp_path):
    run = write_run(tmp_path / "run.p87", 2, leak(3 * MB))
    assert in_mb(table_of(run, now_ns=6 * S))["2"] == [0, 0, 2, 3, 3, 3, 3]


def test_more_pages_than_rows_are_joined_and_named(tmp_path):
    run = write_run(
        tmp_path / "run.p87", 11, lambda page: {}, lambda page: (9 if page == 6 else 2) * MB
    )
    table = table_of(run, rows=4)

    # 11 pages in at most 4 rows: runs of 4
    assert table.row_labels == ["pages 1-4", "pages 5-8", "pages 9-11"]
    assert table.row_keys == ["1", "5", "9"]
    assert table.units == (range(1, 5), range(5, 9), range(9, 12))
    assert in_mb(table)["5"][4:10] == [0, 2, 9, 9, 2, 2]


def test_a_key_from_before_the_rows_were_joined_is_understood(tmp_path):
    table = table_of(write_run(tmp_path / "run.p87", 11, leak(MB)), rows=4)

    assert (table.key_of(7), table.key_of(12)) == ("5", None)
    assert table.units_between("7") == range(5, 9)
    assert table.units_between("9", "5") == range(5, 12)
    assert table.units_between("40") is None


def test_a_document_that_begins_at_page_500_has_no_empty_rows(tmp_path):
    writer = RecordingWriter(tmp_path / "part.p87", {})
    for page in (500, 501):
        writer.put_units([UnitRow(page, "page", f"page {page}", page, page + 1)])
        writer.add_changes("alive", page, 0, {alive_id(page, 7): (MB, 1)})
    writer.close()

    assert table_of(writer.path).row_labels == ["page 500", "page 501"]


def test_a_lower_page_that_comes_later_moves_the_rows(tmp_path):
    # given pages that several threads begin in an order of their own, a look after each
    path = tmp_path / "run.p87"
    writer = RecordingWriter(path, {})
    heat = BirthHeat(16, 4, first_width_ns=1 * S)
    for t_s, page in enumerate([5, 6, 7, 8, 3, 2]):
        writer.put_units([UnitRow(page, "page", f"page {page}", t_s, t_s + 1)])
        writer.add_changes("alive", t_s * S, 0, {alive_id(page, 7): (page * MB, 1)})
        writer.commit()
        with RecordingReader(path) as reader:
            heat.feed(reader)
    writer.close()

    # then 5-6 and 7-8 were joined when page 3 came
    assert in_mb(heat.table()) == {
        "2": [0, 0, 0, 0, 0, 2],
        "3": [0, 0, 0, 0, 3, 3],
        "5": [5, 6, 6, 6, 6, 6],
        "7": [0, 0, 7, 8, 8, 8],
    }
    assert heat.table().row_labels == ["page 2", "pages 3-4", "pages 5-6", "pages 7-8"]


def test_the_page_in_progress_is_known_while_it_runs(tmp_path):
    writer = RecordingWriter(tmp_path / "run.p87", {})
    writer.put_units([UnitRow(1, "page", "Title", 0, S, "finished"), UnitRow(2, "page", "2", S)])
    writer.add_changes("alive", S, 0, {alive_id(1, 7): (MB, 1)})
    writer.commit()

    # page 2 has a row although nothing of it is alive yet
    table = table_of(writer.path, live=True)
    assert (table.row_labels, table.now_key) == (["Title", "2"], "2")
    assert birth_view(table).now_row_key == "2"
    assert table_of(writer.path).now_key is None
    writer.close()


def test_the_exact_engine_gives_an_empty_table_that_says_why(tmp_path):
    table = table_of(build(tmp_path / "run.p87"), now_ns=5 * S)

    assert (table.rows, table.values.size) == ((), 0)
    assert table.gap.startswith("The exact engine does not know in which unit")
    assert [
        note.text for note in total_chart(table_of(build(tmp_path / "2.p87"))).layout.annotations
    ] == [table.gap]


changes_of_units = st.lists(
    st.dictionaries(st.integers(0, 40), st.integers(0, 100), max_size=4), min_size=1, max_size=30
)


@settings(max_examples=40, deadline=None)
@given(frames=changes_of_units, looks=st.sets(st.integers(0, 29)))
def test_joined_rows_keep_the_maximum_and_live_equals_at_once(tmp_path_factory, frames, looks):
    # given one frame a nanosecond, and a reader that looks in now and then
    path = tmp_path_factory.mktemp("run") / "run.p87"
    writer = RecordingWriter(path, {})
    live = BirthHeat(columns=4, rows=6, first_width_ns=1)
    for t_ns, changes in enumerate(frames):
        pairs = {alive_id(unit, 3): (size, 1 if size else 0) for unit, size in changes.items()}
        writer.add_changes("alive", t_ns, 0, pairs)
        writer.commit()
        if t_ns in looks:
            with RecordingReader(path) as reader:
                live.feed(reader)
    writer.close()
    at_once = BirthHeat(columns=4, rows=6, first_width_ns=1)
    with RecordingReader(path) as reader:
        live.feed(reader)
        at_once.feed(reader)
    table = at_once.table()

    # then each cell is the most that one of its units held from the column's first frame, what
    # held before it included, to its last
    held = np.zeros((len(frames) + 1, 41), np.int64)  # by frame and unit; first: before any frame
    for t_ns, changes in enumerate(frames):
        held[t_ns + 1] = held[t_ns]
        for unit, size in changes.items():
            held[t_ns + 1, unit] = size
    for row, units in enumerate(table.units):
        for column, (left, right) in enumerate(pairwise(table.column_edges_ns)):
            assert table.values[row, column] == held[left : right + 1, list(units)].max()
    for column, (left, right) in enumerate(pairwise(table.column_edges_ns)):
        assert table.totals[column] == held[left : right + 1].sum(axis=1).max()
    assert len(table.rows) <= 7
    assert (live.table().values == table.values).all()
    assert live.table().rows == table.rows


def test_numbers_that_no_unit_has_cost_no_time(tmp_path):
    # given units 1, 2 and, far away, the highest number that a recording may hold
    far = (1 << 39) - 1
    writer = RecordingWriter(tmp_path / "run.p87", {})
    sizes = {1: 3 * MB, 2: 2 * MB, far: 5 * MB}
    writer.put_units([UnitRow(unit, "page", f"page {unit}", 1, 2) for unit in sizes])
    writer.add_changes("alive", 1, 0, {alive_id(unit, 1): (sizes[unit], 1) for unit in sizes})
    writer.close()

    table = table_of(writer.path)

    peaks = table.values.max(axis=1)
    assert (peaks[0], peaks[1:-1].any(), peaks[-1]) == (3 * MB, False, 5 * MB)


def test_20_000_pages_lose_no_peak(tmp_path):
    # given 20,000 pages, twenty to a frame, and page 8,787 with 9 MB among those with 2
    writer = RecordingWriter(tmp_path / "long.p87", {})
    pages = range(1, 20_001)
    writer.put_units([UnitRow(page, "page", f"page {page}", page, page + 1) for page in pages])
    sizes = {page: (9 if page == 8787 else 2) * MB for page in pages}
    for first in range(1, 20_001, 20):
        alive = {alive_id(p, 1): (sizes[p], 1) for p in range(first, first + 20)}
        gone = {alive_id(p, 1): (0, 0) for p in range(max(1, first - 20), first)}
        writer.add_changes("alive", first, 0, gone | alive)
    writer.close()

    heat = BirthHeat(first_width_ns=1)
    with RecordingReader(writer.path) as reader:
        heat.feed(reader)
    table = heat.table()

    # 64 pages a row: 313 rows; page 8,787 is in row 137, from page 8,769 on
    assert len(table.rows) == 313
    assert table.rows[137].label == "pages 8769-8832"
    assert table.values.max(axis=1).tolist() == [2 * MB] * 137 + [9 * MB] + [2 * MB] * 175
    assert table.values[137].argmax() == 8781 // 64  # the frame of pages 8,781 to 8,800


def test_the_picture_and_the_total_share_their_time(tmp_path):
    table = table_of(write_run(tmp_path / "run.p87", 4, leak(3 * MB), lambda page: 5 * MB))

    view = birth_view(table, scale="linear")
    chart = total_chart(table)

    assert view.y_up
    assert (view.title, view.y_title) == ("Memory by the page it was born in", "page")
    assert chart.layout.xaxis.range == (0, 6) == (view.column_edges_s[0], view.column_edges_s[-1])
    (area,) = chart.data
    assert list(area.x) == list(view.column_edges_s)
    assert list(area.y) == [0, 5e6, 8e6, 11e6, 14e6, 14e6, 14e6]
    assert area.text[2] == "8.0 MB at 2.0 s"
    assert heatmap(view, table).layout.yaxis.autorange is True  # page 1 at the bottom


def test_rows_are_joined_in_pairs():
    with pytest.raises(ValueError, match="even"):
        BirthHeat(rows=5)
