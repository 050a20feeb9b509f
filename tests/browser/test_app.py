"""The workbench in a real browser: record, watch, cancel, open by a link, look at every page."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import ROOT, Shoot
from playwright.sync_api import Browser, Page, expect
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from websockets import InvalidStatus, Origin
from websockets.sync.client import connect

from diagnostics.launch.plan import Measures, RunPlan
from diagnostics.launch.supervisor import ChildRun
from diagnostics.recording.reader import RecordingReader

PATIENCE_MS = 30_000
REPORT = ROOT / "sample_docs" / "annual-report.pdf"
MINUTES = ROOT / "sample_docs" / "minutes.html"
Workbench = Callable[..., str]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "recordings"
    path.mkdir()
    return path


@pytest.fixture
def workbench(folder: Path) -> Iterator[Workbench]:
    """``workbench(*options)`` opens the app as the command line does, and gives its address."""
    servers: list[subprocess.Popen[str]] = []

    def start(*options: str) -> str:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        command = [sys.executable, "-m", "diagnostics", "app", "--no-browser"]
        server = subprocess.Popen(
            [*command, "--port", str(port), *options],
            env={**os.environ, "PAGE87_RECORDINGS": str(folder)},
            stdout=subprocess.PIPE,
            text=True,
        )
        servers.append(server)
        assert server.stdout is not None
        for line in server.stdout:
            found = re.search(r"http://\S+", line)
            if found:
                return found[0]
        pytest.fail(f"page87 app ended with status {server.wait()}")

    yield start
    for server in servers:
        server.send_signal(signal.SIGINT)
        assert server.wait(15) == 0


def read(
    path: Path, document: Path = REPORT, loader: str = "pypdfium2", engine: str = "none"
) -> Path:
    """A finished recording of a sample document, made in a child."""
    run = ChildRun(RunPlan(path, document, loader, measures=Measures(engine)))
    run.start()
    run.wait(60)
    return path


def coloured_cells(page: Page) -> int:
    """How many points of the heat map are painted."""
    return int(
        page.locator(".heatmap canvas.base").first.evaluate(
            """canvas => {
              const ink = canvas.getContext("2d");
              const data = ink.getImageData(0, 0, canvas.width, canvas.height).data;
              let painted = 0;
              for (let at = 3; at < data.length; at += 4 * 97) painted += data[at] > 0;
              return painted;
            }"""
        )
    )


def test_one_click_records_the_sample_and_the_heat_map_grows(
    page: Page, workbench: Workbench, folder: Path, shoot: Shoot
) -> None:
    page.goto(workbench())
    page.get_by_role("button", name="Record the sample").click(timeout=PATIENCE_MS)
    expect(page.get_by_text(re.compile(r"^page \d+ of \d+ · "))).to_be_visible(timeout=PATIENCE_MS)
    map_title = page.locator(".heatmap .title")
    expect(map_title).to_have_text(re.compile("Memory by"), timeout=PATIENCE_MS)
    painted = []
    deadline = time.monotonic() + 40
    while len(painted) < 3 and time.monotonic() < deadline:
        now = coloured_cells(page)
        if now > (painted[-1] if painted else 0):
            painted.append(now)
        page.wait_for_timeout(500)
    assert len(painted) == 3, f"the heat map did not grow: {painted}"
    shoot(page, "record-live")

    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("Cancelled.")).to_be_visible(timeout=PATIENCE_MS)
    shoot(page, "record-cancelled")
    (recording,) = folder.glob("*.p87")
    with RecordingReader(recording) as reader:
        assert reader.outcome().state == "cancelled"
        assert reader.outcome().last_unit >= 1
    assert f"recording={recording.name}" in page.url


@pytest.mark.parametrize(
    ("address", "title"),
    [("overview", "Overview"), ("heatmap", "Heat map"), ("collector", "Garbage collector")],
)
def test_a_link_opens_its_view_also_as_the_first_request(
    page: Page, workbench: Workbench, folder: Path, address: str, title: str
) -> None:
    recording = read(folder / "report.p87")
    page.goto(f"{workbench()}{address}?recording={recording.name}")
    expect(page.get_by_role("heading", name=title, exact=True)).to_be_visible(timeout=PATIENCE_MS)
    expect(page.get_by_text("report.p87")).to_be_visible()
    expect(page.get_by_role("link", name="Recordings")).to_be_visible()
    page.wait_for_timeout(1000)
    assert page.get_by_text("Page not found").count() == 0


def test_every_page_keeps_the_recording_in_its_address(
    page: Page, workbench: Workbench, folder: Path, shoot: Shoot
) -> None:
    read(folder / "report.p87", MINUTES, "html", "exact")
    page.goto(f"{workbench()}overview?recording=report.p87")
    expect(page.get_by_text(re.compile("finished, .* (pages|sections)"))).to_be_visible(
        timeout=PATIENCE_MS
    )
    shoot(page, "overview")
    for link, heading in (
        ("Heat map", "Heat map"),
        ("Garbage collector", "Garbage collector"),
        ("Lines", "Lines"),
        ("Overview", "Overview"),
    ):
        page.get_by_role("link", name=link, exact=True).click()
        expect(page.get_by_role("heading", name=heading, exact=True)).to_be_visible()
        page.wait_for_function("location.search.includes('recording=report.p87')")
        page.wait_for_timeout(800)
        shoot(page, f"page-{link.lower().replace(' ', '-')}")


def test_a_click_on_the_map_shows_the_source_of_the_row(
    page: Page, workbench: Workbench, folder: Path, shoot: Shoot
) -> None:
    read(folder / "report.p87", MINUTES, "html", "exact")
    page.goto(f"{workbench()}heatmap?recording=report.p87")
    expect(page.get_by_text("does not know in which unit")).to_be_visible(timeout=PATIENCE_MS)
    page.get_by_role("radio", name="By code site").click()
    plot = page.locator(".heatmap .plot")
    expect(plot).to_be_visible(timeout=PATIENCE_MS)
    box = plot.bounding_box()
    assert box is not None
    rows = int(re.findall(r"(\d+) rows", plot.get_attribute("aria-label") or "")[0])
    shown = page.locator("code").get_by_text("→").first
    for row in range(8):  # the first rows may belong to frozen modules, which have no source
        plot.click(position={"x": box["width"] * 0.3, "y": (row + 0.5) * box["height"] / rows})
        expect(page.get_by_text("At the end")).to_be_visible(timeout=PATIENCE_MS)
        page.wait_for_timeout(700)
        if shown.is_visible():
            break
    expect(shown).to_be_visible()
    shoot(page, "heatmap-clicked")


def test_the_birth_unit_lens_says_what_it_shows_and_opens_the_stacks_of_a_page(
    page: Page, workbench: Workbench, folder: Path, shoot: Shoot
) -> None:
    pytest.importorskip("diagnostics.probes._heap", reason="the sampled engine was not built")
    read(folder / "report.p87", REPORT, "pypdf", "sampled")
    page.goto(f"{workbench()}heatmap?recording=report.p87")
    plot = page.locator(".heatmap .plot")
    expect(plot).to_be_visible(timeout=PATIENCE_MS)
    expect(
        page.get_by_text(re.compile("Page 87 alone took .* and gave (it back|back all but)"))
    ).to_be_visible()
    box = plot.bounding_box()
    assert box is not None
    rows = int(re.findall(r"(\d+) rows", plot.get_attribute("aria-label") or "")[0])
    plot.click(position={"x": box["width"] * 0.97, "y": (rows - 0.5) * box["height"] / rows})
    expect(page.get_by_text(re.compile("^Alive at .*: outside any unit$"))).to_be_visible(
        timeout=PATIENCE_MS
    )
    expect(page.get_by_text("Allocation stacks of what is alive")).to_be_visible()
    shoot(page, "lens-birth")
    page.get_by_role("radio", name="By address").click()
    expect(page.get_by_text("Resident memory by address over time")).to_be_visible(
        timeout=PATIENCE_MS
    )
    shoot(page, "lens-address")


def test_a_child_killed_half_way_leaves_a_recording_that_opens(
    page: Page, workbench: Workbench, folder: Path, shoot: Shoot
) -> None:
    run = ChildRun(RunPlan(folder / "dead.p87", REPORT, "pdfplumber", measures=Measures("none")))
    run.start()
    time.sleep(2.5)
    os.kill(run.pid, signal.SIGKILL)
    run.wait(10)
    page.goto(f"{workbench()}overview?recording=dead.p87")
    expect(page.get_by_text(re.compile("killed by SIGKILL"))).to_be_visible(timeout=PATIENCE_MS)
    shoot(page, "overview-killed")


def test_recordings_are_opened_renamed_and_deleted(
    page: Page, workbench: Workbench, folder: Path, shoot: Shoot
) -> None:
    read(folder / "first.p87")
    page.goto(f"{workbench()}recordings")
    grid = page.get_by_test_id("stDataFrame")
    expect(grid).to_be_visible(timeout=PATIENCE_MS)

    def choose() -> None:
        box = grid.bounding_box()
        assert box is not None
        page.mouse.click(box["x"] + 18, box["y"] + 52)

    choose()
    page.get_by_role("button", name="Rename").click()
    page.get_by_label("New name").fill("renamed")
    page.get_by_role("dialog").get_by_role("button", name="Rename").click()
    expect(page.get_by_role("dialog")).to_be_hidden(timeout=PATIENCE_MS)
    assert [path.name for path in folder.iterdir()] == ["renamed.p87"]
    shoot(page, "recordings")

    if page.get_by_role("button", name="Delete").count() == 0:
        choose()
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Keep it").click()
    expect(page.get_by_role("dialog")).to_be_hidden(timeout=PATIENCE_MS)
    assert (folder / "renamed.p87").exists()
    if page.get_by_role("button", name="Delete").count() == 0:
        choose()
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("There are no recordings yet")).to_be_visible(timeout=PATIENCE_MS)
    assert list(folder.iterdir()) == []


def test_the_dark_theme_is_readable(
    browser: Browser, workbench: Workbench, folder: Path, shoot: Shoot
) -> None:
    read(folder / "report.p87")
    context = browser.new_context(viewport={"width": 1400, "height": 900}, color_scheme="dark")
    page = context.new_page()
    page.goto(f"{workbench()}overview?recording=report.p87")
    expect(page.get_by_text(re.compile("finished, .* (pages|sections)"))).to_be_visible(
        timeout=PATIENCE_MS
    )
    page.wait_for_timeout(1500)
    shoot(page, "overview-dark")
    background = page.evaluate(
        "getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor"
    )
    red, green, blue = map(int, re.findall(r"\d+", background)[:3])
    assert max(red, green, blue) < 60
    context.close()


def first_words(url: str, origin: str, host: str | None = None) -> bytes:
    """What the app says to a session that a page at ``origin`` opened: its messages, as bytes."""
    asked = BackMsg(rerun_script=ClientState()).SerializeToString()
    stream = f"{url.replace('http', 'ws', 1)}_stcore/stream"
    headers = {"Host": host} if host else {}
    said = b""
    with connect(stream, origin=Origin(origin), additional_headers=headers) as session:
        session.send(asked)
        deadline = time.monotonic() + 15
        while b"script_finished" not in said and time.monotonic() < deadline:
            try:
                message = session.recv(timeout=2)
            except TimeoutError:
                break
            said += message if isinstance(message, bytes) else message.encode()
    return said


def test_a_page_of_another_server_on_this_machine_is_refused(workbench: Workbench) -> None:
    url = workbench()
    assert b"Record the sample" in first_words(url, url.rstrip("/"))
    said = first_words(url, "http://127.0.0.1:9")
    assert b"opened by another page" in said
    assert b"Record the sample" not in said


def test_a_server_under_another_name_is_refused(workbench: Workbench) -> None:
    url = workbench()
    with pytest.raises(InvalidStatus):
        first_words(url, "http://evil.example", host="evil.example")


def test_the_server_listens_on_this_machine_only(workbench: Workbench) -> None:
    port = int(workbench().rstrip("/").rpartition(":")[2])
    listening = Path("/proc/net/tcp").read_text() + Path("/proc/net/tcp6").read_text()
    ours = [
        line.split()[1].split(":")[0]
        for line in listening.splitlines()
        if f":{port:04X} " in line and line.split()[3] == "0A"
    ]
    assert ours == ["0100007F"], "127.0.0.1, and nothing else"
