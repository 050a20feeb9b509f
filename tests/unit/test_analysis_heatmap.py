"""The heat table holds what the frames say, live and at once, and joined columns keep maxima."""

from itertools import pairwise

import numpy as np
import pytest
from hand_built import INGEST_PY, MB, MS, PAGE_PY, S, build
from hypothesis import given, settings
from hypothesis import strategies as st

from diagnostics.analysis.columns import ColumnHistory
from diagnostics.analysis.heatmap import SiteHeat, row_figures
from diagnostics.analysis.sites import library_of, short_path
from diagnostics.recording.model import Frame
from diagnostics.recording.reader import RecordingReader
from diagnostics.recording.writer import RecordingWriter

CHARS, OBJECTS, READ = f"{PAGE_PY}:430", f"{PAGE_PY}:412", f"{INGEST_PY}:14"


@pytest.fixture
def reader(tmp_path):
    with RecordingReader(build(tmp_path / "run.p87")) as reader:
        yield reader


def heat_of(reader, group="line", columns=8):
    heat = SiteHeat(group, columns=columns, first_width_ns=1 * S)
    heat.feed(reader)
    return heat


def in_mb(table):
    return dict(zip(table.row_keys, (table.values // MB).tolist(), strict=True))


def test_lines_against_seconds(reader):
    table = heat_of(reader).table(now_ns=7 * S)

    # One column a second. A value holds until the next frame says otherwise (1, 3, 5 and 5.2 s);
    # both stacks that end in page.py:412 make one row.
    assert in_mb(table) == {
        CHARS: [0, 0, 0, 30, 30, 30, 0, 0],
        OBJECTS: [0, 10, 10, 24, 24, 24, 9, 9],
        READ: [0, 5, 5, 5, 0, 0, 0, 0],
        "other": [0, 2, 2, 2, 2, 3, 3, 3],
    }
    assert table.column_edges_ns.tolist() == [k * S for k in range(9)]
    assert table.row_labels[0] == "pdfplumber/page.py:430 in chars"
    assert table.row_details[0] == f"{PAGE_PY}:430 in chars"


def test_columns_are_joined_when_they_run_out(reader):
    table = heat_of(reader, columns=4).table(now_ns=7 * S)

    assert table.column_edges_ns.tolist() == [0, 2 * S, 4 * S, 6 * S, 8 * S]
    assert in_mb(table)[OBJECTS] == [10, 24, 24, 9]


def test_few_rows_leave_the_rest_to_other(reader):
    table = heat_of(reader).table(now_ns=7 * S, rows=1)

    assert in_mb(table) == {
        CHARS: [0, 0, 0, 30, 30, 30, 0, 0],
        "other": [0, 17, 17, 31, 26, 27, 12, 12],
    }


def test_other_is_never_more_than_there_was(tmp_path):
    # given three lines that take turns within one column, beside one that stays
    writer = RecordingWriter(tmp_path / "turns.p87", {})
    big, *turns = (writer.site([Frame("/a.py", line)]) for line in (1, 2, 3, 4))
    for t_ns, site in enumerate(turns):
        writer.add_frame("heap", t_ns, 1, {big: (9, 1), site: (8, 1)})
    writer.close()

    heat = SiteHeat(columns=4, first_width_ns=S)
    with RecordingReader(writer.path) as reader:
        heat.feed(reader)

    # 8 + 8 + 8 is what the three held at their most, but there were never more than 17 in all
    assert heat.table(rows=1).values.tolist() == [[9], [17]]


@pytest.mark.parametrize(
    ("group", "rows"),
    [
        (
            "function",
            {
                f"{PAGE_PY}:chars": 30,
                f"{PAGE_PY}:objects": 24,
                f"{INGEST_PY}:read": 5,
            },
        ),
        ("file", {PAGE_PY: 54, INGEST_PY: 5}),
        ("library", {"pdfplumber": 54, "own code": 5}),
    ],
)
def test_groups_add_up_at_each_moment(reader, group, rows):
    table = heat_of(reader, group).table(now_ns=7 * S)
    peaks = {key: max(values) for key, values in in_mb(table).items()}
    assert peaks == rows | {"other": 3}


def test_one_row_in_numbers(reader):
    table = heat_of(reader).table(now_ns=7 * S)

    figures = row_figures(table, OBJECTS, 1_700 * MS)

    assert figures.place.line == 412
    assert (figures.bytes, figures.peak_bytes) == (10 * MB, 24 * MB)
    assert (figures.peak_ns, figures.end_bytes) == (3 * S, 9 * MB)
    assert row_figures(table, "no such line", 0) is None


def test_a_recording_without_a_heap_gives_an_empty_table(tmp_path):
    writer = RecordingWriter(tmp_path / "run.p87", {})
    writer.close()
    with RecordingReader(writer.path) as reader:
        table = heat_of(reader).table()
    assert table.values.shape == (0, 0)
    assert table.rows == ()


STATES = st.lists(
    st.tuples(st.integers(1, 40), st.dictionaries(st.integers(0, 5), st.integers(1, 99))),
    min_size=1,
    max_size=25,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("heat")


@given(states=STATES, portion=st.integers(1, 5))
@settings(max_examples=50, deadline=None)  # each example writes a file
def test_fed_in_portions_as_at_once(folder, states, portion):
    path = folder / "portions.p87"
    path.unlink(missing_ok=True)
    writer = RecordingWriter(path, {})
    live = SiteHeat(columns=8, first_width_ns=10)
    t_ns = 0
    with RecordingReader(path) as reader:
        for number, (gap, state) in enumerate(states):
            t_ns += gap
            sites = {
                site and writer.site([Frame("/a.py", site)]): (n, 1) for site, n in state.items()
            }
            writer.add_frame("heap", t_ns, 1, sites)
            if number % portion == 0:
                writer.commit()
                live.feed(reader)
                live.table(t_ns + 5, live=True)
        writer.commit()
        live.feed(reader)
        whole = SiteHeat(columns=8, first_width_ns=10)
        whole.feed(reader)
    writer.close()

    ours, theirs = live.table(t_ns + 5), whole.table(t_ns + 5)
    assert ours.row_keys == theirs.row_keys
    assert ours.values.tolist() == theirs.values.tolist()
    assert ours.column_edges_ns.tolist() == theirs.column_edges_ns.tolist()
    # and both agree with the states themselves: each line's highest value
    for line in range(1, 6):
        highest = max(state.get(line, 0) for _, state in states)
        row = dict(zip(ours.row_keys, ours.values.tolist(), strict=True)).get(f"/a.py:{line}", [0])
        assert max(row) == highest


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 99)), min_size=1))
def test_joined_columns_keep_maxima(steps):
    history = ColumnHistory(rows=1, columns=4, width_ns=10)
    seen = []  # (from, to, value): what was held when
    t_ns = value = 0
    for gap, new in steps:
        seen.append((t_ns, t_ns + gap, value))
        t_ns += gap
        value = new
        history.advance(t_ns)
        history.set(0, value)
        seen.append((t_ns, t_ns, value))

    edges = history.edges_ns.tolist()
    expected = [
        max((v for a, b, v in seen if a < right and b >= left), default=0)
        for left, right in pairwise(edges)
    ]
    assert history.values.tolist() == [expected]
    assert len(expected) <= 4


def two_lines(folder, first, second):
    writer = RecordingWriter(folder / "live.p87", {})
    sites = [writer.site([Frame("/a.py", line)]) for line in (1, 2, 3)]
    writer.add_frame("heap", 1, 1, {sites[0]: (first, 1), sites[1]: (second, 1)})
    writer.commit()
    return writer, sites


def test_rows_stay_where_they_are_while_live(tmp_path):
    writer, (one, two, three) = two_lines(tmp_path, 50, 40)
    heat = SiteHeat(columns=4, first_width_ns=10)
    with RecordingReader(writer.path) as reader:
        heat.feed(reader)
        assert heat.table(rows=2, live=True).row_keys == ["/a.py:1", "/a.py:2"]

        # when the second line overtakes the first, their rows stay
        writer.add_frame("heap", 2, 1, {one: (50, 1), two: (90, 1)})
        writer.commit()
        heat.feed(reader)
        assert heat.table(rows=2, live=True).row_keys == ["/a.py:1", "/a.py:2"]

        # when a third one pushes the first out, it takes that row, and the second stays
        writer.add_frame("heap", 3, 1, {one: (50, 1), two: (90, 1), three: (70, 1)})
        writer.commit()
        heat.feed(reader)
        assert heat.table(rows=2, live=True).row_keys == ["/a.py:3", "/a.py:2", "other"]

        # and after the run they are sorted
        assert heat.table(rows=2).row_keys == ["/a.py:2", "/a.py:3", "other"]
    writer.close()


def test_the_number_of_histories_is_bounded(tmp_path):
    # given 40 lines of 1 to 40 bytes in a map that keeps at most 10 histories
    writer = RecordingWriter(tmp_path / "many.p87", {})
    sites = [writer.site([Frame("/a.py", line)]) for line in range(1, 41)]
    state = {site: (size, 1) for size, site in enumerate(sites, start=1)}
    writer.add_frame("heap", 1, 1, state)
    # when the smallest of them, folded long ago, grows
    writer.add_frame("heap", 25, 1, state | {sites[0]: (500, 1)})
    writer.close()

    heat = SiteHeat(columns=4, first_width_ns=10, most_rows=10)
    with RecordingReader(writer.path) as reader:
        heat.feed(reader)
    table = heat.table(rows=1)

    # then it has a row again, and nothing is lost: 1 + … + 40 = 820; its one byte is among the
    # others until the middle of the last column
    assert table.row_keys == ["/a.py:1", "other"]
    assert table.values.tolist() == [[0, 0, 500], [820, 820, 820]]


def test_paths_and_libraries():
    assert short_path(PAGE_PY) == "pdfplumber/page.py"
    assert short_path("/usr/lib/python3.11/json/decoder.py") == "json/decoder.py"
    assert short_path("/usr/lib/python3.11/zipfile.py") == "zipfile.py"
    assert short_path("/srv/app/src/ingest.py") == "src/ingest.py"
    assert short_path("load.py") == "load.py"
    assert library_of(PAGE_PY) == "pdfplumber"
    assert library_of("/v/lib/python3.13/site-packages/typing_extensions.py") == "typing_extensions"
    assert library_of("/usr/lib/python3.11/json/decoder.py") == "standard library"
    assert library_of("<frozen importlib._bootstrap>") == "interpreter"
    assert library_of(INGEST_PY) == "own code"


def test_a_moment_outside_goes_to_the_nearest_column(reader):
    table = heat_of(reader).table(now_ns=7 * S)
    assert [table.column_at(t) for t in (-1, 0, 2.5 * S, 100 * S)] == [0, 0, 2, 7]
    assert table.values.dtype == np.int64
