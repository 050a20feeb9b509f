"""The verdict in text and JSON, the table of kinds, and what is known of libraries."""

import json

import pytest
from births import MB, leak
from kinds_runs import LOAD, Holder, Link, Run, write

from diagnostics.analysis.kinds import KINDS, judge
from diagnostics.analysis.kinds.libraries import advice, libraries
from diagnostics.analysis.kinds.rules import RULES
from diagnostics.analysis.suspect_table import suspect_table
from diagnostics.analysis.suspects import suspects_json
from diagnostics.analysis.verdict_text import suspect_lines, verdict_json, verdict_lines
from diagnostics.recording.reader import RecordingReader

CHAIN = (
    Link("frame", root="frame", name="load"),
    Link("pdfplumber.pdf.PDF", ".pdf"),
    Link("builtins.list", ".pages"),
    Link("pdfplumber.page.Page", "[3]"),
)


@pytest.fixture
def judged(tmp_path):
    run = Run(python=leak(1 * MB), held=(Holder(19 * MB, CHAIN, type="pdfplumber.page.Page"),))
    with RecordingReader(write(tmp_path / "run.p87", run)) as reader:
        return judge(reader)


def test_every_kind_has_a_title_a_fix_and_a_rule():
    assert list(KINDS) == list(range(20))
    assert set(RULES) == set(range(1, 20))
    assert all(row.title and row.fix for row in KINDS.values() if row.number)


def test_every_entry_of_the_libraries_is_about_kinds_that_exist():
    assert {kind for entry in libraries() for kind in entry.kinds} <= set(KINDS)
    assert all(entry.call and entry.hint and entry.package for entry in libraries())


def test_the_first_library_that_has_advice_gives_it():
    assert advice(1, ["numpy", "pdfplumber", "pypdf"])[0].startswith("pdfplumber: page.close()")
    assert advice(1, ["numpy"]) == []


def test_a_capture_that_was_cut_off_is_not_to_be_taken_again_in_the_same_way(tmp_path):
    # given a suspect whose chain the capture had no time for
    run = Run(python=leak(1 * MB), held=(Holder(19 * MB, ()),), steps=None)
    told = {}
    for cut_off in (False, True):
        path = write(tmp_path / f"{cut_off}.p87", run.but(cut_off=cut_off))
        with RecordingReader(path) as reader:
            told[cut_off] = judge(reader).rerun
    assert told[True].options == told[False].options == {}
    assert "the time was too short" in told[True].why
    assert "while it is in use" in told[False].why


CYCLE = (Link("builtins.dict", root="unknown", name="a cycle of references"), Link("Page", "[1]"))


@pytest.mark.parametrize(
    ("chain", "how"), [((), "no holder was found"), (CYCLE, "the search ended in a cycle")]
)
def test_a_large_suspect_without_a_root_is_told_as_undecided(tmp_path, chain, how):
    # given a page that takes 60 MB at a time, beside 30 MB that two of three pages left behind
    def kept(page):
        return {unit: 1_500_000 for unit in range(1, page + 1) if unit % 3}

    run = Run(
        pages=30,
        python=kept,
        peak=lambda page: 60 * MB if page == 20 else 2 * MB,
        during=lambda page: 60 * MB if page == 20 else 2 * MB,
        held=(Holder(30 * MB, chain, units=20),),
        steps=None,
    )
    with RecordingReader(write(tmp_path / "run.p87", run)) as reader:
        found = judge(reader)
    assert found.main.number == 14
    assert not found.stacked
    assert found.unexplained in found.alternatives
    assert found.unexplained.bytes == 30 * MB
    [line] = [line for line in verdict_lines(found) if how in line]
    assert "30.0 MB in 100 blocks" in line
    assert "ingest.py:12 in load" in line
    assert any(line.startswith("And, not decided  30.0 MB") for line in verdict_lines(found))


def test_a_suspect_that_a_finding_explains_is_told_once(judged):
    assert judged.unexplained is None


def test_without_a_capture_one_is_what_would_decide(tmp_path):
    with RecordingReader(write(tmp_path / "run.p87", Run(python=leak(1 * MB)))) as reader:
        assert judge(reader).rerun.options == {"engine": "sampled", "capture": True}


def test_the_json_form_holds_the_contract(judged):
    found = verdict_json(judged)
    assert json.loads(json.dumps(found)) == found
    assert found["kind"] == 1
    assert found["title"] == "per-unit cache kept on the document"
    assert found["confidence"] == 0.9
    assert found["bytes_share"] == pytest.approx(19 / 21, abs=1e-4)
    assert found["alternatives"] == []
    assert found["fix"][0].startswith("pdfplumber: page.close()")


def test_the_suspects_say_who_allocated_and_who_holds(judged):
    [suspect] = suspects_json(judged.suspects)
    assert suspect["bytes"] == 19 * MB
    assert suspect["blocks"] == 100
    assert suspect["birth_units"] == {"first": 1, "last": 20, "count": 20}
    assert {"file": LOAD.file, "line": 12, "function": "load"} in suspect["stack"]
    assert [(holder["role"], holder["name"]) for holder in suspect["holders"]] == [
        ("frame", "load"),
        ("holder", "pdf"),
        ("holder", "pages"),
        ("object", "[3]"),
    ]


def test_the_terminal_says_it_all(judged):
    text = "\n".join([*verdict_lines(judged), *suspect_lines(judged)])
    assert "Per-unit cache kept on the document (sure): 19.0 MB, 90.5 % of" in text
    assert "page.close()  # after its last use" in text
    assert "19.0 MB in 100 blocks (Page), born in pages 1-20" in text
    assert "held by `pdf` (frame load) → `.pages` list → `[3]` Page (9 like it)" in text


def test_the_terminal_and_the_leaks_page_name_the_same_line(judged):
    # given a line of people's own that calls into a library, which allocates
    [place] = suspect_table(judged.suspects)["allocated in"]
    [said] = [line.strip() for line in suspect_lines(judged) if "allocated in" in line]
    assert place == "app/ingest.py:12 in load"
    assert said.startswith(f"allocated in {place}")


def test_what_the_evidence_does_not_decide_is_said(tmp_path):
    # given a third of the pages holding 2 MB each, and nobody who looked at who holds them
    def python(page):
        return {number: 2 * MB for number in range(1, page + 1) if number % 3 == 0}

    with RecordingReader(write(tmp_path / "run.p87", Run(pages=30, python=python))) as reader:
        judgement = judge(reader)
    text = "\n".join(verdict_lines(judgement))
    assert judgement.main.number == 0
    assert "The evidence does not decide" in text
    assert "9 of 30 still held 18.0 MB" in text  # pages 3 to 27; the newest does not count
    assert judgement.rerun.options == {"engine": "sampled", "capture": True}


def with_a_page_that_stands_out(path):
    """A leak of 1 MB a page, and page 13 with 90 MB: two kinds beside each other."""
    run = Run(
        python=leak(1 * MB),
        peak=lambda page: 90 * MB if page == 13 else 2 * MB,
        held=(Holder(19 * MB, CHAIN, type="pdfplumber.page.Page"),),
    )
    return write(path, run)


def test_each_kind_beside_the_verdict_is_told_with_its_fix(tmp_path):
    with RecordingReader(with_a_page_that_stands_out(tmp_path / "run.p87")) as reader:
        found = judge(reader)
    assert [finding.number for finding in (found.main, *found.stacked)] == [14, 1]
    lines = list(verdict_lines(found))
    beside = next(place for place, line in enumerate(lines) if line.startswith("And "))
    assert lines[beside - 2 : beside] == ["Fix", f"  {KINDS[14].fix}"]
    told = lines[beside:]
    assert told[2] == "Fix"
    assert told[3].startswith("  pdfplumber: page.close()")
    assert told[4] == f"  {KINDS[1].fix}"
