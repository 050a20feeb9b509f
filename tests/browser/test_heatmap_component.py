"""The canvas heat map in a real Chromium: what it draws, what it sends back, what it costs."""

from __future__ import annotations

import re
import time
from operator import sub
from pathlib import Path
from typing import Literal

import pytest
from conftest import Serve, Shoot, soon
from playwright.sync_api import Locator, Page, expect

DEMO = Path(__file__).with_name("heatmap_demo.py")
UNTIL_SHOWN = 20_000  # milliseconds; the first page of a fresh server imports pandas


def opened(page: Page, serve: Serve, picture: str) -> Locator:
    """The map with that picture, once it has drawn."""
    page.goto(f"{serve(DEMO)}/?picture={picture}")
    expect(page.locator(".heatmap .title")).not_to_be_empty(timeout=UNTIL_SHOWN)
    plot = page.locator(".heatmap .plot")
    expect(plot).to_be_visible()
    plot.evaluate("() => new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
    return plot


def place(plot: Locator, row: int, rows: int, moment: float, columns: int) -> tuple[float, float]:
    """Where on the page a row's middle (counted from the top) and a moment (in columns) meet."""
    box = plot.bounding_box()
    assert box is not None
    x = box["x"] + moment * box["width"] / columns
    return x, box["y"] + (row + 0.5) * box["height"] / rows


def colour(page: Page, x: float, y: float, layer: str = "base") -> tuple[int, int, int, int]:
    """What a layer's canvas holds at that place of the page: red, green, blue, alpha."""
    found = page.locator(f".heatmap canvas.{layer}").evaluate(
        """(canvas, [x, y]) => {
          const box = canvas.getBoundingClientRect();
          const ratio = canvas.width / box.width;
          const ink = canvas.getContext("2d");
          return [...ink.getImageData((x - box.left) * ratio, (y - box.top) * ratio, 1, 1).data];
        }""",
        [x, y],
    )
    red, green, blue, alpha = found
    return red, green, blue, alpha


def brightness(pixel: tuple[int, int, int, int]) -> float:
    red, green, blue, _ = pixel
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def selection(page: Page) -> Locator:
    return page.get_by_text(re.compile("^selection: "))


def counters(page: Page) -> dict[str, float]:
    """Chromium's counts for the tab after a full collection, such as JSHeapUsedSize and Nodes."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    session.send("HeapProfiler.collectGarbage")
    metrics = session.send("Performance.getMetrics")["metrics"]
    session.detach()
    return {metric["name"]: metric["value"] for metric in metrics}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_more_memory_stands_out_more_from_the_background(
    page: Page, serve: Serve, scheme: Literal["light", "dark"]
) -> None:
    page.emulate_media(color_scheme=scheme)
    plot = opened(page, serve, "exact")

    nothing = colour(page, *place(plot, 0, 4, 0.5, 5))
    half = colour(page, *place(plot, 1, 4, 2.2, 5))
    full = colour(page, *place(plot, 3, 4, 0.5, 5))

    assert nothing[3] < 30, "a cell that holds nothing shows the panel below it"
    assert (half[3], full[3]) == (255, 255)
    if scheme == "light":
        assert brightness(full) < 60 < brightness(half) < 200
    else:
        assert brightness(full) > 200 > brightness(half) > 60


def test_the_picture_follows_a_switch_of_the_theme(page: Page, serve: Serve) -> None:
    page.emulate_media(color_scheme="light")
    plot = opened(page, serve, "exact")
    full = place(plot, 3, 4, 0.5, 5)
    assert brightness(colour(page, *full)) < 60

    page.emulate_media(color_scheme="dark")

    assert soon(lambda: brightness(colour(page, *full)) > 200)


def test_a_collection_shows_on_empty_and_on_full_cells(page: Page, serve: Serve) -> None:
    plot = opened(page, serve, "exact")

    for row in (0, 3):
        beside = colour(page, *place(plot, row, 4, 2.2, 5))
        x, y = place(plot, row, 4, 2.5, 5)
        across = [colour(page, x + step, y) for step in (-2, -1, 0, 1, 2)]
        assert any(sum(map(abs, map(sub, pixel, beside))) > 150 for pixel in across), row


def test_one_bright_cell_survives_where_cells_are_finer_than_pixels(
    page: Page, serve: Serve
) -> None:
    """Row 777 of 1,500 and column 1,234 of 3,000, all others as pale as they come."""
    page.emulate_media(color_scheme="light")
    plot = opened(page, serve, "needle")
    x, y = place(plot, 777, 1500, 1234.5, 3000)

    around = [colour(page, x + dx, y + dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1)]

    assert min(map(brightness, around)) < 60
    assert brightness(colour(page, x + 6, y)) > 150


def test_a_click_sends_the_row_and_the_time(page: Page, serve: Serve) -> None:
    plot = opened(page, serve, "exact")
    expect(selection(page)).to_have_text("selection: None")

    page.mouse.click(*place(plot, 1, 4, 3.8, 5))

    expect(selection(page)).to_have_text(
        "selection: HeatmapSelection(row_key='key-b', row_to=None, t_s=3.5, column=3)"
    )
    assert plot.evaluate("plot => getComputedStyle(plot).outlineStyle") == "none"


def test_a_click_on_a_label_selects_the_row_where_it_is_largest(page: Page, serve: Serve) -> None:
    plot = opened(page, serve, "exact")
    x, y = place(plot, 1, 4, 0, 5)

    page.mouse.click(x - 12, y)

    expect(selection(page)).to_contain_text("row_key='key-b', row_to=None, t_s=2.5, column=2")


def test_a_drag_selects_a_range_of_rows(page: Page, serve: Serve) -> None:
    plot = opened(page, serve, "exact")

    page.mouse.move(*place(plot, 2, 4, 1.5, 5))
    page.mouse.down()
    page.mouse.move(*place(plot, 1, 4, 2.5, 5))
    page.mouse.move(*place(plot, 0, 4, 2.5, 5))
    page.mouse.up()

    expect(selection(page)).to_contain_text("row_key='key-c', row_to='key-a', t_s=1.5, column=1")


def test_the_keyboard_does_what_the_mouse_does(page: Page, serve: Serve) -> None:
    plot = opened(page, serve, "exact")
    spoken = page.locator(".heatmap .spoken")
    expect(plot).to_have_attribute("role", "application")
    expect(plot).to_have_attribute("aria-label", "Known cells. 4 rows over 5.00 s.")

    plot.focus()
    expect(spoken).to_have_text("row a, nothing, 4.50 s, page 2")
    assert plot.evaluate("plot => getComputedStyle(plot).outlineStyle") == "solid"
    for key in ("ArrowDown", "Home", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    expect(spoken).to_have_text("row b, 13 MB, 2.50 s, page 2")
    page.keyboard.press("Enter")
    expect(selection(page)).to_contain_text("row_key='key-b', row_to=None, t_s=2.5, column=2")

    page.keyboard.press("End")
    page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("Enter")
    expect(selection(page)).to_contain_text("row_key='key-b', row_to='key-d', t_s=4.5, column=4")

    page.keyboard.press("Escape")
    expect(selection(page)).to_have_text("selection: None")


def test_the_page_can_select_and_the_user_can_select_after_it(page: Page, serve: Serve) -> None:
    plot = opened(page, serve, "steered")
    x, y = place(plot, 3, 4, 0, 5)
    edge_of_d = (x - 2, y)  # a selected row carries a bar at the map's edge
    assert colour(page, *edge_of_d, layer="top")[3] == 0

    page.get_by_text("Show row d").click()
    expect(selection(page)).to_contain_text("row_key='key-d'")
    assert soon(lambda: colour(page, *edge_of_d, layer="top")[3] == 255)

    page.mouse.click(*place(plot, 1, 4, 0.5, 5))
    expect(selection(page)).to_contain_text("row_key='key-b'")
    assert soon(lambda: colour(page, *edge_of_d, layer="top")[3] == 0)

    page.get_by_text("Show row d").click()
    expect(selection(page)).to_have_text("selection: None")


def test_hover_tells_size_row_time_unit_and_collection(page: Page, serve: Serve) -> None:
    plot = opened(page, serve, "exact")
    tooltip = page.locator(".heatmap .tooltip")

    page.mouse.move(*place(plot, 3, 4, 1.5, 5))
    expect(tooltip).to_have_text("26 MBrow dat 1.50 s · page 1")
    page.mouse.move(*place(plot, 0, 4, 2.5, 5))
    expect(tooltip).to_have_text("nothingrow aat 2.50 s · page 2generation 2: 30 ms")
    page.mouse.move(0, 0)
    expect(tooltip).to_be_hidden()


def painted(page: Page, y: float, ink: str) -> tuple[float, float]:
    """From where to where, on the page, the base canvas has that ink at one height.

    ``ink`` tells it in JavaScript from a pixel's ``r``, ``g``, ``b`` and ``a``.
    """
    left, right = page.locator(".heatmap canvas.base").evaluate(
        """(canvas, [y, ink]) => {
          const box = canvas.getBoundingClientRect();
          const ratio = canvas.width / box.width;
          const line = Math.floor((y - box.top) * ratio);
          const data = canvas.getContext("2d").getImageData(0, line, canvas.width, 1).data;
          const has = new Function("r", "g", "b", "a", `return ${ink}`);
          const found = [...Array(canvas.width).keys()].filter(
            (x) => has(...data.subarray(4 * x, 4 * x + 4)));
          return [found[0], found.at(-1) + 1].map((x) => box.left + x / ratio);
        }""",
        [y, ink],
    )
    return left, right


BLUE = "b > r + 80 && b > g + 40 && a > 40"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 800])
def test_the_total_has_the_edges_of_the_map(
    page: Page, serve: Serve, scheme: Literal["light", "dark"], width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    plot = opened(page, serve, "total")
    cells, total = plot.bounding_box(), page.locator(".heatmap .total").bounding_box()
    assert cells is not None
    assert total is not None
    assert total["y"] > cells["y"] + cells["height"]
    assert cells["width"] > width / 2

    # Row d, at the bottom, is full from the first to the last moment; so is the foot of the total.
    full = painted(page, place(plot, 3, 4, 0, 5)[1], "a === 255")
    foot = painted(page, total["y"] + 0.9 * total["height"], BLUE)

    assert full == pytest.approx((cells["x"], cells["x"] + cells["width"]), abs=2)
    assert foot == pytest.approx(full, abs=2)
    # Above half of the height (20 of 40 MB) there is only what came from the third second on.
    half = painted(page, total["y"] + 0.3 * total["height"], BLUE)
    assert half == pytest.approx((full[0] + 0.6 * cells["width"], full[1]), abs=2)


def test_the_total_tells_its_size(page: Page, serve: Serve) -> None:
    plot = opened(page, serve, "total")
    tooltip = page.locator(".heatmap .tooltip")
    total = page.locator(".heatmap .total")
    expect(total).to_have_attribute(
        "aria-label", "All that is alive, over time: 40 MB at most, 40 MB at the end."
    )

    x, y = place(total, 0, 1, 2.5, 5)
    page.mouse.move(x, y)
    expect(tooltip).to_have_text("in all 20 MBat 2.50 s · page 2")
    page.mouse.move(*place(plot, 3, 4, 0.5, 5))
    expect(tooltip).to_have_text("26 MBrow dat 500 ms · page 1in all 10 MB")


def test_of_collections_that_crowd_each_other_the_longest_crosses_the_map(
    page: Page, serve: Serve
) -> None:
    """At 1 s one of 5 ms and 30 ms later one of 50 ms, at 4 s one of 1 ms by itself."""
    plot = opened(page, serve, "crowded")
    box = plot.bounding_box()
    assert box is not None
    y = place(plot, 0, 4, 0, 5)[1]
    apart = 0.03 * box["width"] / 5
    assert 3 < apart < 14

    def is_crossed(moment: float) -> bool:
        x, _ = place(plot, 0, 4, moment, 5)
        return max(colour(page, x + step, y)[3] for step in (-1, 0, 1)) > 60

    assert not is_crossed(1.0)
    assert is_crossed(1.03)
    assert is_crossed(4.0)


def test_a_label_that_is_too_long_keeps_its_file_and_line(page: Page, serve: Serve) -> None:
    page.add_init_script(
        """window.written = new Set();
        const write = CanvasRenderingContext2D.prototype.fillText;
        CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
          window.written.add(text);
          return write.call(this, text, ...place);
        };"""
    )
    page.set_viewport_size({"width": 800, "height": 900})
    opened(page, serve, "long-labels")

    written = page.evaluate("() => [...window.written]")

    assert "a/b.py:7 in f" in written
    assert "module.py:419 in OneClass.a_method_with_a_name" not in written  # nor is there room
    assert "package/folder/module.py:419" in written
    assert "package/folder/module.py:420" in written
    (cut,) = [text for text in written if text.startswith("…")]
    assert "extension_of_a_long_name.cpython-311-x86_64-linux-gnu-and-more-of-it.so".endswith(
        cut[1:]
    )


def test_an_empty_view_says_so(page: Page, serve: Serve) -> None:
    page.goto(f"{serve(DEMO)}/?picture=empty")

    expect(page.get_by_text("No data yet")).to_be_visible(timeout=UNTIL_SHOWN)
    expect(page.locator(".heatmap .plot")).to_be_hidden()


def test_the_map_follows_the_width_of_the_window(page: Page, serve: Serve) -> None:
    plot = opened(page, serve, "exact")

    page.set_viewport_size({"width": 800, "height": 900})

    page.wait_for_function("() => document.body.clientWidth <= 800")
    canvas = page.locator(".heatmap canvas.base")
    expect(canvas).to_have_js_property("clientWidth", 768)
    expect(canvas).to_have_js_property("width", 768)
    page.mouse.click(*place(plot, 3, 4, 4.5, 5))
    expect(selection(page)).to_contain_text("row_key='key-d', row_to=None, t_s=4.5")


def test_sixty_live_updates_cost_no_memory_and_keep_what_the_user_does(
    page: Page, serve: Serve
) -> None:
    plot = opened(page, serve, "live")
    expect(page.get_by_text(re.compile(r"^refresh \d+$"))).to_be_visible()
    # The first rows are on the map from the start; the y axis points up, so row 0 lies at its foot.
    box = plot.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] - 2)
    expect(selection(page)).to_contain_text("row_key=1, row_to=None")
    picked = selection(page).inner_text()
    page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + box["height"] - 2)
    wait_for_refreshes(page, 10)
    before = counters(page)

    wait_for_refreshes(page, 60)

    after = counters(page)
    assert selection(page).inner_text() == picked
    expect(page.locator(".heatmap .tooltip .detail")).to_have_text("born on page 1")
    # One listener or node a refresh would be 60; Streamlit's own vary by a few.
    assert after["JSEventListeners"] < before["JSEventListeners"] + 30
    assert after["Nodes"] < before["Nodes"] + 30
    # One decoded window a refresh would be 60 times 75 kB.
    assert after["JSHeapUsedSize"] < before["JSHeapUsedSize"] + 2_000_000


def wait_for_refreshes(page: Page, count: int) -> None:
    """Until the demo has refreshed that many times more."""
    counter = page.get_by_text(re.compile(r"^refresh \d+$"))
    goal = int(counter.inner_text().split()[1]) + count
    deadline = time.monotonic() + 60
    while int(counter.inner_text().split()[1]) < goal:
        assert time.monotonic() < deadline, f"stuck at {counter.inner_text()}, wanted {goal}"
        page.wait_for_timeout(50)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 800])
def test_pictures_for_people(
    page: Page, serve: Serve, shoot: Shoot, scheme: Literal["light", "dark"], width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 720})
    page.emulate_media(color_scheme=scheme)
    for picture in ("units", "sites"):
        plot = opened(page, serve, picture)
        page.mouse.click(*place(plot, 45, 100, 60, 100))
        expect(selection(page)).to_contain_text("HeatmapSelection")
        page.mouse.move(*place(plot, 26, 100, 90, 100))
        expect(page.locator(".heatmap .tooltip")).to_be_visible()
        assert shoot(page, f"heatmap-{picture}-{scheme}-{width}").stat().st_size > 20_000
