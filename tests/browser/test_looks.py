"""What only a browser shows: letters, and what is cut off; light and dark, wide and narrow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT, Serve, Shoot
from playwright.sync_api import Browser, Locator, Page, expect

from diagnostics.recording.model import Frame, GcEvent, HeapTotal, LineRow, Outcome, UnitRow
from diagnostics.recording.writer import RecordingWriter

PATIENCE_MS = 30_000
S, MS, MB = 1_000_000_000, 1_000_000, 1_000_000
INGEST = "/srv/app/ingest.py"
LONG_LINE = "    rows = [tuple(cell.strip() for cell in row if cell is not None) for row in table]"
VIEWS = [("light", 800), ("light", 1400), ("dark", 800), ("dark", 1400)]


@pytest.fixture(scope="module")
def app(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The workbench on a folder with one short run."""
    folder = tmp_path_factory.mktemp("recordings")
    write_run(folder / "run.p87")
    return serve(ROOT / "app.py", recordings=folder)


def write_run(path: Path) -> None:
    """Five pages of 8 MB, all gone with page 5; a collection meanwhile freed 1 of the 40 MB. Nobody
    looked at the ledger or at the peaks."""
    writer = RecordingWriter(path, {"settings": {"engine": "exact"}})
    site = writer.site([Frame(INGEST, 12, "load")])
    for page in range(1, 6):
        t_ns, size = (page + 1) * S, 8 * MB * page
        writer.put_units([UnitRow(page, "page", f"page {page}", page * S, t_ns, "finished")])
        writer.put_heap_total(HeapTotal(t_ns, size, 0))
        writer.add_frame("heap", t_ns, page, {site: (size, page)})
    writer.add_gc_events([GcEvent(6500 * MS, 40 * MS, 2, 9, 0, 5, False, 40 * MB, 39 * MB)])
    writer.put_heap_total(HeapTotal(7 * S, 0, 0))
    writer.add_frame("heap", 7 * S, 5, {})
    writer.put_line_profile([LineRow("load", INGEST, 7, LONG_LINE, 60 * MB, MB, 5)])
    writer.put_outcome(Outcome("finished", "The loader returned.", 8 * S, 5))
    writer.close()


@pytest.fixture(params=VIEWS, ids=[f"{theme}-{width}" for theme, width in VIEWS])
def tab(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Page]:
    theme, width = request.param
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    yield page
    context.close()


def letters(place: Locator) -> str:
    """The first family of letters that the browser was asked for."""
    family: str = place.evaluate("node => getComputedStyle(node).fontFamily")
    return family.split(",")[0].strip('"')


def test_every_lens_can_be_read_and_chosen(app: str, tab: Page) -> None:
    tab.goto(f"{app}/heatmap?recording=run.p87")
    for name in ("By birth unit", "By code site", "By address", "Logarithmic", "Linear"):
        button = tab.get_by_role("radio", name=name)
        expect(button).to_be_visible(timeout=PATIENCE_MS)
        # from its left edge to its right one, nothing else lies on it and no box cuts it off
        assert button.evaluate(
            """node => {
              const box = node.getBoundingClientRect(), middle = (box.top + box.bottom) / 2;
              return [box.left + 3, box.right - 3].every(
                (x) => node.contains(document.elementFromPoint(x, middle)));
            }"""
        ), name


def test_the_charts_have_the_letters_of_the_page(app: str, tab: Page) -> None:
    tab.goto(f"{app}/overview?recording=run.p87")
    title = tab.locator(".js-plotly-plot .gtitle").first
    expect(title).to_be_visible(timeout=PATIENCE_MS)
    assert letters(title) == letters(tab.get_by_role("heading", name="Overview"))


def test_a_chart_without_data_measures_nothing(app: str, tab: Page) -> None:
    # given a run of which nobody read the peaks
    tab.goto(f"{app}/overview?recording=run.p87")
    chart = tab.locator(".js-plotly-plot", has_text="No peaks were recorded.")
    expect(chart).to_be_visible(timeout=PATIENCE_MS)
    expect(chart.locator(".xtick, .ytick, .xtitle, .ytitle, .gridlayer path")).to_have_count(0)


def test_code_is_monospaced_and_whole(app: str, tab: Page) -> None:
    tab.goto(f"{app}/lines?recording=run.p87")
    line = tab.locator("td code")
    expect(line).to_have_text(LONG_LINE.strip(), timeout=PATIENCE_MS)
    assert letters(line).startswith("Source Code")
    # in one line, and where the window has no room for it the table can be moved
    assert line.evaluate("node => node.getClientRects().length") == 1
    assert line.evaluate(
        """node => {
          for (let box = node.parentElement; box; box = box.parentElement) {
            const way = getComputedStyle(box).overflowX;
            if (way === "auto" || way === "scroll") return true;
            if (way !== "visible" && box.scrollWidth > box.clientWidth) return false;
          }
          return false;
        }"""
    )


def test_a_collection_on_the_map_tells_who_freed_the_memory(
    app: str, page: Page, shoot: Shoot
) -> None:
    page.goto(f"{app}/heatmap?recording=run.p87")
    page.get_by_role("radio", name="By code site").click()
    canvas = page.locator(".heatmap canvas.base")
    expect(canvas).to_be_visible(timeout=PATIENCE_MS)
    box = canvas.bounding_box()
    assert box is not None
    told = page.locator(".heatmap .tooltip .collection")
    for x in range(int(box["width"]) - 10, 0, -4):
        page.mouse.move(box["x"] + x, box["y"] + box["height"] / 2)
        if told.count():
            break
    shoot(page, "collection-on-the-map")
    expect(told).to_have_text(
        "generation 2, 40.0 ms, 9 collected, 1.0 MB freed;"
        " the heap fell by 40.0 MB: reference count"
    )
