"""The workbench in a server of its own and a tab that shows it, with what each refresh costs."""

from __future__ import annotations

import base64
import ctypes
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from playwright.sync_api import Page, sync_playwright
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

ROOT = Path(__file__).resolve().parents[1]
_START_S = 60
_REFRESH_S = 60
_LISTEN_MS = 2000  # two refreshes, and time for what has piled up
_BINARY = 2  # the websocket's opcode; a payload of it comes in base64
_FINISHED = ForwardMsg.ScriptFinishedStatus.FINISHED_FRAGMENT_RUN_SUCCESSFULLY
_CHROMIUM_ARGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--enable-precise-memory-info",
]


class Cost(NamedTuple):
    """One refresh: CPU seconds of the server, and bytes that travelled in either direction."""

    cpu_s: float
    bytes: int


@contextmanager
def workbench(recordings: Path) -> Iterator[tuple[int, str]]:
    """Serve the app for a folder of recordings; gives the server's process id and its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    server = subprocess.Popen(
        [sys.executable, "-m", "streamlit", "run", "app.py", f"--server.port={port}"],
        cwd=ROOT,  # where the app's own settings lie, in .streamlit/
        env={**os.environ, "PAGE87_RECORDINGS": str(recordings)},
        stdout=subprocess.DEVNULL,
    )
    try:
        _wait_for(f"{url}/_stcore/health", server)
        yield server.pid, url
    finally:
        server.terminate()
        server.wait()


def _wait_for(url: str, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except (urllib.error.URLError, TimeoutError):
            time.sleep(0.1)
    raise RuntimeError(f"the app did not start within {_START_S} s")


@contextmanager
def opened_tab(server: int, url: str) -> Iterator[Tab]:
    """Chromium with the page at ``url``, once its heat map has drawn."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        raise SystemExit("There is no chromium on PATH (Debian's package is called chromium).")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=_CHROMIUM_ARGS)
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        tab = Tab(page, server)
        page.goto(url)
        page.locator(".heatmap .title:not(:empty)").wait_for(timeout=_START_S * 1000)
        yield tab
        browser.close()


class Tab:
    """A tab with the heat map in it, and what the server and the network spend on it."""

    def __init__(self, page: Page, server: int) -> None:
        self._page = page
        self._clock = _cpu_clock(server)
        self._refreshes = 0
        self._bytes = 0
        self._inspector = page.context.new_cdp_session(page)
        self._inspector.on("Network.webSocketFrameReceived", self._on_received)
        self._inspector.on("Network.webSocketFrameSent", self._on_sent)
        self._inspector.on("Network.loadingFinished", self._on_loaded)
        # Its own copies of the traffic are not to be taken for the page's memory.
        self._inspector.send("Network.enable", {"maxTotalBufferSize": 0})
        self._inspector.send("Performance.enable")

    def catch_up(self) -> None:
        """Hear of all refreshes that went on while nobody listened, and let one more begin."""
        self._page.wait_for_timeout(_LISTEN_MS)

    def next_refresh(self) -> Cost:
        """Wait for the end of the next refresh; what was spent meanwhile."""
        number, sent, spent = self._refreshes, self._bytes, time.clock_gettime(self._clock)
        deadline = time.monotonic() + _REFRESH_S
        while self._refreshes == number:
            if time.monotonic() > deadline:
                raise RuntimeError(f"the page did not refresh within {_REFRESH_S} s")
            self._page.wait_for_timeout(20)
        return Cost(time.clock_gettime(self._clock) - spent, self._bytes - sent)

    def heap_bytes(self) -> float:
        """What the tab's JavaScript heap holds after a full collection."""
        self._inspector.send("HeapProfiler.collectGarbage")
        metrics = self._inspector.send("Performance.getMetrics")["metrics"]
        return float(next(each["value"] for each in metrics if each["name"] == "JSHeapUsedSize"))

    def _on_received(self, event: dict[str, Any]) -> None:
        payload = _payload(event)
        self._bytes += len(payload)
        message = ForwardMsg.FromString(payload)
        if message.WhichOneof("type") == "script_finished":
            self._refreshes += message.script_finished == _FINISHED

    def _on_sent(self, event: dict[str, Any]) -> None:
        self._bytes += len(_payload(event))

    def _on_loaded(self, event: dict[str, Any]) -> None:
        self._bytes += int(event["encodedDataLength"])


def _payload(event: dict[str, Any]) -> bytes:
    frame = event["response"]
    data: str = frame["payloadData"]
    return base64.b64decode(data) if frame["opcode"] == _BINARY else data.encode()


def _cpu_clock(pid: int) -> int:
    """The clock of a process's CPU time, threads that have ended included, for clock_gettime."""
    clock = ctypes.c_int()
    error = ctypes.CDLL(None).clock_getcpuclockid(pid, ctypes.byref(clock))
    if error:
        raise OSError(error, os.strerror(error))
    return clock.value
