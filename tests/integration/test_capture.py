"""Captures of real runs: the right holder is named, and the process is the same afterwards."""

import gc
import itertools
import os
import threading
import weakref
from contextvars import ContextVar
from pathlib import Path
from types import FunctionType

import pytest
from reportlab.pdfgen.canvas import Canvas

from diagnostics import current_unit, record, units
from diagnostics.analysis.chains import chain_in_words
from diagnostics.holders import taking
from diagnostics.holders.growth import TypeCount
from diagnostics.holders.heap import OutOfTimeError
from diagnostics.holders.living import Living
from diagnostics.holders.search import search
from diagnostics.holders.sources import GrowthSource, SampledSource
from diagnostics.holders.taking import CaptureBusyError, Limits, take_capture
from diagnostics.launch.inline import run_plan
from diagnostics.launch.plan import RunPlan
from diagnostics.probes.object_types import count_types
from diagnostics.probes.own import is_own_file
from diagnostics.recording.reader import RecordingReader
from diagnostics.recording.writer import RecordingWriter

heap = pytest.importorskip(
    "diagnostics.probes._heap", reason="the sampled engine was not built: no C compiler"
)

SAMPLES = Path(__file__).parents[2] / "sample_docs"
HERE = Path(__file__).name


def capture(*, unit=None, ended=False, source=None, limits=Limits()):  # noqa: B008
    return take_capture(
        source or SampledSource(heap.samples, heap.nodes),
        number=1,
        reason="asked for",
        unit=current_unit() if unit is None else unit,
        ended=ended,
        now_ns=lambda: 0,
        limits=limits,
    )


def chains(rows):
    """Suspect's rank -> its chains in words."""
    found = {}
    for (suspect, _), links in itertools.groupby(
        rows.chains, lambda link: (link.suspect, link.chain)
    ):
        text = chain_in_words(list(links), rows.objects, rows.references)
        found.setdefault(suspect, []).append(text)
    return found


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.p87"


def test_pages_that_are_never_closed(path):
    import pdfplumber

    def load_pages():
        pdf = pdfplumber.open(SAMPLES / "annual-report.pdf")
        for page in units(pdf.pages[:8]):
            page.extract_text()
            yield page.page_number
        pdf.close()

    with record(path, engine="sampled", types=False):
        for number in load_pages():
            if number == 8:
                rows = capture()
    assert rows.capture.complete
    suspect = rows.suspects[0]
    assert (suspect.type, suspect.first_unit, suspect.last_unit) == ("pdfminer.layout.LTChar", 1, 6)
    assert suspect.steadiness == 1
    assert suspect.bytes > 6 * 1_000_000  # of each of the pages 1 to 6 more than a megabyte
    line = load_pages.__code__.co_firstlineno + 4
    place = f"test_pages_that_are_never_closed.<locals>.load_pages, {HERE}:{line}"
    text = chains(rows)[1][0]
    assert text.startswith(
        f"`pdf` (local of {place.replace('<locals>.', '')}) -> `PDF._pages` list -> `Page["
    )
    assert "-> `Page._layout` LTPage -> `LTPage._objs` list -> " in text
    assert text.endswith("`LTChar`")
    # The list of pages is in use; what hangs on a page that is over is not.
    wrong = {link.position for link in rows.chains if link.chain == 1 and link.likely_wrong}
    page = next(
        link.position
        for link in rows.chains
        if rows.objects[link.object - 1].type == "pdfplumber.page.Page"
    )
    assert min(wrong) == page


class Kept:
    """A record of a page."""

    def __init__(self, page):
        self.page = page
        self.marks = [page] * 200


CACHE = []


@pytest.fixture(autouse=True)
def _empty_cache():
    yield
    CACHE.clear()


def test_objgraph_comes_to_the_same_chain(path):
    objgraph = pytest.importorskip("objgraph")
    rows = leak(path, lambda page: CACHE.append([Kept(page) for _ in range(50)]))
    ours = [
        rows.objects[link.object - 1].type.rpartition(".")[2]
        for link in rows.chains
        if (link.suspect, link.chain) == (1, 1)
    ]
    theirs = objgraph.find_backref_chain(CACHE[0][0], objgraph.is_proper_module)
    names = [type(one).__name__ for one in theirs]
    # The module's dict is a way that ours does not name.
    assert names[:2] == ["module", "dict"]
    assert ours == ["module", *names[2:]] == ["module", "list", "list", "Kept"]


def leak(path, keep, look=capture, pages=10):
    """Records a loader that keeps something of every page, and looks at the end."""
    with record(path, engine="sampled", types=False):
        for page in units(range(1, pages + 1)):
            keep(page)
        return look(unit=pages, ended=True)


def test_a_module_level_cache(path):
    rows = leak(path, lambda page: CACHE.extend(Kept(page) for _ in range(50)))
    (suspect,) = rows.suspects
    # 10 pages of 50 records, each with a list of 200 pointers and its own head
    assert suspect.bytes == pytest.approx(10 * 50 * (200 * 8 + 200), rel=0.15)
    assert (suspect.units, suspect.type) == (10, f"{__name__}.Kept")
    assert chains(rows) == {1: [f"`CACHE` (module {__name__}) -> 500 `Kept`"]}
    assert rows.capture.note == ""
    (target,) = [item for item in rows.objects if item.name == "" and item.count == 500]
    assert target.unit in range(1, 11)


def test_texts_in_records_that_the_collector_does_not_track(path):
    rows = leak(
        path,
        lambda page: CACHE.append({"text": chr(97 + page) * 100_000, "page": page}),
    )
    (suspect,) = rows.suspects
    assert suspect.bytes == pytest.approx(10 * 100_000, rel=0.05)
    assert suspect.type in ("builtins.dict", "builtins.str")
    assert chains(rows)[1][0].startswith(f"`CACHE` (module {__name__}) -> ")


def test_only_the_buffers_are_left(path):
    def keep(_page):
        CACHE.append([None] * 100_000)

    rows = leak(path, keep)
    assert rows.suspects[0].type == "builtins.list"
    assert chains(rows)[1] == [f"`CACHE` (module {__name__}) -> 10 `list`"]
    assert "only the growth of their own buffer" in rows.capture.note


def test_a_healthy_loader_has_no_suspect(path):
    rows = leak(path, lambda page: Kept(page))
    assert rows.suspects == [] or sum(s.bytes for s in rows.suspects) < 100_000
    assert rows.chains == []


def test_what_is_young_is_no_suspect(path):
    def look(unit, ended):
        return capture(unit=unit, ended=False)

    rows = leak(path, lambda page: CACHE.extend(Kept(page) for _ in range(50)), look)
    assert (rows.suspects[0].first_unit, rows.suspects[0].last_unit) == (1, 8)


def test_the_process_is_the_same_afterwards():
    class Cyclic:
        pass

    # The engine's core alone: a recorder would go on noting down what the capture allocates.
    unit = ContextVar("unit", default=0)
    heap.start(unit, 512.0, 100_000, 32, False, 1)
    try:
        for page in range(1, 11):
            unit.set(page)
            CACHE.extend(Kept(page) for _ in range(50))
        change_of(lambda: capture(unit=10, ended=True))  # what is imported for it does not count
        # Nor does it count that the workbench remembers whose code a file is.
        for function in [item for item in gc.get_objects() if type(item) is FunctionType]:
            is_own_file(function.__code__.co_filename, False)
        garbage = Cyclic()
        garbage.itself = garbage
        waits = weakref.ref(garbage)
        del garbage
        gc.disable()
        references = [len(gc.get_referents(item)) for item in CACHE]
        collections = [generation["collections"] for generation in gc.get_stats()]
        expected = change_of(lambda: None)
        assert change_of(lambda: capture(unit=10, ended=True)) == expected
        assert not gc.isenabled()  # as it was
        assert waits() is not None
        assert [generation["collections"] for generation in gc.get_stats()] == collections
        assert [len(gc.get_referents(item)) for item in CACHE] == references
    finally:
        gc.enable()
        heap.stop()


def change_of(act):
    """How many objects of each type are more, or fewer, after an act whose result is dropped."""
    before = count_types()
    act()
    after = count_types()
    changed = {kind: after.get(kind, 0) - before.get(kind, 0) for kind in after | before}
    return {kind: count for kind, count in changed.items() if count}


def test_no_reference_is_kept(path):
    def look(unit, ended):
        alive = weakref.ref(CACHE[0])
        assert capture(unit=unit, ended=ended).chains
        CACHE.clear()
        assert alive() is None
        return True

    assert leak(path, lambda page: CACHE.extend(Kept(page) for _ in range(50)), look)


def test_other_threads_run_on(path):
    steps, over = [], threading.Event()

    def work():
        while not over.is_set():
            steps.append(None)

    worker = threading.Thread(target=work)

    def look(unit, ended):
        worker.start()
        before = len(steps)
        rows = capture(unit=unit, ended=ended)
        during = len(steps) - before
        over.set()
        worker.join()
        assert rows.chains
        return during

    assert leak(path, lambda page: CACHE.extend(Kept(page) for _ in range(50)), look) > 0


def test_a_second_capture_has_to_wait(path):
    class Impatient:
        def find(self, *_args, **_options):
            with pytest.raises(CaptureBusyError, match="being taken already"):
                capture(unit=1)
            raise KeyError("the first one fails")

    with pytest.raises(KeyError):
        capture(unit=1, source=Impatient())
    assert gc.isenabled()
    assert leak(path, lambda page: CACHE.append(Kept(page))).capture.complete


def test_time_runs_out(path):
    def look(unit, ended):
        return capture(unit=unit, ended=ended, limits=Limits(seconds=0))

    rows = leak(path, lambda page: CACHE.extend(Kept(page) for _ in range(50)), look)
    assert not rows.capture.complete
    assert "time" in rows.capture.note
    assert rows.suspects[0].units == 10  # what the samples alone tell is there all the same


def test_the_time_may_run_out_when_the_chains_are_known(path, monkeypatch):
    ends = []

    class Ending(taking.Deadline):
        def check(self):
            if ends:
                raise OutOfTimeError
            super().check()

    def searched(*args):
        web = search(*args)
        ends.append(True)
        return web

    monkeypatch.setattr(taking, "Deadline", Ending)
    monkeypatch.setattr(taking, "search", searched)
    rows = leak(path, lambda page: CACHE.append(Kept(page)))
    assert rows.chains
    assert {row.id for row in rows.objects} == {link.object for link in rows.chains}
    assert rows.capture.complete
    assert "around the chains" in rows.capture.note


def test_one_object_of_each_suspect_may_be_all_that_is_asked_for(path):
    def look(unit, ended):
        return capture(unit=unit, ended=ended, limits=Limits(objects=1))

    rows = leak(path, lambda page: CACHE.extend(Kept(page) for _ in range(50)), look)
    assert rows.capture.complete
    assert len({(link.suspect, link.chain) for link in rows.chains if link.suspect == 1}) == 1


def growing():
    """What counts of types say of five units that each left a hundred objects."""
    marks = []
    for unit in range(1, 6):
        CACHE.extend(Kept(unit) for _ in range(100))
        marks.append(TypeCount(unit, count_types()))
    return GrowthSource(marks)


def test_the_time_is_up_for_growing_types_too():
    rows = capture(unit=5, ended=True, source=growing(), limits=Limits(seconds=-1))
    assert not rows.capture.complete
    assert rows.suspects


def test_frozen_objects_are_told_of():
    gc.freeze()
    try:
        rows = capture(unit=1)
    finally:
        gc.unfreeze()
    assert "frozen (gc.freeze)" in rows.capture.note


def test_without_the_sampled_engine():
    rows = capture(unit=5, ended=True, source=growing())
    by_type = {suspect.type: suspect for suspect in rows.suspects}
    kept = by_type[f"{__name__}.Kept"]
    assert (kept.blocks, kept.first_unit, kept.last_unit, kept.site) == (400, 2, 5, None)
    assert chains(rows)[kept.rank] == [f"`CACHE` (module {__name__}) -> 500 `Kept`"]


def test_it_can_be_explored_after_the_process_is_gone(path, tmp_path):
    rows = leak(path, lambda page: CACHE.extend(Kept(page) for _ in range(50)))
    with_capture = tmp_path / "capture.p87"
    writer = RecordingWriter(with_capture, {})
    writer.put_capture(*rows.parts)
    writer.close()
    with RecordingReader(with_capture) as reader:
        assert reader.captures() == [rows.capture]
        assert reader.chains(1) == rows.chains
    numbers = {item.id for item in rows.objects}
    assert all({one.holder, one.held} <= numbers for one in rows.references)
    # What a record refers to is there, beside the chain.
    target = rows.chains[-1].object
    held = {one.label for one in rows.references if one.holder == target}
    assert ".marks" in held


class Meddling:
    """A source of suspects that does something while the capture goes on, and finds none."""

    def __init__(self, act):
        self._act = act

    def find(self, *_args, **_options):
        self._act()
        return [], Living()

    def births(self, _objects):
        return {}


@pytest.mark.parametrize("before", [True, False])
def test_what_the_program_tells_the_collector_meanwhile_is_kept(before):
    thresholds, seen = gc.get_threshold(), []

    def act():
        seen.append((gc.isenabled(), gc.get_threshold()))
        gc.disable() if before else gc.enable()

    gc.enable() if before else gc.disable()
    try:
        capture(unit=1, source=Meddling(act))
        after = gc.isenabled()
    finally:
        gc.enable()
    assert seen == [(before, thresholds)]
    assert after is not before
    assert gc.get_threshold() == thresholds


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_that_was_forked_during_a_capture_takes_its_own():
    ended = []

    def fork():
        child = os.fork()
        if child == 0:
            complete = False
            try:
                complete = gc.isenabled() and capture(unit=1).capture.complete
            finally:
                os._exit(0 if complete else 1)
        ended.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    assert capture(unit=1, source=Meddling(fork)).capture.complete
    assert ended == [0]


class Silent(type):
    """A metaclass that does not let its classes be looked at."""

    __hash__ = None

    def __eq__(cls, other):
        raise AssertionError("the program's code was run")

    __getattribute__ = __subclasscheck__ = __instancecheck__ = __eq__


class Closed(metaclass=Silent):
    __slots__ = ("marks", "page")


def closed(page):
    item = object.__new__(Closed)
    object.__setattr__(item, "page", page)
    object.__setattr__(item, "marks", [page] * 200)
    return item


def test_objects_whose_types_cannot_be_hashed(path):
    rows = leak(path, lambda page: CACHE.extend(closed(page) for _ in range(200)))
    by_type = {suspect.type: suspect for suspect in rows.suspects}
    suspect = by_type[f"{__name__}.Closed"]  # its lists are allocated on a line of their own
    assert suspect.units == 10
    assert chains(rows)[suspect.rank] == [f"`CACHE` (module {__name__}) -> 2,000 `Closed`"]


def test_types_that_grew_and_cannot_be_hashed():
    gc.collect()  # what another test left must not go between the counts
    marks = []
    for unit in range(1, 4):
        CACHE.extend(closed(unit) for _ in range(150))
        marks.append(TypeCount(unit, count_types()))
    rows = capture(unit=3, ended=True, source=GrowthSource(marks))
    grown = {suspect.type: suspect.blocks for suspect in rows.suspects}
    assert grown[f"{__name__}.Closed"] == 2 * 150


def write_pdf(path, pages):
    canvas = Canvas(str(path))
    for number in range(pages):
        text = canvas.beginText(72, 780)
        for line in range(40):
            text.textLine(
                f"Page {number}, line {line}: " + "water, gravel, and a seat by the mill "
            )
        canvas.drawText(text)
        canvas.showPage()
    canvas.save()


def test_a_run_of_a_built_in_loader_begins_at_what_it_has_opened(path, tmp_path):
    write_pdf(tmp_path / "report.pdf", pages=6)
    run_plan(RunPlan(path, document=tmp_path / "report.pdf", loader="pdfplumber"))
    with RecordingReader(path) as reader:
        (last,) = [one for one in reader.captures() if one.reason == "end of the run"]
        links = [link for link in reader.chains(last.id) if link.suspect == 1]
        text = chain_in_words(
            links, reader.held_objects(last.id).values(), reader.references(last.id)
        )
    assert text.startswith("`pdf` (local of page87 run) -> `PDF._pages` list -> `Page[")


def test_what_a_function_returns_to_a_run_is_its_result(path, tmp_path, monkeypatch):
    source = """
import time
from diagnostics import units

def load(path):
    records = []
    for page in units(range(12)):
        records.append({"page": page, "text": chr(97 + page) * 200_000})
        time.sleep(0.02)
    return records
"""
    (tmp_path / "ingest_records.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    run_plan(RunPlan(path, document=tmp_path, loader="ingest_records:load"))
    with RecordingReader(path) as reader:
        (last,) = reader.captures()
        text = chain_in_words(
            reader.chains(last.id),
            reader.held_objects(last.id).values(),
            reader.references(last.id),
        )
    assert text.startswith("`result` (local of page87 run) -> `[")
    assert text.endswith("dict -> `['text']` str")


def test_tuples_that_other_threads_are_building_are_left_alone(path):
    """Somebody else's reference to an unfinished tuple makes its building fail."""
    over, failures, built = threading.Event(), [], []

    def build():
        while not over.is_set():
            try:
                built.append(len(tuple(str(n) for n in range(3000))))
            except SystemError as error:
                failures.append(error)

    threads = [threading.Thread(target=build) for _ in range(3)]
    with record(path, engine="sampled", captures=False):
        for thread in threads:
            thread.start()
        try:
            for page in units(range(1, 16)):
                CACHE.extend(Kept(page) for _ in range(200))
                count_types()
                capture()
        finally:
            over.set()
            for thread in threads:
                thread.join()
    assert len(built) > 10
    assert failures == []
