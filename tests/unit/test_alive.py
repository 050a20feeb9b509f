"""What is alive at a moment, by stack: sums worked out by hand, and trees that add up."""

from collections import defaultdict
from dataclasses import astuple

import pytest
from births import MB, S
from hand_built import CHARS, MAIN, OBJECTS, READ, build
from hypothesis import given, settings
from hypothesis import strategies as st

from diagnostics.analysis.alive import Alive, alive_at, stack_table, stack_tree, top_stacks
from diagnostics.figures.icicle import icicle
from diagnostics.recording.model import Frame, Site, alive_id
from diagnostics.recording.reader import RecordingReader
from diagnostics.recording.writer import RecordingWriter

JSON = Frame("/usr/lib/python3.11/json/decoder.py", 337, "decode")


@pytest.fixture
def reader(tmp_path):
    """At 1 s pages 1 and 2 hold 10 and 20 MB; at 2 s page 1 is gone and page 3 holds 4 MB."""
    writer = RecordingWriter(tmp_path / "run.p87", {})
    objects = writer.site([MAIN, OBJECTS])
    chars = writer.site([MAIN, OBJECTS, CHARS])
    read = writer.site([MAIN, READ])
    writer.add_changes(
        "alive",
        1 * S,
        0,
        {
            alive_id(0, 0): (1 * MB, 3),
            alive_id(1, chars): (10 * MB, 5),
            alive_id(2, chars): (12 * MB, 6),
            alive_id(2, objects): (5 * MB, 2),
            alive_id(2, read): (3 * MB, 1),
        },
    )
    writer.add_changes(
        "alive", 2 * S, 0, {alive_id(1, chars): (0, 0), alive_id(3, read): (4 * MB, 1)}
    )
    writer.add_frame("heap", 1 * S, 0, {chars: (22 * MB, 11), objects: (5 * MB, 2), 0: (1 * MB, 3)})
    writer.close()
    with RecordingReader(writer.path) as reader:
        yield reader


def in_mb(alive, reader):
    sites = reader.sites()
    return {
        sites[site].function if site else "": size // MB for site, (size, _) in alive.sites.items()
    }


def test_one_page_at_one_time(reader):
    alive = alive_at(reader, 1 * S, range(2, 3))
    assert in_mb(alive, reader) == {"chars": 12, "objects": 5, "read": 3}
    assert (alive.bytes, alive.blocks) == (20 * MB, 9)


def test_a_range_of_pages_is_added_up(reader):
    assert in_mb(alive_at(reader, 1 * S, range(1, 3)), reader) == {
        "chars": 22,
        "objects": 5,
        "read": 3,
    }
    # what the last frame before a moment says holds at that moment
    assert alive_at(reader, 2 * S - 1, range(1, 2)).bytes == 10 * MB
    assert alive_at(reader, 9 * S, range(1, 2)).bytes == 0
    assert in_mb(alive_at(reader, 9 * S, range(1, 10)), reader) == {
        "chars": 12,
        "objects": 5,
        "read": 7,
    }


def test_outside_any_page_and_the_whole_heap(reader):
    assert in_mb(alive_at(reader, 1 * S, range(1)), reader) == {"": 1}
    assert in_mb(alive_at(reader, 1 * S), reader) == {"chars": 22, "objects": 5, "": 1}


def test_before_the_first_frame_nothing_is_known(reader):
    assert alive_at(reader, 0, range(1, 3)).sites == {}
    assert alive_at(reader, 0).gap == "The heap was not measured at that moment."


def test_the_exact_engine_knows_the_heap_but_not_the_page(tmp_path):
    with RecordingReader(build(tmp_path / "exact.p87")) as reader:
        assert alive_at(reader, 1 * S).bytes == 17 * MB
        page = alive_at(reader, 1 * S, range(1, 2))
    assert page.gap.startswith("The exact engine does not know in which unit")
    assert stack_tree(page, {}) == []
    assert icicle([], gap=page.gap).layout.annotations[0].text == page.gap


def test_the_tree_of_page_2(reader):
    nodes = stack_tree(alive_at(reader, 1 * S, range(2, 3)), reader.sites(), label="page 2")

    # all stacks begin in main, which is folded into the root; the largest branch comes first
    names = {node.id: node.place.label for node in nodes}
    assert [
        (node.place.label, names.get(node.parent), node.bytes // MB, node.own_bytes // MB)
        for node in nodes
    ] == [
        ("page 2", None, 20, 0),
        ("pdfplumber/page.py:412 in objects", "page 2", 17, 5),
        ("pdfplumber/page.py:430 in chars", "pdfplumber/page.py:412 in objects", 12, 12),
        ("app/ingest.py:14 in read", "page 2", 3, 3),
    ]
    assert nodes[0].place.detail == "All stacks begin with: app/ingest.py:9 in main"
    assert nodes[0].blocks == 9


@pytest.mark.parametrize(
    ("group", "labels"),
    [
        ("function", ["chars in pdfplumber/page.py", "objects in pdfplumber/page.py"]),
        ("file", ["pdfplumber/page.py"]),
        ("library", ["pdfplumber"]),
    ],
)
def test_groups_join_neighbours_of_a_stack(reader, group, labels):
    nodes = stack_tree(alive_at(reader, 1 * S, range(2, 3)), reader.sites(), group)
    assert sorted(n.place.label for n in nodes if "pdfplumber" in n.place.label) == labels
    assert nodes[0].bytes == 20 * MB


def test_calls_back_and_forth_between_libraries_stay_apart():
    frames = [MAIN, OBJECTS, JSON, OBJECTS]
    sites = {n: Site(n, n - 1 or None, *astuple(f)) for n, f in enumerate(frames, start=1)}
    (stack,) = top_stacks(Alive(0, {4: (8, 1)}), sites, "library")
    assert [place.label for place in stack.places] == [
        "own code",
        "pdfplumber",
        "standard library",
        "pdfplumber",
    ]


def test_the_stacks_that_hold_most(reader):
    stacks = top_stacks(alive_at(reader, 1 * S, range(2, 3)), reader.sites(), most=2)

    assert [([p.function for p in s.places], s.bytes, s.blocks, s.share) for s in stacks] == [
        (["main", "objects", "chars"], 12 * MB, 6, 0.6),
        (["main", "objects"], 5 * MB, 2, 0.25),
    ]
    assert stack_table(stacks).loc[0].to_dict() == {
        "allocated in": "pdfplumber/page.py:430 in chars",
        "alive": "12.0 MB",
        "share": "60.0 %",
        "blocks": "6",
        "called from": "pdfplumber/page.py:412 in objects ← app/ingest.py:9 in main",
    }


def test_callers_that_go_round_in_a_circle_end():
    # given a file that somebody wrote by hand
    sites = {1: Site(1, 2, "/a.py", 1, "a"), 2: Site(2, 1, "/a.py", 2, "b")}
    (stack,) = top_stacks(Alive(0, {1: (8, 1)}), sites)
    assert [place.function for place in stack.places] == ["a"]


parents = st.lists(st.integers(0, 200), min_size=1, max_size=200)


@settings(max_examples=60, deadline=None)
@given(
    parents=parents,
    sizes=st.lists(st.integers(1, 1000), min_size=200, max_size=200),
    most=st.integers(2, 40),
)
def test_parents_add_up_to_their_children(parents, sizes, most):
    # given any tree of sites, each of which holds something
    sites = {
        number: Site(number, min(parent, number - 1) or None, f"/{number % 9}.py", number, "f")
        for number, parent in enumerate(parents, start=1)
    }
    alive = Alive(0, {number: (sizes[number - 1], 1) for number in sites})

    nodes = stack_tree(alive, sites, most=most)

    assert len(nodes) <= most
    assert nodes[0].bytes == alive.bytes
    assert len({node.id for node in nodes}) == len(nodes)
    below, blocks = defaultdict(int), defaultdict(int)
    for node in nodes:
        below[node.parent] += node.bytes
        blocks[node.parent] += node.blocks
    known = set()
    for node in nodes:
        assert node.parent in known or not node.parent
        known.add(node.id)
        assert node.bytes == node.own_bytes + below[node.id]
        assert node.blocks >= blocks[node.id]


def test_small_branches_become_other(reader):
    sites = {1: Site(1, None, "/a.py", 1, "main")}
    sites |= {n: Site(n, 1, "/a.py", n, f"f{n}") for n in range(2, 12)}
    alive = Alive(0, {n: (100 - n, 1) for n in range(2, 12)})

    nodes = stack_tree(alive, sites, most=4)

    assert [(node.place.label, node.bytes) for node in nodes[1:]] == [
        ("other", sum(100 - n for n in range(4, 12))),
        ("a.py:2 in f2", 98),
        ("a.py:3 in f3", 97),
    ]
    assert nodes[1].place.detail == "8 smaller branches."


def test_the_icicle(reader):
    nodes = stack_tree(alive_at(reader, 1 * S, range(2, 3)), reader.sites(), label="page 2")

    for dark in (False, True):
        (trace,) = icicle(nodes, dark=dark).data
        assert list(trace.values) == [20 * MB, 17 * MB, 12 * MB, 3 * MB]
        assert list(trace.ids) == [node.id for node in nodes]
        assert trace.branchvalues == "total"
        assert trace.labels[:2] == ("page 2", "objects page.py:412")
        assert trace.text[:2] == ("page 2, 20.0 MB", "objects page.py:412, 17.0 MB")
        assert trace.hovertext[1] == (
            "pdfplumber/page.py:412 in objects<br>17.0 MB, 85.0 % of what is shown<br>8 blocks"
            "<br>5.0 MB allocated right here"
            "<br>/srv/venv/lib/python3.11/site-packages/pdfplumber/page.py:412 in objects"
        )
        # one library, one colour; another one another
        assert trace.marker.colors[1] == trace.marker.colors[2] != trace.marker.colors[3]


def test_a_narrow_rectangle_has_as_much_of_its_name_as_fits():
    sites = {1: Site(1, None, "/a.py", 1, "wide"), 2: Site(2, None, "/b.py", 2, "x" * 40)}
    (trace,) = icicle(stack_tree(Alive(0, {1: (900, 1), 2: (100, 1)}), sites)).data
    assert trace.text[1:] == ("wide a.py:1, 900 B", "x" * 16 + "…")


def test_labels_are_text_not_markup():
    sites = {1: Site(1, None, "<string>", 1, "<module>"), 2: Site(2, 1, "/a.py", 2, "<listcomp>")}
    nodes = stack_tree(Alive(0, {1: (3, 1), 2: (8, 1)}), sites)
    (trace,) = icicle(nodes).data
    assert trace.labels[1] == "&lt;module&gt; &lt;string&gt;:1"
    assert "<listcomp>" not in "".join(trace.hovertext)
