"""What the Leaks page and the Overview say, and the tables and figures behind them."""

import re
from pathlib import Path

import pytest
from births import MAIN, MB, OBJECTS, S, leak
from hand_built import build
from kinds_runs import Holder, Link, Run, write
from streamlit.testing.v1 import AppTest

from diagnostics.analysis.drops import Drop
from diagnostics.analysis.held_graph import Step, read_graph, steps
from diagnostics.analysis.kinds import KINDS
from diagnostics.analysis.stacks import Stacks
from diagnostics.analysis.suspect_table import suspect_table
from diagnostics.analysis.suspects import best_capture, suspects_of
from diagnostics.analysis.type_counts import (
    CountMark,
    TypeCourse,
    count_marks,
    course_table,
    type_courses,
)
from diagnostics.figures.drops import mark_drops
from diagnostics.figures.holders import HolderEdge, holder_view
from diagnostics.figures.object_types import types_over_units
from diagnostics.figures.theme import framed
from diagnostics.launch.app import AppSettings
from diagnostics.recording.model import (
    Capture,
    ChainLink,
    Frame,
    HeldObject,
    Outcome,
    Reference,
    Suspect,
    UnitRow,
)
from diagnostics.recording.reader import RecordingReader
from diagnostics.recording.writer import RecordingWriter
from pages.common.prose import code, code_line, prose
from pages.components.holders.component import encode
from pages.overview import rerun

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PAGE87_RECORDINGS", str(tmp_path))
    monkeypatch.chdir(ROOT)
    monkeypatch.syspath_prepend(str(ROOT))
    return tmp_path


def shown(page, recording):
    app = AppTest.from_file(str(ROOT / "pages/router/script.py"), default_timeout=30)
    app.query_params["recording"] = recording
    app.run()
    app.switch_page(f"../{page}/page.py").run()
    assert not app.exception, app.exception
    return app


def texts(app):
    return "\n".join(element.value for element in (*app.markdown, *app.caption))


# -- a graph that can be counted with a pencil -----------------------------------------------------

MODULE, CACHE, CHUNK, WORDS, INDEX, SHAPE, ALONE, LOST = range(1, 9)


def held(key, kind, name="", size=64, count=1, root="", unit=None, site=None, file="", line=0):
    return HeldObject(1, key, kind, name, size, count, root, unit, site, file, line)


def write_graph(path):
    """``module app -> CACHE -> [7] Chunk -> .words str``; an Index refers to the chunk and has a
    shape. Two objects refer to each other and are not reached from the chain."""
    writer = RecordingWriter(path, {"settings": {"engine": "sampled"}})
    site = writer.site([MAIN, OBJECTS])
    writer.put_units([UnitRow(1, "page", "page 1", S, 2 * S, "finished")])
    wrong = {CHUNK, WORDS}
    writer.put_capture(
        Capture(1, 2 * S, 1, "end of the run", 5_000_000, 900, True, ""),
        [
            Suspect(1, 1, site, "builtins.str", 3 * MB, 2_000, 1, 1, 1, 1.0),
            Suspect(1, 2, None, "app.Node", MB, 10, 1, 1, 1, 0.5),
        ],
        [
            held(MODULE, "builtins.module", "app", root="module", file="/srv/app.py"),
            held(CACHE, "builtins.dict", "CACHE"),
            held(CHUNK, "app.Chunk", count=40),
            held(WORDS, "builtins.str", size=114, count=4_000, unit=1, site=site),
            held(INDEX, "app.Index"),
            held(SHAPE, "builtins.tuple"),
            held(ALONE, "builtins.list"),
            held(LOST, "builtins.list"),
        ],
        [
            Reference(1, MODULE, CACHE, ".CACHE"),
            Reference(1, CACHE, CHUNK, "[7]"),
            Reference(1, CHUNK, WORDS, ".words"),
            Reference(1, INDEX, CHUNK, ".newest"),
            Reference(1, INDEX, SHAPE, ".shape"),
            Reference(1, ALONE, LOST, "[0]"),
            Reference(1, LOST, ALONE, "[0]"),
        ],
        [
            ChainLink(1, 1, 1, place, key, 6, key in wrong)
            for place, key in enumerate((MODULE, CACHE, CHUNK, WORDS))
        ],
    )
    writer.put_outcome(Outcome("finished", "The loader returned.", 3 * S, 1))
    writer.close()
    return path


def write_import(path, *, and_leak):
    """A library that page 1 imported left 12 MB of code; with ``and_leak`` there are 3 MB of own
    objects too."""
    writer = RecordingWriter(path, {"settings": {"engine": "sampled"}})
    own = writer.site([MAIN, OBJECTS])
    importing = writer.site([MAIN, Frame("<frozen importlib._bootstrap>", 241, "_call")])
    writer.put_units([UnitRow(1, "page", "page 1", S, 2 * S, "finished")])
    suspects = [Suspect(1, 1, importing, "builtins.code", 12 * MB, 9_000, 1, 1, 1, 1.0)]
    if and_leak:
        suspects.append(Suspect(1, 2, own, "app.Node", 3 * MB, 10, 1, 1, 1, 1.0))
    writer.put_capture(
        Capture(1, 2 * S, 1, "end of the run", 5_000_000, 900, True, ""), suspects, [], [], []
    )
    writer.put_outcome(Outcome("finished", "The loader returned.", 3 * S, 1))
    writer.close()


@pytest.fixture
def reader(tmp_path):
    with RecordingReader(write_graph(tmp_path / "graph.p87")) as opened:
        yield opened


@pytest.fixture
def graph(reader):
    return read_graph(reader, reader.captures()[0])


@pytest.fixture
def view(reader, graph):
    return holder_view(graph, graph.chains[1][0], Stacks(reader.sites()))


def test_a_chain_is_told_step_by_step_with_its_likely_wrong_references(graph):
    assert steps(graph, graph.chains[1][0]) == [
        Step("", "module app", "app.py", False),
        Step(".CACHE", "dict", "", False),
        Step("[7]", "Chunk", "one of 40", True),
        Step(".words", "str", "4,000 objects alike", True),
    ]


def test_the_chain_that_stands_for_most_others_comes_first(tmp_path):
    chain = [Link("builtins.module", root="module", name="app"), Link("app.Chunk", ".chunk")]
    path = write(tmp_path / "run.p87", Run(held=[Holder(MB, chain, alike=2)]))
    with RecordingReader(path) as reader:
        assert [len(links) for links in read_graph(reader, reader.captures()[0]).chains[1]] == [2]


def test_the_picture_has_what_can_be_reached_and_starts_with_the_chain(view):
    assert view.chain == (MODULE, CACHE, CHUNK, WORDS)
    assert {node.id for node in view.nodes} == {MODULE, CACHE, CHUNK, WORDS, INDEX, SHAPE}
    assert [edge for edge in view.edges if edge.likely_wrong] == [
        HolderEdge(CACHE, CHUNK, "[7]", True),
        HolderEdge(CHUNK, WORDS, ".words", True),
    ]
    assert view.words == "`CACHE` (module app) -> `Chunk[7]` -> 4,000 `str`"


def test_a_box_says_what_is_known_of_its_object(view):
    nodes = {node.id: node for node in view.nodes}
    root, words = nodes[MODULE], nodes[WORDS]
    assert (root.lead, root.title, root.note, root.root) == ("module", "app", "app.py", True)
    assert (words.lead, words.title, words.note) == ("", "str", "4,000 × 114 B")
    assert words.facts == (
        ("Type", "builtins.str"),
        ("Own size", "114 B each"),
        ("Alike", "4,000 objects"),
        ("Born in", "page 1"),
    )
    assert view.stacks[words.stack] == (
        "pdfplumber/page.py:412 in objects",
        "app/ingest.py:9 in main",
    )


def test_what_the_browser_gets_is_plain_json(view):
    data = encode(view)
    assert data["chain"] == [1, 2, 3, 4]
    assert data["nodes"][0][:5] == [1, "module", "app", "app.py", True]
    assert [CACHE, CHUNK, "[7]", True] in data["edges"]
    assert len(data["stacks"]) == 1


def test_the_table_names_what_people_can_change(reader):
    capture = best_capture(reader)
    table = suspect_table(suspects_of(reader, capture, Stacks(reader.sites())))
    assert table.to_dict("records") == [
        {
            "alive": "3.0 MB",
            "share": 75.0,
            "what": "2,000 blocks (str)",
            "born in": "page 1",
            "steadiness": 100.0,
            "allocated in": "app/ingest.py:9 in main",  # not the library's line below it
            "held by": "CACHE of module app",
        },
        {
            "alive": "1.0 MB",
            "share": 25.0,
            "what": "10 blocks (Node)",
            "born in": "page 1",
            "steadiness": 50.0,
            "allocated in": "not known",
            "held by": "not found",
        },
    ]


# -- types -----------------------------------------------------------------------------------------


@pytest.fixture
def counted(tmp_path):
    """Pages 1 to 3, counted at the ends of 1 and 2 and after the run: a chunk a page more, twice as
    many at the end; lists come and go; dicts become fewer."""
    writer = RecordingWriter(tmp_path / "types.p87", {})
    chunk, plain, other = map(writer.type_id, ("app.Chunk", "list", "dict"))
    writer.put_units([UnitRow(n, "page", f"page {n}", n * S, (n + 1) * S) for n in (1, 2, 3)])
    for t_ns, unit, counts in [
        (2 * S, 1, (100, 50, 9)),
        (3 * S, 2, (200, 40, 8)),
        (5 * S, 0, (400, 60, 7)),
    ]:
        keyed = zip((chunk, plain, other), counts, strict=True)
        writer.add_frame("types", t_ns, unit, {key: (count,) for key, count in keyed})
    writer.put_outcome(Outcome("finished", "The loader returned.", 5 * S, 3))
    writer.close()
    with RecordingReader(tmp_path / "types.p87") as reader:
        yield reader


def test_types_are_followed_since_the_first_count(counted):
    marks = count_marks(counted)
    assert marks == [CountMark(2 * S, 1, 2), CountMark(3 * S, 2, 3), CountMark(5 * S, 0, 3)]
    courses = type_courses(counted, marks)
    assert courses == [TypeCourse("app.Chunk", (100, 200, 400)), TypeCourse("list", (50, 40, 60))]
    assert [course.growth for course in courses] == [300, 10]
    assert [course.steadiness for course in courses] == [1, 0.5]


def test_types_are_followed_since_a_later_unit(counted):
    courses = type_courses(counted, count_marks(counted)[1:])
    assert courses == [TypeCourse("app.Chunk", (200, 400)), TypeCourse("list", (40, 60))]
    assert course_table(courses).iloc[0].tolist() == ["app.Chunk", "200", "400", "+200", 100]


def test_one_count_tells_no_growth(counted):
    assert type_courses(counted, count_marks(counted)[:1]) == []


def test_the_last_count_stands_at_the_newest_unit(counted):
    marks = count_marks(counted)
    figure = types_over_units(type_courses(counted, marks), marks)
    chunk = figure.data[0]
    assert list(chunk.x) == [1, 2, 3]
    assert list(chunk.y) == [0, 100, 300]
    assert chunk.text[1] == "app.Chunk<br>+100 to 200 at the end of page 2"
    assert chunk.text[2] == "app.Chunk<br>+300 to 400 outside any page, at 5.0 s"
    assert figure.layout.title.text == "More objects than at the end of page 1, by type"


def test_a_drop_says_what_freed_it():
    figure = framed("Memory over time", "time (s)", "memory (bytes)", dark=False)
    mark_drops(
        figure,
        [
            Drop(S, 2 * S, 9 * MB, 4 * MB, 0, 0, "reference count", True),
            Drop(3 * S, 4 * S, 9 * MB, 2 * MB, 5_000, 5 * MB, "collector", False),
        ],
    )
    collected, counted = figure.data
    assert (collected.name, counted.name) == ("drop by collector", "drop by reference count")
    assert (list(counted.x), list(counted.y)) == ([2], [4 * MB])
    assert counted.text[0] == "9.0 MB to 4.0 MB at 2.0 s: freed by the reference count"
    assert "collections freed 5,000 objects with 5.0 MB meanwhile" in collected.text[0]
    assert collected.text[0].endswith("estimated: both may have had a part")


# -- words from a recording ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "markdown"),
    [
        ("held by `pdf`", "held by `pdf`"),
        ("![x](http://a/b)", r"\!\[x\]\(http\://a/b\)"),
        ("a `b ![c](d)` e", "a `b ![c](d)` e"),
        ("a lone ` here", r"a lone \` here"),
        ("<img src=x>\n:red[y]", r"\<img src\=x\> \:red\[y\]"),
    ],
)
def test_names_in_sentences_are_code_and_nothing_else_is_markdown(text, markdown):
    assert prose(text) == markdown


def test_a_line_of_source_keeps_its_spaces():
    assert code_line("    return a  # b\n") == "`    return a  # b`"
    assert code_line("\tx = '`'") == "``        x = '`'``"
    assert code_line("   \n") == ""


def test_code_cannot_be_left_by_a_backtick():
    assert code("a`b") == "``a`b``"
    assert code("`![x](y)`") == "`` `![x](y)` ``"


# -- the pages -------------------------------------------------------------------------------------


def test_without_a_capture_the_page_says_what_to_do(folder):
    build(folder / "built.p87")
    app = shown("leaks", "built.p87")
    assert any("holds no capture" in info.value for info in app.info)
    assert any("Record it again" in info.value for info in app.info)


def test_the_leaks_page_shows_stack_and_chain_of_the_first_suspect(folder):
    write_graph(folder / "graph.p87")
    app = shown("leaks", "graph.p87")
    said = texts(app)
    assert prose("3.0 MB in 2,000 blocks (str), born in page 1") in said
    assert "- **`app/ingest.py:9 in main`**\n- `pdfplumber/page.py:412 in objects`" in said
    assert "1. `[7]` → **Chunk** · one of 40 :red-badge[cut here]" in said


def test_the_own_line_is_shown_however_deep_in_a_library_it_was_allocated(folder):
    # given 2 lines of one's own and 10 of a library below them: 8 are shown, and the own one
    own = (Frame("/srv/app/ingest.py", 3, "main"), Frame("/srv/app/ingest.py", 7, "load"))
    deep = "/srv/venv/lib/python3.11/site-packages/docx/api.py"
    stack = (*own, *(Frame(deep, line, "f") for line in range(1, 11)))
    chain = (Link("module", root="module", name="app"), Link("builtins.list", ".kept"))
    run = Run(python=leak(1 * MB), held=(Holder(19 * MB, chain),), stack=stack)
    write(folder / "deep.p87", run)
    said = texts(shown("leaks", "deep.p87"))
    assert (
        "- *1 call further out*\n- **`app/ingest.py:7 in load`**\n- *2 calls between*\n"
        "- `docx/api.py:3 in f`"
    ) in said


def test_a_cycle_is_named_as_what_holds_it_and_not_as_no_referrer(folder):
    chain = (
        Link("", root="unknown", name="a cycle of references"),
        Link("app.Page", ".page"),
        Link("builtins.dict", ".__dict__"),
    )
    write(folder / "cycle.p87", Run(python=leak(1 * MB), held=(Holder(19 * MB, chain),)))
    app = shown("leaks", "cycle.p87")
    assert "1. **a cycle of references**" in texts(app)
    assert "no Python referrer" not in texts(app)
    [table] = app.dataframe
    assert list(table.value["held by"]) == ["a cycle of references"]


def write_choices(path):
    """Two captures alike, with one suspect that is held in two ways; the types counted 4 times."""
    writer = RecordingWriter(path, {"settings": {"engine": "sampled"}})
    writer.put_units([UnitRow(n, "page", f"page {n}", n * S, (n + 1) * S) for n in (1, 2, 3)])
    for number in (1, 2):
        writer.put_capture(
            Capture(number, number * S, number, "asked for", 5_000_000, 900, True, ""),
            [Suspect(number, 1, None, "app.Node", MB, 10, 1, 1, 1, 1.0)],
            [
                HeldObject(number, 1, "builtins.module", "app", 64, 1, "module", None, None, "", 0),
                HeldObject(number, 2, "app.Node", "", 64, 1, "", 1, None, "", 0),
            ],
            [Reference(number, 1, 2, ".node")],
            [
                ChainLink(number, 1, way, place, key, 3 - way, False)
                for way in (1, 2)
                for place, key in enumerate((1, 2))
            ],
        )
    for place in range(1, 5):
        counted = {writer.type_id("app.Node"): (100 * place,)}
        writer.add_frame("types", place * S + S, min(place, 3), counted)
    writer.put_outcome(Outcome("finished", "The loader returned.", 6 * S, 3))
    writer.close()


def choices(app):
    """What the reader may choose among suspects, and what stands there."""
    return [box.value for box in (*app.selectbox, *app.segmented_control)]


def test_what_was_chosen_in_one_recording_is_not_chosen_in_the_next(folder):
    # given a capture and a way chosen in one recording, which are not those shown at first
    for name in ("former.p87", "next.p87"):
        write_choices(folder / name)
    app = shown("leaks", "former.p87")
    assert choices(app) == [2, "suspects", 0]
    app.selectbox[0].set_value(1).run()
    app.segmented_control[1].set_value(1).run()
    assert choices(app) == [1, "suspects", 1]
    # when another one is opened in the same session, then its best capture and first way show
    app.query_params["recording"] = "next.p87"
    app.run()
    assert not app.exception
    assert choices(app) == [2, "suspects", 0]


def test_the_count_to_start_from_belongs_to_its_recording(folder):
    for name in ("former.p87", "next.p87"):
        write_choices(folder / name)
    app = shown("leaks", "former.p87")
    app.segmented_control(key="leaks-view").set_value("types").run()
    app.select_slider[0].set_value(2).run()
    assert app.dataframe[0].value["growth"].tolist() == ["+100"]
    app.query_params["recording"] = "next.p87"
    app.run()
    assert app.select_slider[0].value == 0
    assert app.dataframe[0].value["growth"].tolist() == ["+300"]


def test_the_graph_of_one_recording_is_not_opened_in_the_next(folder):
    # given two recordings whose first chains have the same numbers: the browser keeps the picture
    # of a chain for as long as the component's key is the same
    drawn = []
    for name in ("former.p87", "next.p87"):
        write_choices(folder / name)
        app = shown("leaks", name)
        drawn += [
            element.proto.id
            for element in app.main
            if "bidi" in type(element.proto).__name__.lower()
        ]
    former, newer = drawn
    assert former != newer


def test_the_types_view_starts_at_the_first_count(folder):
    build(folder / "built.p87")
    app = shown("leaks", "built.p87")
    app.segmented_control(key="leaks-view").set_value("types").run()
    assert not app.exception
    assert app.dataframe[0].value["type"].tolist() == ["pdfminer.layout.LTChar", "list"]


LEAK = Run(
    python=leak(MB),
    held=[
        Holder(
            19 * MB,
            [
                Link("builtins.frame", root="frame", name="load"),
                Link("app.Document", "document", name="document"),
                Link("builtins.list", ".pages"),
                Link("builtins.bytes", "[3]"),
            ],
        )
    ],
)


def test_the_overview_opens_with_the_verdict_its_evidence_and_the_fix(folder):
    write(folder / "leak.p87", LEAK)
    app = shown("overview", "leak.p87")
    said = texts(app)
    assert said.index("Per\\-unit cache kept on the document") < said.index("What to do")
    assert any(metric.label == "This explains" for metric in app.metric)
    assert "Release each unit after its last use" in said


def test_what_was_imported_is_no_suspect_but_is_told(folder):
    write_import(folder / "both.p87", and_leak=True)
    app = shown("leaks", "both.p87")
    [table] = [frame.value for frame in app.dataframe]
    assert table["what"].tolist() == ["10 blocks (Node)"]
    assert table["share"].tolist() == [100.0]
    assert "Left out: 12.0 MB of code and classes" in texts(app)


def test_an_import_alone_leaves_nothing_behind(folder):
    write_import(folder / "import.p87", and_leak=False)
    app = shown("leaks", "import.p87")
    assert not app.dataframe
    assert [message.value for message in app.success] == [
        "Nothing that old units left behind was found."
    ]
    assert "Left out: 12.0 MB of code and classes" in texts(app)


def test_nothing_wrong_is_a_verdict_too(folder):
    write(folder / "fine.p87", Run())
    app = shown("overview", "fine.p87")
    assert "Nothing wrong :green-badge[sure]" in texts(app)
    assert not any(metric.label == "This explains" for metric in app.metric)


def test_the_card_of_an_undecided_verdict_names_its_rival_and_what_would_decide(folder):
    # given a list of the script that gets 100 kB a page, which is its result or a registry
    chain = (
        Link("module", root="module", name="__main__"),
        Link("builtins.list", ".kept"),
        Link("builtins.str", "[0]"),
    )
    held = (Holder(1_900_000, chain, type="builtins.str"),)
    run = Run(python=leak(100_000), peak=lambda page: 60 * MB, held=held)
    write(folder / "kept.p87", run)
    lines = [element.value for element in shown("overview", "kept.p87").markdown]
    # 61.9 MB were taken at most: 60 MB above the start of the last page, where 19 had 1.9 MB
    size = prose("(1.9 MB, 3.1 %)")
    rival = f"**It may also be:** registry, task set, closure, finalizer or logger {size}"
    decides = "**What would decide:** The same document read as a stream"
    assert [line == rival for line in lines].count(True) == 1
    assert [line.startswith(decides) for line in lines].count(True) == 1


def test_a_decided_verdict_has_no_rival_on_its_card(folder):
    write(folder / "leak.p87", LEAK)
    assert "It may also be" not in texts(shown("overview", "leak.p87"))


def test_no_chart_of_the_overview_stands_in_half_of_the_window(folder):
    # In a narrow window the labels of the settlement's steps would run into each other.
    write(folder / "leak.p87", LEAK)
    app = shown("overview", "leak.p87")
    assert len(app.get("plotly_chart")) >= 4
    assert not any(column.get("plotly_chart") for column in app.columns)


def write_unmeasured(
    path, document, command="page87 run --loader pypdf --engine none", loader="pypdf"
):
    """Five pages of a document with the engine off: nobody knows what they left behind."""
    meta = {
        "command": f"{command} {document}",
        "document": {"name": document.name, "loader": loader} if loader else None,
        "settings": {"engine": "none"},
    }
    writer = RecordingWriter(path, meta)
    writer.put_units(
        [UnitRow(n, "page", f"page {n}", n * S, (n + 1) * S, "finished") for n in range(1, 6)]
    )
    writer.put_outcome(Outcome("finished", "The loader returned.", 7 * S, 5))
    writer.close()


def fields_after_the_button(recording):
    app = shown("overview", recording)
    assert "What would decide" in texts(app)
    app.button(key="rerun").click().run()
    assert not app.exception
    assert [title.value for title in app.title] == ["Record"]
    return app


def test_the_measurement_that_decides_leads_to_the_form_filled_in(folder):
    pytest.importorskip("diagnostics.probes._heap", reason="the sampled engine was not built")
    write_unmeasured(folder / "off.p87", ROOT / "sample_docs" / "annual-report.pdf")
    app = fields_after_the_button("off.p87")
    assert app.selectbox(key="engine").value == "sampled"
    assert app.selectbox(key="sample").value == "annual-report.pdf"
    assert app.selectbox(key="loader-for-.pdf").value == "pypdf"


def test_each_kind_beside_the_verdict_has_its_fix_on_the_card(folder):
    # given 4 MB a page that the document holds, and page 13 with 90 MB
    chain = (Link("frame", root="frame", name="load"), Link("pypdf.PdfReader", ".reader"))
    run = Run(
        python=leak(4 * MB),
        peak=lambda page: 90 * MB if page == 13 else 5 * MB,
        held=(Holder(76 * MB, (*chain, Link("builtins.list", ".pages"))),),
    )
    write(folder / "two.p87", run)
    app = shown("overview", "two.p87")
    told = texts(app)
    # a metric's line is cut where it does not fit: what the second figure is stands in the help
    [explains] = [metric for metric in app.metric if metric.label == "This explains"]
    assert re.fullmatch(r"\d[\d.]* % of \d[\d.]* MB", explains.delta)
    assert "took at most, above its start" in explains.help
    assert told.count("**What to do**") == 1
    assert told.count("**What to do about it**") == 1
    for kind in (1, 14):
        assert prose(KINDS[kind].fix) in told


def test_only_what_the_record_page_can_do_is_offered():
    assert rerun.can_make({"settle": True})
    assert not rerun.can_make({})
    assert rerun.can_make({"where": "child"})
    assert not rerun.can_make({"collector": True})
    assert not rerun.can_make({"strategy": "stream"})


def test_a_document_of_ones_own_is_filled_in_by_its_path(folder):
    document = folder / "mine.pdf"
    document.write_bytes(b"%PDF-1.4")
    write_unmeasured(folder / "off.p87", document)
    app = fields_after_the_button("off.p87")
    assert app.text_input(key="path").value == str(document)


def no_button_but(recording):
    app = shown("overview", recording)
    assert "What would decide" in texts(app)
    assert not [button for button in app.button if button.key == "rerun"]
    return texts(app)


def test_a_document_that_is_gone_is_not_swapped_for_another_one(folder):
    write_unmeasured(folder / "off.p87", folder / "gone.pdf")
    told = no_button_but("off.p87")
    assert f"`{folder}/gone.pdf` is not there, seen from this app" in told
    assert f"`page87 run --engine sampled --loader pypdf {folder}/gone.pdf`" in told


def test_a_loader_of_ones_own_is_not_swapped_for_another_one(folder):
    report = ROOT / "sample_docs" / "annual-report.pdf"
    write_unmeasured(
        folder / "off.p87", report, "page87 run --loader mine:load", loader="mine:load"
    )
    told = no_button_but("off.p87")
    assert "This app was not opened with the loader `mine:load`" in told
    assert f"`page87 run --engine sampled --loader mine:load {report}`" in told


def test_a_loader_of_ones_own_that_the_app_was_opened_with_is_filled_in(folder, monkeypatch):
    report = ROOT / "sample_docs" / "annual-report.docx"
    for name, value in AppSettings(loaders=("mine:load",)).to_environment().items():
        monkeypatch.setenv(name, value)
    write_unmeasured(
        folder / "off.p87", report, "page87 run --loader mine:load", loader="mine:load"
    )
    app = fields_after_the_button("off.p87")
    assert app.selectbox(key="sample").value == "annual-report.docx"
    assert app.selectbox(key="loader-for-.docx").value == "mine:load"


def test_a_program_that_records_itself_is_told_what_to_write(folder):
    write_unmeasured(folder / "off.p87", Path("x.docx"), "own.py a_cache", loader=None)
    told = no_button_but("off.p87")
    assert '`record(engine="sampled", captures=True)`' in told


def test_a_command_line_that_cannot_be_read_is_told(folder):
    # given a recording whose program named a command with a quote that never ends
    document = folder / "mine.pdf"
    document.write_bytes(b"%PDF-1.4")
    write_unmeasured(folder / "off.p87", document, command="it's mine")
    assert prose("cannot be read (No closing quotation)") in no_button_but("off.p87")
