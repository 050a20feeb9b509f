"""The Leaks page and the verdict in a real browser: a leak of forty pages, written by hand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import ROOT, Serve, Shoot, soon
from playwright.sync_api import Locator, Page, expect

from diagnostics.recording.model import (
    Capture,
    ChainLink,
    Frame,
    HeapTotal,
    HeldObject,
    LedgerReading,
    Outcome,
    ProcessSample,
    Reference,
    SettlementStep,
    Suspect,
    UnitRow,
)
from diagnostics.recording.writer import RecordingWriter

PATIENCE_MS = 30_000
S, MB = 1_000_000_000, 1_000_000
PAGES = 40
INGEST = "/srv/app/ingest.py"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recordings")
    write_leak(path / "leak.p87")
    return path


@pytest.fixture(scope="module")
def app(serve: Serve, folder: Path) -> str:
    """The workbench on that folder."""
    return serve(ROOT / "app.py", recordings=folder)


def write_leak(path: Path) -> None:
    """Each page leaves 1 MB: a capture at the end finds 40 MB of words in the module's CACHE, and
    5 MB of strings that a running function holds."""
    writer = RecordingWriter(path, {"settings": {"engine": "sampled"}})
    words = writer.site([Frame(INGEST, 9, "main"), Frame(INGEST, 12, "load")])
    names = writer.site([Frame(INGEST, 9, "main"), Frame(INGEST, 30, "names")])
    writer.put_source(INGEST, {12: "    CACHE[page] = text.split()"})
    chunk, text = writer.type_id("ingest.Chunk"), writer.type_id("builtins.list")
    for page in range(PAGES + 1):
        t_ns, size = (page + 1) * S, page * MB
        if page:
            writer.put_units([UnitRow(page, "page", f"page {page}", page * S, t_ns, "finished")])
        writer.put_process(ProcessSample(t_ns, 50 * MB + size, None, None, 0, 0, 1, 0))
        writer.put_heap_total(HeapTotal(t_ns, size, 0))
        writer.add_frame("types", t_ns, page, {chunk: (100 * page,), text: (500 + page,)})
        parts = {"python": size, "python_small": size, "arenas": size}
        native = {"native_used": 10 * MB, "native_free": 0}
        others = dict.fromkeys(("children", "group_anonymous", "group_cache"))
        rss = 50 * MB + size
        writer.put_ledger(LedgerReading(t_ns, rss, rss, 0, 0, **parts, **native, **others))
    put_capture(writer, words, names)
    end, top = (PAGES + 2) * S, (50 + PAGES) * MB
    writer.put_settlement(
        [SettlementStep(1, "collection", end, top, top - 3 * MB, 40 * MB, 38 * MB, 700, 0)]
    )
    writer.put_outcome(Outcome("finished", "The loader returned.", end, PAGES))
    writer.close()


def put_capture(writer: RecordingWriter, words: int, names: int) -> None:
    def held(key: int, kind: str, **more: object) -> HeldObject:
        usual = {"name": "", "size": 64, "count": 1, "root": "", "unit": None, "site": None}
        return HeldObject(1, key, kind, **{**usual, "file": "", "line": 0, **more})  # type: ignore[arg-type]

    objects = [
        held(1, "builtins.module", name="ingest", root="module", file=INGEST),
        held(2, "builtins.dict", name="CACHE"),
        held(3, "ingest.Chunk", count=PAGES),
        held(4, "builtins.str", count=4000, size=114, unit=7, site=words),
        held(5, "builtins.frame", name="names", root="frame", file=INGEST, line=30),
        held(6, "builtins.list", name="found"),
        held(7, "ingest.Index"),
        held(8, "builtins.tuple"),
    ]
    references = [(1, 2, ".CACHE"), (2, 3, "[7]"), (3, 4, ".words"), (5, 6, "found")]
    references += [(6, 4, "[0]"), (7, 3, ".newest"), (7, 8, ".shape")]
    chains = {1: (1, 2, 3, 4), 2: (5, 6, 4)}
    wrong = {(1, 2), (1, 3)}
    writer.put_capture(
        Capture(1, 41 * S, PAGES, "end of the run", 80_000_000, 25_000, True, ""),
        [
            Suspect(1, 1, words, "builtins.str", 40 * MB, 160_000, 1, 40, 40, 1.0),
            Suspect(1, 2, names, "builtins.str", 5 * MB, 20_000, 3, 12, 5, 0.5),
        ],
        objects,
        [Reference(1, *reference) for reference in references],
        [
            ChainLink(1, suspect, 1, place, key, 6, (suspect, place) in wrong)
            for suspect, links in chains.items()
            for place, key in enumerate(links)
        ],
    )


def opened(page: Page, app: str, address: str = "leaks") -> None:
    page.goto(f"{app}/{address}?recording=leak.p87")
    title = address.capitalize()
    expect(page.get_by_role("heading", name=title, exact=True)).to_be_visible(timeout=PATIENCE_MS)


def boxes(page: Page) -> Locator:
    return page.locator(".holders .box")


def box(page: Page, key: int) -> Locator:
    return page.locator(f".holders .box[data-id='{key}']")


def test_the_first_suspect_is_explained_by_its_stack_and_its_chain(
    page: Page, app: str, shoot: Shoot
) -> None:
    opened(page, app)
    expect(page.get_by_text("40.0 MB in 160,000 blocks (str), born in pages 1-40")).to_be_visible(
        timeout=PATIENCE_MS
    )
    expect(page.get_by_text("CACHE[page] = text.split()")).to_be_visible()
    steps = page.locator("ol li").filter(has_text="cut here")
    expect(steps).to_have_text(
        [re.compile(r"\[7\].*Chunk.*one of 40"), re.compile(r"\.words.*str")]
    )
    expect(boxes(page)).to_have_count(4)
    expect(page.locator(".holders .edge.wrong")).to_have_count(2)
    shoot(page, "leaks")


def test_the_graph_reads_from_the_root_on_the_left_to_the_suspect_on_the_right(
    page: Page, app: str
) -> None:
    opened(page, app)
    expect(boxes(page)).to_have_count(4, timeout=PATIENCE_MS)
    places = [box(page, key).bounding_box() for key in (1, 2, 3, 4)]
    lefts = [place["x"] for place in places if place is not None]
    assert len(lefts) == 4
    assert lefts == sorted(lefts)
    words = page.locator(".holders svg").get_attribute("aria-label") or ""
    assert "`CACHE` (module ingest) -> `Chunk[7]` -> 4,000 `str`" in words


def test_a_click_shows_what_refers_to_an_object_and_a_second_one_hides_it(
    page: Page, app: str, shoot: Shoot
) -> None:
    opened(page, app)
    expect(boxes(page)).to_have_count(4, timeout=PATIENCE_MS)
    box(page, 3).click()
    expect(box(page, 7)).to_contain_text("Index")  # refers to the chunk, so it stands before it
    before, after = box(page, 7).bounding_box(), box(page, 3).bounding_box()
    assert before is not None
    assert after is not None
    assert before["x"] < after["x"]
    panel = page.locator(".holders .panel")
    expect(panel).to_contain_text("ingest.Chunk")
    expect(panel).to_contain_text("40 objects")
    expect(panel).to_contain_text("Cut the reference to it")
    box(page, 7).click()
    expect(box(page, 8)).to_contain_text(".shape")
    shoot(page, "leaks-graph")
    box(page, 3).click()  # what hung on it goes with it
    expect(boxes(page)).to_have_count(4)


def test_the_graph_can_be_walked_with_the_keyboard(page: Page, app: str) -> None:
    opened(page, app)
    expect(boxes(page)).to_have_count(4, timeout=PATIENCE_MS)
    panel = page.locator(".holders .panel")
    expect(panel).to_contain_text("page 7")  # where the suspect's object was born
    expect(panel).to_contain_text("ingest.py:12 in load")
    box(page, 4).focus()
    page.keyboard.press("ArrowLeft")
    expect(box(page, 3)).to_be_focused()
    page.keyboard.press("Shift+ArrowLeft")
    expect(box(page, 7)).to_be_visible()
    expect(page.locator(".holders .spoken")).to_have_text("1 more shown")
    page.keyboard.press("Enter")
    expect(boxes(page)).to_have_count(4)
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    expect(box(page, 1)).to_be_focused()
    expect(panel).to_contain_text("module ingest")


def test_another_suspect_is_chosen_in_the_table(page: Page, app: str) -> None:
    opened(page, app)
    grid = page.get_by_test_id("stDataFrame")
    expect(grid).to_be_visible(timeout=PATIENCE_MS)
    expect(boxes(page)).to_have_count(4, timeout=PATIENCE_MS)
    place = grid.bounding_box()
    assert place is not None
    page.mouse.click(place["x"] + 18, place["y"] + 87)  # the second row
    expect(page.get_by_text("5.0 MB in 20,000 blocks (str), born in pages 3-12")).to_be_visible()
    expect(boxes(page)).to_have_count(3)
    expect(box(page, 5)).to_contain_text("running function")


def test_types_are_counted_since_a_unit(page: Page, app: str, shoot: Shoot) -> None:
    opened(page, app)
    page.get_by_text("Types since a unit").click()
    expect(page.get_by_text("More objects than at first, by type")).to_be_visible(
        timeout=PATIENCE_MS
    )
    page.get_by_role("slider").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_text("More objects than at the end of page 1, by type")).to_be_visible()
    shoot(page, "leaks-types")


def test_the_overview_opens_with_the_verdict(page: Page, app: str, shoot: Shoot) -> None:
    opened(page, app, "overview")
    expect(page.get_by_role("link", name="See who holds it")).to_be_visible(timeout=PATIENCE_MS)
    verdict = page.get_by_role("heading", level=3).first.bounding_box()
    picture = page.get_by_text("Where the resident memory is").bounding_box()
    assert verdict is not None
    assert picture is not None
    assert verdict["y"] < 300 < picture["y"]
    expect(page.get_by_text("A collection gave back 700 objects and 3.0 MB.")).to_be_visible()
    shoot(page, "overview-verdict")
    page.get_by_role("link", name="See who holds it").click()
    expect(page.get_by_role("heading", name="Leaks", exact=True)).to_be_visible()
    assert "recording=leak.p87" in page.url


def brightness(shape: Locator) -> float:
    """Of the colour that a shape is filled with, 0 to 255."""
    filled = shape.evaluate(
        """shape => {
          const ink = document.createElement("canvas").getContext("2d");
          ink.fillStyle = getComputedStyle(shape).fill;
          ink.fillRect(0, 0, 1, 1);
          return [...ink.getImageData(0, 0, 1, 1).data];
        }"""
    )
    return sum(filled[:3]) / 3


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_graph_fits_the_theme(page: Page, app: str, scheme: str, shoot: Shoot) -> None:
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    opened(page, app)
    expect(boxes(page)).to_have_count(4, timeout=PATIENCE_MS)
    plates, texts = box(page, 4).locator(".plate"), box(page, 4).locator(".what")

    def fits() -> bool:
        plate, text = brightness(plates), brightness(texts)
        return (plate > 200 and text < 90) if scheme == "light" else (plate < 60 and text > 190)

    # A machine that is busy may show the boxes before the theme's colours are in.
    assert soon(fits, PATIENCE_MS / 1000)
    shoot(page, f"leaks-{scheme}")
