"""What every browser test needs: a served Streamlit script, a tab, a place for screenshots."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).parents[2]
ARTEFACTS = ROOT / "tests" / "artefacts"

CHROMIUM_ARGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-precise-memory-info",
]

Serve = Callable[..., str]
Shoot = Callable[[Page, str], Path]


def soon(holds: Callable[[], bool], seconds: float = 5) -> bool:
    """Whether it comes true in time: what is drawn comes with one of the browser's next frames."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@pytest.fixture(scope="session")
def serve() -> Iterator[Serve]:
    """``serve(script, *args)`` runs a Streamlit script on 127.0.0.1 and gives its URL;
    ``recordings`` is the folder that it shows.

    The same call twice gives the same server. The servers end with the session; what they printed
    is in tests/artefacts/.
    """
    ARTEFACTS.mkdir(exist_ok=True)
    servers: dict[tuple[object, ...], tuple[subprocess.Popen[bytes], str]] = {}

    def start(script: str | Path, *args: str, recordings: Path | None = None) -> str:
        call = (str(script), *args, recordings)
        if call not in servers:
            log = ARTEFACTS / f"server-{Path(script).stem}-{len(servers)}.log"
            shown = {} if recordings is None else {"PAGE87_RECORDINGS": str(recordings)}
            servers[call] = _start_server(log, {**os.environ, **shown}, str(script), *args)
        return servers[call][1]

    yield start
    for process, _ in servers.values():
        process.terminate()
    for process, _ in servers.values():
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _start_server(
    log: Path, env: dict[str, str], script: str, *args: str
) -> tuple[subprocess.Popen[bytes], str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = {
        "server.port": port,
        "server.address": "127.0.0.1",
        "server.headless": "true",
        "browser.gatherUsageStats": "false",
        "server.fileWatcherType": "none",
        "runner.postScriptGC": "false",
    }
    flags = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    command = [sys.executable, "-m", "streamlit", "run", script, *flags, "--", *args]
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**env, "PYTHONPATH": str(ROOT)},
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    url = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + 40
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/_stcore/health", timeout=2):
                return process, url
        except (urllib.error.URLError, TimeoutError):
            time.sleep(0.1)
    process.kill()
    pytest.fail(f"Streamlit did not start for {script}:\n{log.read_text(errors='replace')}")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium; without one the test is skipped, or fails where PAGE87_REQUIRE_BROWSER=1."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        reason = "there is no chromium on PATH (Debian's package is called chromium)"
        if os.environ.get("PAGE87_REQUIRE_BROWSER") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_ARGS)
        yield started
        started.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A fresh tab, 1400 x 900. The test fails if the tab asked any machine but 127.0.0.1."""
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    tab = context.new_page()
    tab.set_default_timeout(15_000)
    asked: list[str] = []
    context.on("request", lambda request: asked.append(request.url))
    tab.on("websocket", lambda socket: asked.append(socket.url))
    yield tab
    context.close()
    network = [url for url in asked if urlsplit(url).scheme in {"http", "https", "ws", "wss"}]
    foreign = [url for url in network if urlsplit(url).hostname != "127.0.0.1"]
    assert foreign == [], f"requests left the machine: {foreign}"


@pytest.fixture(scope="session")
def shoot() -> Shoot:
    """``shoot(page, name)`` keeps a screenshot in tests/artefacts/ and gives its path."""
    ARTEFACTS.mkdir(exist_ok=True)

    def take(page: Page, name: str) -> Path:
        path = ARTEFACTS / f"{name}.png"
        page.screenshot(path=path)
        return path

    return take
