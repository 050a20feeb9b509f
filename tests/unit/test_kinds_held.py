"""Kinds of memory that somebody in Python holds: the verdict, its bytes, and the near misses."""

from dataclasses import replace
from itertools import count

import pytest
from births import MB, OBJECTS, band, leak
from kinds_runs import LOAD, Holder, Link, Run, write

from diagnostics.analysis.kinds import judge, judge_evidence
from diagnostics.analysis.kinds.drawing import draw_evidence
from diagnostics.analysis.suspects import _ordered
from diagnostics.recording.model import Frame
from diagnostics.recording.reader import RecordingReader

LEAK = Run(python=leak(1 * MB))
LEFT = 19 * MB  # of the 20 pages; the newest may still be in a variable

DOCUMENT = (
    Link("frame", root="frame", name="load"),
    Link("pdfplumber.pdf.PDF", ".pdf"),
    Link("builtins.list", ".pages"),
    Link("pdfplumber.page.Page", "[3]"),
    Link("builtins.bytes", "._layout"),
)
VALUE = (
    Link("module", root="module", name="__main__"),
    Link("builtins.list", ".headings"),
    Link("bs4.element.NavigableString", "[0]", size=120),
    Link("bs4.element.Tag", ".parent"),
    Link("builtins.dict", ".attrs"),
)
UNREFERRED = (Link("", root="unknown"), Link("builtins.bytes"))
ERROR = (
    Link("module", root="module", name="__main__"),
    Link("builtins.list", ".failed"),
    Link("builtins.ValueError", "[2]"),
    Link("builtins.traceback", ".__traceback__"),
    Link("builtins.frame", ".tb_frame"),
    Link("builtins.bytes", ".raster"),
)
REGISTRY = (
    Link("module", root="module", name="ingest.cache"),
    Link("builtins.dict", ".SEEN"),
    Link("builtins.bytes", "[value]"),
)
TASKS = (
    Link("module", root="module", name="__main__"),
    Link("builtins.set", ".running"),
    Link("_asyncio.Task", "[element]"),
    Link("builtins.list", "._result"),
    Link("builtins.str", "[0]"),
)
CACHED = (
    Link("module", root="module", name="__main__"),
    Link("functools._lru_cache_wrapper", ".page"),
    Link("builtins.bytes", "[value]"),
)
QUEUE = (
    Link("module", root="module", name="__main__"),
    Link("queue.Queue", ".waiting"),
    Link("collections.deque", ".queue"),
    Link("builtins.bytes", "[0]"),
)
COLLECTED = (
    Link("module", root="module", name="__main__"),
    Link("builtins.list", ".texts"),
    Link("builtins.str", "[0]"),
)
COLLECTED_BY_FUNCTION = (Link("frame", root="frame", name="load"), *COLLECTED[1:])
SCRIPT_CACHE = (
    Link("module", root="module", name="__main__"),
    Link("builtins.dict", ".CACHE"),
    Link("builtins.list", "[3]"),
    Link("builtins.str", "[0]"),
)


@pytest.fixture
def verdict(tmp_path):
    runs = count()

    def of(run):
        with RecordingReader(write(tmp_path / f"{next(runs)}.p87", run)) as reader:
            return judge(reader)

    return of


def holder(chain, size=LEFT, **options):
    return (Holder(size, chain, **options),)


@pytest.mark.parametrize(
    ("chain", "kind"),
    [
        (DOCUMENT, 1),
        (VALUE, 3),
        (REGISTRY, 12),
        (SCRIPT_CACHE, 12),
        (TASKS, 12),
        (ERROR, 11),
        (QUEUE, 18),
    ],
    ids=["document", "small value", "registry", "script's cache", "tasks", "exception", "queue"],
)
def test_the_chain_decides_between_kinds_that_look_alike(verdict, chain, kind):
    found = verdict(LEAK.but(held=holder(chain)))
    assert found.main.number == kind
    assert found.main.bytes == LEFT
    assert found.confidence >= 0.8
    assert found.rerun is None
    # 20 MB were taken at most, and 2 MB beside 19 in the middle of the last page: 21 MB above.
    assert found.base == 21 * MB
    assert found.bytes_share(found.main) == pytest.approx(19 / 21)


def test_without_a_capture_a_leak_is_a_leak_and_the_capture_would_decide(verdict):
    found = verdict(LEAK)
    assert found.main.number == 1
    assert found.confidence < 0.8
    assert found.rerun.options == {"engine": "sampled", "capture": True}


def test_half_of_the_bytes_each_give_two_kinds_their_shares(verdict):
    found = verdict(LEAK.but(held=(Holder(12 * MB, DOCUMENT), Holder(4 * MB, REGISTRY))))
    assert found.main.number == 1
    assert found.main.bytes == 19 * MB * 12 // 16
    assert [(other.number, other.bytes) for other in found.stacked] == [(12, 19 * MB * 4 // 16)]


def test_crumbs_are_no_leak(verdict):
    # 13 kB a page for 20 pages, as a reader that keeps what it has parsed does.
    found = verdict(Run(python=leak(13_000), held=holder(DOCUMENT, 247_000)))
    assert found.main.number == 0
    assert found.confidence >= 0.8


def test_a_release_call_in_the_loop_makes_it_a_call_without_effect(verdict):
    # given a loop that closes each page before it is used for the last time
    source = {
        LOAD.file: {
            11: "    for page in pdf.pages:",
            12: "        words = page.extract_words()",
            13: "        page.close()",
            14: "        text = page.extract_text()",
        }
    }
    found = verdict(LEAK.but(held=holder(DOCUMENT), source=source))
    assert found.main.number == 2
    assert found.main.bytes == LEFT
    assert "`page.close()`" in found.main.evidence[0]
    assert 1 in [other.number for other in found.alternatives]


def test_what_closes_the_document_after_the_loop_is_no_release_of_its_pages(verdict):
    source = {
        LOAD.file: {
            11: "    for page in pdf.pages:",
            12: "        text = page.extract_text()",
            13: "    pdf.close()",
        }
    }
    assert verdict(LEAK.but(held=holder(DOCUMENT), source=source)).main.number == 1


LOAD_TO_PAGE = (
    Frame("/srv/app/ingest.py", 40, "main"),
    Frame("/srv/app/ingest.py", 12, "load"),
    Frame("/srv/app/ingest.py", 22, "text_of"),
    OBJECTS,
)
LOOP = {
    10: "def load(path):",
    11: "    for page in pdf.pages:",
    12: "        texts.append(text_of(page))",
    20: "def text_of(page):",
    22: "    return page.extract_text()",
    40: "load(sys.argv[1])",
}


@pytest.mark.parametrize(
    ("added", "kind"),
    [
        ({13: "        page.close()"}, 2),
        ({13: "        if page.number:", 14: "            page.close()"}, 2),
        ({21: "    page.close()"}, 2),  # in the function that the loop calls
        ({11: "    for page in pdf.pages: page.close()"}, 2),
        ({13: "    pdf.close()"}, 1),  # after the loop
        ({38: "    pdf.close()"}, 1),  # in some function above the call of main
        ({24: "def close(page):", 25: "    page.close()"}, 1),  # in a function beside it
        ({13: "        def done():", 14: "            page.close()"}, 1),  # told, not done
        ({11: "    with pdfplumber.open(path):", 13: "        pdf.close()"}, 1),  # no loop
        ({9: "for path in paths:", 39: "    path.close()", 40: "    load(path)"}, 1),
    ],
)
def test_a_release_call_counts_where_the_loop_comes_by(verdict, added, kind):
    source = {LOAD.file: dict(sorted((LOOP | added).items()))}
    run = LEAK.but(held=holder(DOCUMENT), source=source, stack=LOAD_TO_PAGE)
    assert verdict(run).main.number == kind


def test_failed_pages_alone_keep_their_memory(verdict):
    # given every fifth page of 20 failing, each with 5 MB in its frames
    failed = (5, 10, 15, 20)

    def python(page):
        return {number: 5 * MB for number in failed if number <= page}

    found = verdict(Run(python=python, during=lambda page: 5 * MB, failed=failed))
    assert found.main.number == 11
    assert found.main.bytes == 15 * MB  # the newest, page 20, does not count
    assert "3 failed pages left 5.0 MB each" in found.main.evidence[0]


def test_where_every_page_failed_nothing_tells_that_failing_is_what_keeps_memory(verdict):
    # given 20 pages that keep 5 MB each, as a cache does, and all fail
    def python(page):
        return dict.fromkeys(range(1, page + 1), 5 * MB)

    run = Run(python=python, during=lambda page: 5 * MB, failed=range(1, 21))
    found = verdict(run)
    assert 11 not in (found.main.number, *(finding.number for finding in found.stacked))
    [failures] = [finding for finding in found.alternatives if finding.number == 11]
    assert failures.evidence == (
        "19 failed pages left 5.0 MB each, with no finished page to compare with",
    )


def test_failed_pages_that_let_go_are_no_trouble(verdict):
    run = Run(python=lambda page: {}, failed=(5, 10, 15))
    assert verdict(run).main.number == 0


def test_a_cache_that_is_full_is_bounded(verdict):
    found = verdict(Run(python=band(8, 1 * MB), held=holder(CACHED, 8 * MB, units=8)))
    assert found.main.number == 13
    assert found.main.bytes == 7 * MB  # of the 8 newest pages all but the last
    assert "newest 8 pages of 20" in found.main.evidence[1]
    assert found.main.title == "bounded cache"


def test_a_cache_that_holds_pages_of_all_ages_is_not_said_to_be_bounded(verdict):
    # given a cache of which every page that leaves something is a part, and nobody saw its limit
    def python(page):
        return dict.fromkeys(range(3, page + 1, 3), 2 * MB)

    found = verdict(Run(pages=40, python=python, held=holder(CACHED, 24 * MB, units=13)))
    assert found.main.number == 13
    assert found.main.title == "cache without a known limit"
    assert found.fix[-1].startswith("Give the cache a limit")


def test_two_pages_of_read_ahead_are_no_cache(verdict):
    assert verdict(Run(python=band(2, 1 * MB))).main.number == 0


def test_a_queue_grows_without_a_capture(verdict):
    # given a consumer that takes one page while two are produced
    def python(page):
        return dict.fromkeys(range(page // 2 + 1, page + 1), 1 * MB)

    found = verdict(Run(pages=40, python=python))
    assert found.main.number == 18
    assert found.main.bytes == 19 * MB  # pages 21 to 40 but the last
    assert "5, 10, 15, 20" in found.main.evidence[0]


def test_documents_one_after_the_other_are_no_queue(verdict):
    # given documents of 8 pages whose memory goes when the next one is opened
    def python(page):
        first = (page - 1) // 8 * 8 + 1
        return dict.fromkeys(range(max(1, first), page + 1), 1 * MB)

    found = verdict(Run(pages=32, python=python))
    assert found.main.number == 0


def test_a_large_result_is_what_the_document_costs(verdict):
    found = verdict(LEAK.but(held=holder(COLLECTED, type="builtins.str")))
    assert found.main.number == 15
    assert found.main.bytes == LEFT


def test_a_small_result_is_no_trouble(verdict):
    # 20 kB of text a page, as a loader returns that keeps what it was asked for
    run = Run(python=leak(20_000), held=holder(COLLECTED, 380_000, type="builtins.str"))
    assert verdict(run).main.number == 0


def small_beside_the_rest(chain):
    """100 kB a page, 1.9 MB in all, of 60 MB and more that the process took."""
    return Run(
        python=leak(100_000),
        peak=lambda page: 60 * MB,
        held=holder(chain, 1_900_000, type="builtins.str"),
    )


def test_a_script_s_list_that_grows_is_told_though_it_is_small(verdict):
    found = verdict(small_beside_the_rest(COLLECTED))
    assert found.main.number == 15
    assert found.main.bytes == 1_900_000
    assert "95.0 kB a page" in found.main.evidence[0]
    # ... not surely, for nobody knows whether the script wants it all: 0.6, less 0.15 for the rival
    assert found.confidence == 0.45
    assert found.alternatives[0].number == 12


def test_what_a_function_collects_is_told_where_nothing_is_wrong_and_makes_that_less_sure(verdict):
    found = verdict(small_beside_the_rest(COLLECTED_BY_FUNCTION))
    assert found.main.number == 0
    assert found.alternatives[0].number == 15
    assert found.confidence == 0.65


def test_objects_without_a_referrer_that_survive_everything(verdict):
    found = verdict(LEAK.but(held=holder(UNREFERRED)))
    assert found.main.number == 6
    assert found.main.bytes == LEFT


def test_what_was_freed_after_the_last_page_did_not_survive(tmp_path):
    # given 12 MB of imports that stay, and what the pages left freed between two readings after the
    # last one ended (as seen with documents in threads that the program itself collected)
    imported = {1: 12 * MB}
    run = LEAK.but(imported=lambda page: imported if page else {}, held=holder(UNREFERRED))
    with RecordingReader(write(tmp_path / "run.p87", run)) as reader:
        evidence = draw_evidence(reader)
    assert 6 in numbers(judge_evidence(evidence))
    freed = replace(evidence.retained, later=70_000)
    left = replace(evidence.settled, left_python=12 * MB)
    assert 6 not in numbers(judge_evidence(replace(evidence, retained=freed, settled=left)))


def test_the_chain_of_the_object_nearest_to_a_root_does_not_stand_for_others():
    # given chains of one object each, as of a tree's nodes, one of which is in a list itself
    far = [(VALUE + (Link("bs4.element.Tag", ".next_sibling"),) * more, 1) for more in (1, 4, 8)]
    assert _ordered([far[2], (VALUE[:3], 1), *far[:2]])[0] == far[0]
    # but those that several objects have say more, whatever their length
    assert _ordered([*far, (VALUE[:3], 2)])[0] == (VALUE[:3], 2)
    assert _ordered([]) == ()


def test_what_is_left_in_a_cycle_of_references_is_no_extension_s_fault(verdict):
    cycle = (Link("", root="unknown", name="a cycle of references"), Link("builtins.bytes"))
    assert 6 not in numbers(verdict(LEAK.but(held=holder(cycle))))


def test_objects_without_a_referrer_that_go_with_the_result(verdict):
    # the loader's caller held them, outside of everything that a capture sees
    steps = (("result released", 20 * MB, 20 * MB, 20),)
    assert verdict(LEAK.but(held=holder(UNREFERRED), steps=steps)).main.number != 6


def numbers(judgement):
    return [finding.number for finding in (judgement.main, *judgement.stacked)]


def test_the_fix_is_that_of_the_library_that_was_called(verdict):
    found = verdict(LEAK.but(held=holder(DOCUMENT)))
    assert OBJECTS in found.suspects[0].stack
    assert found.fix[0].startswith("pdfplumber: page.close()")
    miner = Frame("/srv/venv/lib/python3.11/site-packages/pdfminer/layout.py", 9, "LTChar")
    deeper = verdict(LEAK.but(held=holder(DOCUMENT), stack=(LOAD, OBJECTS, miner)))
    assert deeper.fix[0].startswith("pdfplumber: page.close()")


def test_the_capture_that_saw_a_holder_counts_more_than_a_later_one_that_saw_garbage(verdict):
    # given a document that is closed after its last page: what it held is garbage in cycles then
    steps = (("collection", 20 * MB, 20 * MB, 400),)
    held = (Holder(9 * MB, DOCUMENT, at_page=12), Holder(19 * MB, UNREFERRED))
    found = verdict(LEAK.but(held=held, steps=steps))
    assert found.main.number == 1
    assert found.main.bytes == LEFT


def test_one_variable_does_not_explain_the_memory_of_twenty_pages(verdict):
    # given a loop's variable that holds the newest of them, and a capture that found no one else
    variable = (Link("module", root="module", name="__main__"), Link("builtins.bytes", ".page"))
    found = verdict(LEAK.but(held=holder(variable, alike=1)))
    assert found.main.number == 6
    assert "found nobody" in found.main.evidence[1]


def test_garbage_that_a_young_collection_frees_before_the_settlement_did_wait(tmp_path):
    # given pages in cycles that nobody refers to, all gone when the settlement begins
    run = LEAK.but(held=holder(UNREFERRED), steps=(("collection", 0, 20 * MB, 400),))
    with RecordingReader(write(tmp_path / "run.p87", run)) as reader:
        found = judge(reader)
    assert found.main.number == 7
    assert found.main.bytes == LEFT


def test_suspects_that_came_with_an_import_are_none(verdict):
    importing = Frame("<frozen importlib._bootstrap>", 241, "_call_with_frames_removed")
    found = verdict(Run(held=holder(REGISTRY), stack=(importing,)))
    assert found.main.number == 0
    assert found.suspects == ()
