"""Kinds of memory that nobody in Python holds, or that is not Python's; and the document's own."""

from dataclasses import replace
from itertools import count

import pytest
from births import MB, leak
from kinds_runs import Holder, Link, Run, write

from diagnostics.analysis.kinds import judge
from diagnostics.analysis.kinds.drawing import draw_evidence
from diagnostics.analysis.kinds.readings import unit_need
from diagnostics.analysis.kinds.rules_native import native_handles
from diagnostics.analysis.shape import shape_of
from diagnostics.recording.model import Frame, UnitPeak, UnitRow
from diagnostics.recording.reader import RecordingReader

KERNEL = "kernel high-water mark"
LEAK = Run(python=leak(1 * MB))
TABLES = (
    Link("module", root="module", name="__main__"),
    Link("builtins.list", ".tables"),
    Link("camelot.core.Table", "[0]"),
    Link("builtins.dict", ".__dict__"),
)
FINALIZERS = (
    Link("builtins.type", root="class", name="weakref.finalize"),
    Link("builtins.dict", "._registry"),
    Link("pypdfium2.PdfDocument", "[value]"),
)


@pytest.fixture
def verdict(tmp_path):
    runs = count()

    def of(run):
        with RecordingReader(write(tmp_path / f"{next(runs)}.p87", run)) as reader:
            return judge(reader)

    return of


# -- cycles ------------------------------------------------------------------------------------


def test_what_only_a_collection_frees_was_waiting_for_it(verdict):
    steps = (("collection", 19 * MB, 19 * MB, 380),)
    found = verdict(LEAK.but(steps=steps))
    assert found.main.number == 7
    assert found.main.bytes == 19 * MB
    assert "380 objects" in found.main.evidence[0]


def test_what_was_held_until_the_result_went_did_not_wait(verdict):
    # given trees full of cycles that a list held: only the collection frees them, afterwards
    steps = (("collection", 19 * MB, 19 * MB, 380),)
    value = (
        Link("module", root="module", name="__main__"),
        Link("builtins.list", ".headings"),
        Link("bs4.element.NavigableString", "[0]"),
        Link("bs4.element.Tag", ".parent"),
    )
    found = verdict(LEAK.but(steps=steps, held=(Holder(19 * MB, value),)))
    assert found.main.number == 3
    assert 7 not in [other.number for other in found.stacked]


# -- native ------------------------------------------------------------------------------------


def per_page(size):
    return lambda page: size * page


def test_native_memory_that_goes_with_its_handles(verdict):
    # 5 MB a page: 18 pages after the warm-up of two hold 90 MB; letting go frees all of it
    run = Run(
        python=leak(20_000),
        native=per_page(5 * MB),
        held=(Holder(400_000, TABLES),),
        steps=(("result released", 100 * MB, 400_000, 40),),
    )
    found = verdict(run)
    assert found.main.number == 4
    assert found.main.bytes == 90 * MB
    assert "5.0 MB a page" in found.main.evidence[0]


def test_native_memory_read_in_the_middle_of_late_pages(tmp_path):
    # given a growth of 26 MB a page by the resident set, and few readings of native memory, some of
    # them with the bitmap of a page in work (as seen with camelot): 37 MB a page, 55 MB late
    with RecordingReader(write(tmp_path / "run.p87", Run(native=per_page(26 * MB)))) as reader:
        evidence = draw_evidence(reader)
    noisy = replace(evidence.native, per_unit=37.4 * MB, late=54.7 * MB)
    assert native_handles(replace(evidence, native=noisy)).bytes > 400 * MB
    # but not where it was read at the start and the end alone, and all came early
    early = replace(evidence.rss, late=2.0 * MB)
    assert native_handles(replace(evidence, native=noisy, rss=early)).bytes == 0


def test_native_memory_that_nothing_of_pythons_gives_back(verdict):
    found = verdict(Run(native=per_page(5 * MB)))
    assert found.main.number == 5
    assert found.main.bytes == 90 * MB


def in_a_module(*links):
    return (Link("module", root="module", name="titles"), Link("builtins.list", ".TITLES"), *links)


PARAGRAPHS = in_a_module(
    Link("docx.text.paragraph.Paragraph", "[0]"),
    Link("docx.document.Document", "._parent"),
    Link("builtins.bytes", "._blob"),
)
DOCX = (
    Frame("/srv/app/titles.py", 7, "load"),
    Frame("/srv/venv/lib/python3.11/site-packages/docx/opc/phys_pkg.py", 83, "blob_for"),
)


def test_native_memory_of_handles_that_outlive_the_release_is_no_cache_of_the_library(verdict):
    # given a module's list that the release of the result does not touch: 20 kB of Python memory
    # and 5 MB of native memory a page stay, and stay together
    held = (Holder(400_000, PARAGRAPHS),)
    run = Run(python=leak(20_000), native=per_page(5 * MB), held=held, stack=DOCX)
    found = verdict(run)
    assert found.main.number == 4
    assert found.main.bytes == 90 * MB
    assert found.confidence == 0.9
    assert "`TITLES`" in found.main.evidence[1]
    assert "all was let go" not in str([found.main, *found.stacked, *found.alternatives])
    assert found.fix[0].startswith("python-docx: paragraph.text, not the paragraph")
    assert "iterparse" not in str(found.fix)


def test_handles_that_went_with_the_release_held_no_native_memory_that_stays(verdict):
    held = (Holder(400_000, PARAGRAPHS),)
    steps = (("result released", 400_000, 400_000, 40),)
    run = Run(python=leak(20_000), native=per_page(5 * MB), held=held, stack=DOCX, steps=steps)
    found = verdict(run)
    assert found.main.number == 5
    assert found.confidence == 0.85


@pytest.mark.parametrize(
    ("chain", "decided"),
    [
        (in_a_module(Link("builtins.str", "[0]")), True),
        (in_a_module(Link("titles.Row", "[0]"), Link("titles.Table", ".parent")), False),
    ],
)
def test_text_that_lives_on_is_no_handle_and_a_class_of_the_loader_s_own_may_be(
    verdict, chain, decided
):
    held = (Holder(400_000, chain),)
    found = verdict(Run(python=leak(20_000), native=per_page(5 * MB), held=held))
    assert (found.main.number == 5) == decided
    assert (found.confidence >= 0.8) == decided


def test_native_memory_of_a_run_that_was_killed_is_no_healthy_run(verdict):
    found = verdict(Run(native=per_page(5 * MB), steps=None))
    assert found.main.number == 4
    assert found.confidence < 0.5
    assert found.alternatives[0].number == 5
    assert found.rerun.options == {"settle": True}


@pytest.mark.parametrize("engine", ["sampled", "exact", "none"])
def test_resident_memory_that_goes_on_growing_is_no_sure_health(verdict, engine):
    found = verdict(Run(free=per_page(MB), steps=None, engine=engine))
    assert found.main.number == 0
    assert found.confidence == 0.3
    assert "nothing tells whose" in found.main.evidence[-1]
    assert found.rerun is not None


def test_without_an_engine_nobody_knows_which_memory_is_native(verdict):
    # given 90 MB that each page adds to, which may as well be Python's blocks
    found = verdict(Run(native=per_page(5 * MB), steps=None, engine="none"))
    assert found.main.number == 0
    assert not {4, 5} & {finding.number for finding in found.alternatives}
    assert found.rerun is not None


def test_tables_of_the_engine_that_grow_with_the_pages_are_no_trouble_of_the_loader(verdict):
    # given an engine that notes down each block of a result, 5 MB of the 7 MB a page
    found = verdict(Run(tables=per_page(5 * MB), peak=lambda page: 7 * MB))
    assert found.main.number == 0
    assert found.confidence >= 0.8
    assert found.base == 2 * MB


def test_one_step_that_an_allocator_keeps_is_no_growth_that_goes_on(verdict):
    # given 9 MB that page 26 of 40 left free in malloc, beside 20 kB a page
    def free(page):
        return 20_000 * page + (9 * MB if page >= 26 else 0)

    found = verdict(Run(pages=40, free=free))
    assert found.main.number == 0
    assert found.confidence >= 0.8


def test_native_memory_up_to_a_cap(verdict):
    found = verdict(Run(pages=40, native=lambda page: min(page, 20) * 5 * MB))
    assert found.main.number == 5
    assert found.main.bytes == 90 * MB  # 100 less the 10 of the warm-up
    assert any("came to a cap" in line for line in found.main.evidence)


def test_native_memory_of_a_few_megabytes_is_no_trouble(verdict):
    assert verdict(Run(native=per_page(500_000))).main.number == 0


def test_handles_in_a_registry_are_the_registrys_trouble(verdict):
    # 44 kB a document in native memory, held through finalizers that never run: 98 x 44 kB
    run = Run(pages=100, native=per_page(44_000), held=(Holder(150_000, FINALIZERS),))
    found = verdict(run)
    assert found.main.number == 12
    assert found.main.bytes == 98 * 44_000
    assert found.fix[0].startswith(("pypdfium2: ", "weakref: "))


def test_a_models_library_that_grows(verdict):
    tokenizers = Frame(
        "/srv/venv/lib/python3.11/site-packages/tokenizers/__init__.py", 80, "encode"
    )
    found = verdict(Run(native=per_page(6 * MB), stack=(tokenizers,), python=leak(1)))
    assert found.main.number == 19
    assert found.main.bytes == 18 * 6 * MB


def test_children_that_grow(verdict):
    found = verdict(Run(children=per_page(4 * MB)))
    assert found.main.number == 17
    assert found.main.bytes == 18 * 4 * MB
    assert found.main.bytes == 72 * MB


def test_children_that_stay_as_they_are(verdict):
    assert verdict(Run(children=lambda page: 1 * MB)).main.number == 0


# -- freed -------------------------------------------------------------------------------------


def free_after(size, page):
    return lambda now: size if now >= page else 0


def test_what_malloc_trim_gives_back(verdict):
    run = Run(free=free_after(80 * MB, 10), steps=(("malloc_trim", 78 * MB, 0, 0),))
    found = verdict(run)
    assert found.main.number == 8
    assert found.main.bytes == 78 * MB


def test_what_the_snapshots_of_the_exact_engine_may_have_had_is_no_finding(verdict):
    run = Run(free=free_after(80 * MB, 10), steps=(("malloc_trim", 78 * MB, 0, 0),))
    found = verdict(run.but(engine="exact"))
    assert found.main.number == 0
    assert found.alternatives[0].number == 8
    assert found.rerun.options == {"engine": "sampled"}


def test_what_the_engine_s_tables_gave_up_again_is_not_the_loader_s(verdict):
    # given tables of 40 MB until page 10, and 60 MB of the loader's that malloc has kept
    tables = dict.fromkeys(range(5, 10), 40 * MB)
    run = Run(
        free=free_after(100 * MB, 10),
        tables=lambda page: tables.get(page, 0),
        steps=(("malloc_trim", 100 * MB, 0, 0),),
    )
    found = verdict(run)
    assert found.main.number == 8
    assert found.main.bytes == 60 * MB


def test_free_memory_that_cannot_be_given_back(verdict):
    run = Run(free=free_after(80 * MB, 10), steps=(("malloc_trim", 1 * MB, 0, 0),))
    found = verdict(run)
    assert found.main.number == 9
    assert found.main.bytes == 79 * MB


def test_arenas_that_are_nearly_empty(verdict):
    found = verdict(Run(arenas=free_after(80 * MB, 10)))
    assert found.main.number == 10
    assert found.main.bytes == 80 * MB
    assert found.main.evidence == (
        "80.0 MB lie empty in the arenas of pymalloc, Python's allocator for small objects; 0 B of"
        " Python memory are alive above the start",
    )
    assert found.fix == (
        "Load in a process of its own, which gives all back when it ends, or keep fewer small"
        " objects from among many short-lived ones: one that is alive keeps its whole arena.",
    )


def test_free_memory_that_the_next_page_uses_again(verdict):
    # given 100 MB of native memory in use in most pages, and 40 MB of it free in the end
    run = Run(
        native=lambda page: 0 if page in (0, 20) else 100 * MB,
        free=lambda page: 40 * MB if page == 20 else 0,
        steps=(("malloc_trim", 40 * MB, 0, 0),),
    )
    assert verdict(run).main.number == 0


@pytest.mark.parametrize(("needed", "kind"), [(27 * MB, 0), (16 * MB, 0), (12 * MB, 8)])
def test_free_memory_that_one_page_needs_at_a_time(verdict, needed, kind):
    # given pages that lie between two readings, and 17 MB free in the end: the kernel alone knows
    # what one of them took (as seen with tokenizers, where it was 27 MB and 17 to 29 MB were free:
    # later ones are somewhat larger)
    run = Run(
        free=lambda page: min(17, 6 * page) * MB,
        peak=lambda page: needed if page < 3 else 17 * MB,
        steps=(("malloc_trim", 17 * MB, 0, 0),),
    )
    assert verdict(run).main.number == kind


def test_pinned_memory_that_one_page_needs_at_a_time(verdict):
    run = Run(free=lambda page: min(20, 6 * page) * MB, peak=lambda page: 30 * MB)
    assert verdict(run).main.number == 0
    assert verdict(run.but(peak=lambda page: 2 * MB)).main.number == 9


def at_a_time(*spans):
    """Units with these spans, each of which saw the resident set rise from 10 to 90 MB."""
    units = [UnitRow(n, "page", f"page {n}", *span) for n, span in enumerate(spans, start=1)]
    peaks = [UnitPeak(unit.index, 10 * MB, 20 * MB, 90 * MB, KERNEL) for unit in units]
    return peaks, units


@pytest.mark.parametrize(
    ("spans", "left", "need"),
    [
        ([(0, 4), (4, 8), (8, 12)], {}, 80 * MB),  # one after the other
        ([(0, 4), (1, 5), (2, 6), (3, 7)], {}, 20 * MB),  # four at a time
        ([(0, 4), (0, 4), (4, 8), (4, 8)], {}, 40 * MB),  # two at a time, twice
        ([(0, None), (1, None)], {}, 40 * MB),  # still going on
        ([(0, 0), (0, 0)], {}, 80 * MB),
        ([(0, 4), (4, 8)], {1: 50 * MB, 2: 60 * MB}, 30 * MB),  # the rest stayed
        ([(0, 4)], {1: 95 * MB}, 0),
    ],
)
def test_what_one_of_the_first_units_took(spans, left, need):
    assert unit_need(*at_a_time(*spans), left) == need


def test_what_a_unit_took_is_not_known_without_one():
    assert unit_need([], [], {}) is None


DOCUMENT = (
    Link("frame", root="frame", name="load"),
    Link("pdf.PDF", ".pdf"),
    Link("pdf.Page", ".page"),
)
TEN_A_PAGE = Run(
    python=leak(10 * MB),
    during=lambda page: 12 * MB,
    held=(Holder(190 * MB, DOCUMENT),),
)


def test_what_a_leak_had_held_counts_once(verdict):
    # given 10 MB a page that the document holds; released, they stay in malloc until it is trimmed
    steps = (("result released", 0, 200 * MB, 20), ("malloc_trim", 195 * MB, 0, 0))
    found = verdict(TEN_A_PAGE.but(steps=steps))
    assert found.main.number == 1
    assert found.main.bytes == 190 * MB
    assert found.stacked == ()
    assert [(other.number, other.bytes) for other in found.alternatives] == [(8, 195 * MB)]


def test_what_was_free_before_a_leak_was_let_go_is_a_finding_of_its_own(verdict):
    # given the same leak above 60 MB that malloc had free from page 5 on; all of it is trimmed
    steps = (("result released", 0, 200 * MB, 20), ("malloc_trim", 255 * MB, 0, 0))
    found = verdict(TEN_A_PAGE.but(free=free_after(60 * MB, 5), steps=steps))
    assert found.main.number == 1
    [freed] = found.stacked
    # of 255 MB, 190 had been the leak's; 260 MB were taken at most
    assert (freed.number, freed.bytes) == (8, 65 * MB)
    assert freed.evidence[0].endswith("; the other verdicts explain 190 MB of it already")
    assert found.bytes_share(found.main) + found.bytes_share(freed) == pytest.approx(255 / 260)


def test_the_shares_of_stacked_kinds_are_at_most_the_whole(verdict):
    # given 4 MB a page of Python's and 4 of native memory, and a page in the middle with 90 MB
    run = Run(
        python=leak(4 * MB),
        native=per_page(4 * MB),
        peak=lambda page: 90 * MB if page == 13 else 2 * MB,
        held=(Holder(76 * MB, DOCUMENT),),
    )
    found = verdict(run)
    # The highest is in page 13, 96 MB above the start at its beginning and 90 more.
    assert found.base == 186 * MB
    shares = [found.bytes_share(finding) for finding in (found.main, *found.stacked)]
    assert {finding.number for finding in (found.main, *found.stacked)} == {1, 5, 14}
    assert sum(shares) == pytest.approx(1)


# -- imports ------------------------------------------------------------------------------------


def from_page(first, size):
    return lambda page: {first: size} if page >= first else {}


@pytest.mark.parametrize(("pages", "first"), [(20, 1), (20, 10), (3, 1), (3, 2)])
def test_a_library_that_a_page_imports_comes_once(verdict, pages, first):
    # given 40 MB of code and classes, and 50 MB that the library takes natively, for good
    run = Run(
        pages=pages,
        imported=from_page(first, 40 * MB),
        native=lambda page: 50 * MB if page >= first else 0,
    )
    found = verdict(run)
    assert found.main.number == 0
    assert [other.number for other in found.alternatives] == []
    assert found.confidence >= 0.8 or pages < 4


def test_the_same_memory_without_an_import_is_somebodys(verdict):
    run = Run(native=lambda page: 50 * MB if page >= 10 else 0)
    assert verdict(run).main.number == 5


def test_a_leak_beside_an_import_is_still_seen(verdict):
    # 5 MB a page of native memory that goes with its handles, and a library of 50 MB on page 10
    run = Run(
        python=leak(20_000),
        imported=from_page(10, 40 * MB),
        native=lambda page: 5 * MB * page + (50 * MB if page >= 10 else 0),
        held=(Holder(400_000, TABLES),),
        steps=(("result released", 100 * MB, 400_000, 40),),
    )
    found = verdict(run)
    assert found.main.number == 4
    # 18 pages after the warm-up; what page 10 itself leaked cannot be told from its import
    assert found.main.bytes == 17 * 5 * MB


# -- the document -------------------------------------------------------------------------------


def test_one_page_that_needs_far_more(verdict):
    found = verdict(Run(peak=lambda page: 90 * MB if page == 13 else 2 * MB))
    assert found.main.number == 14
    assert found.main.bytes == 90 * MB
    assert "page 13" in found.main.evidence[0]


def test_what_a_page_kept_and_what_it_gave_back_are_told_alike(tmp_path):
    # given page 13 with 90 MB of Python memory, 3 MB of which stay, and 20 MB free since then
    run = Run(
        python=lambda page: {13: 3 * MB} if page >= 13 else {},
        during=lambda page: 90 * MB if page == 13 else 2 * MB,
        peak=lambda page: 95 * MB if page == 13 else 2 * MB,
        free=lambda page: 20 * MB if page >= 13 else 0,
    )
    with RecordingReader(write(tmp_path / "run.p87", run)) as reader:
        [told, *_] = judge(reader).main.evidence
        shape = shape_of(reader)
    assert shape.sentence.endswith("Page 13 alone took 90.0 MB and gave back all but 3.0 MB")
    assert told.endswith(
        "3.0 MB of its Python memory stayed, and the process had 23.0 MB more when it ended than"
        " when it began"
    )


def test_the_peak_of_a_page_is_without_the_engine_s_tables(verdict):
    # given tables that rise by 30 MB in page 13 and stay
    run = Run(
        peak=lambda page: 90 * MB if page == 13 else 2 * MB,
        tables=lambda page: 30 * MB if page >= 13 else 0,
    )
    found = verdict(run)
    assert found.main.number == 14
    assert found.main.bytes == 60 * MB
    assert "without 30.0 MB of the heap engine's own tables" in found.main.evidence[0]


def test_the_first_page_fills_caches(verdict):
    assert verdict(Run(peak=lambda page: 90 * MB if page == 1 else 2 * MB)).main.number == 0


def test_a_page_that_needs_a_little_more(verdict):
    assert verdict(Run(peak=lambda page: 9 * MB if page == 13 else 1 * MB)).main.number == 0


def test_a_document_that_is_loaded_at_once(verdict):
    run = Run(python=lambda page: {0: 60 * MB}, document={"bytes": 2 * MB})
    found = verdict(run)
    assert found.main.number == 15
    assert found.main.bytes == 60 * MB
    assert "30 times less" in found.main.evidence[1]


def test_imports_are_not_the_document(verdict):
    importing = Frame("<frozen importlib._bootstrap>", 241, "_call_with_frames_removed")
    run = Run(python=lambda page: {0: 60 * MB}, stack=(importing,))
    assert verdict(run).main.number == 0


def test_a_document_that_is_large_itself_is_not_materialised(verdict):
    run = Run(python=lambda page: {0: 60 * MB}, document={"bytes": 50 * MB})
    assert verdict(run).main.number == 0


def test_rows_as_wide_as_the_declared_range(verdict):
    # given one block of 131,072 bytes for each row: 16,384 cells
    row = Frame("/srv/venv/lib/python3.11/site-packages/openpyxl/worksheet/_read_only.py", 130, "")
    run = Run(pages=30, python=lambda page: {}, during=lambda page: 131_072, stack=(row,))
    grown = run.but(native=lambda page: 30 * MB, pages=30)
    found = verdict(grown)
    assert found.main.number == 16
    assert "16,384 cells" in found.main.evidence[0]
    assert "reset_dimensions" in found.fix[0]


@pytest.mark.parametrize(
    ("document", "told"),
    [
        (500_000, "500 kB: 64 times less"),
        (16 * MB, "16.0 MB: 2 times less"),
        (17 * MB, "17.0 MB: more than half of that"),
        (90 * MB, "90.0 MB: more than that"),
    ],
)
def test_the_document_beside_what_was_taken(verdict, document, told):
    # given wide rows in a run that takes 32 MB at most: 30 of native memory and 2 at each page
    row = Frame("/srv/venv/lib/python3.11/site-packages/openpyxl/worksheet/_read_only.py", 130, "")
    run = Run(
        during=lambda page: 131_072,
        native=lambda page: 30 * MB,
        stack=(row,),
        document={"bytes": document},
    )
    found = verdict(run)
    assert (found.main.number, found.main.bytes) == (16, 32 * MB)
    assert found.main.evidence[1] == f"the document has {told}"


def test_rows_of_a_usual_width(verdict):
    row = Frame("/srv/venv/lib/python3.11/site-packages/openpyxl/worksheet/_read_only.py", 130, "")
    run = Run(during=lambda page: 8_000, stack=(row,), native=lambda page: 30 * MB)
    assert verdict(run).main.number == 0


# -- nothing ------------------------------------------------------------------------------------


def test_a_healthy_run(verdict):
    found = verdict(Run())
    assert found.main.number == 0
    assert found.confidence >= 0.8
    assert found.fix == ()
    assert found.rerun is None


def test_a_healthy_run_that_was_not_settled_could_be_surer(verdict):
    found = verdict(Run(steps=None))
    assert found.main.number == 0
    assert found.rerun.options == {"settle": True}


def test_three_pages_are_too_few(verdict):
    found = verdict(Run(pages=3, python=leak(1 * MB)))
    assert found.main.number == 0
    assert found.confidence <= 0.2


# -- a service that settles on its way ----------------------------------------------------------


def test_a_settlement_on_the_way_hides_nothing_that_comes_after_it(verdict):
    run = Run(native=per_page(5 * MB))
    alone = verdict(run.but(steps=None))
    assert alone.main.number == 4
    settled = verdict(run.but(settled_after=2))
    assert (settled.main.number, settled.main.bytes) == (alone.main.number, alone.main.bytes)
