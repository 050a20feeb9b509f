"""What one refresh of the live heat map costs as a recording grows: python -m benchmarks.live

A fast writer makes an hour of a leaking loader (ten ticks a second, a page each second, a hundred
stacks a page). It writes ten minutes at once; then a few refreshes are measured, one second of
the recording written before each: the server's CPU time, the bytes that travel to and from a real
Chromium, and what the tab's JavaScript heap holds after a full collection.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import tempfile
from collections.abc import Iterator
from datetime import date
from pathlib import Path

from benchmarks.live_browser import Cost, Tab, opened_tab, workbench
from diagnostics.recording.liveness import writer_identity
from diagnostics.recording.model import (
    Frame,
    GcEvent,
    GcSummary,
    HeapTotal,
    ProcessSample,
    UnitHeap,
    UnitPeak,
    UnitRow,
    alive_id,
)
from diagnostics.recording.writer import RecordingWriter

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "benchmarks-live.md"
TICKS_A_SECOND = 10
STACKS = 100
BLOCK_BYTES = 40_000
SECOND = 1_000_000_000
REFRESHES = 12

_HEAD = """# What a live view costs

`python -m benchmarks.live --write` writes this page."""


def _about() -> str:
    return (
        f"Measured on {date.today()}: Python {platform.python_version()}, {platform.system()},"
        f" {os.cpu_count()} cores, Chromium without a window, {REFRESHES} refreshes of the heat map"
        " by birth unit at each minute: the median, and the lowest and the highest. The recording"
        f" is one of a leak that goes on: a page each second, {STACKS} allocation stacks a page,"
        " all of them kept. The CPU time is that of the whole server; what is sent are the bytes of"
        " the websocket in both directions before any compression, and of HTTP; the heap is what"
        " the tab holds after a full collection."
    )


class Leak:
    """Writes the recording of a loader that keeps 4 MB of each page, a second at a time."""

    def __init__(self, path: Path) -> None:
        self._writer = RecordingWriter(
            path, {"writer": writer_identity(), "settings": {"engine": "sampled"}}
        )
        self._sites = [
            self._writer.site([Frame("loader.py", 1 + n, f"read_{n}")]) for n in range(STACKS)
        ]
        self._second = 0

    def write_until(self, second: int) -> None:
        """All pages up to that second; viewers see them together."""
        while self._second < second:
            self._write_page()
        self._writer.commit()

    def write_second(self) -> None:
        """One page more."""
        self.write_until(self._second + 1)

    def _write_page(self) -> None:
        page = self._second + 1
        start = self._second * SECOND
        end = start + SECOND - 1
        rss = 50_000_000 + page * STACKS * BLOCK_BYTES
        for tick in range(TICKS_A_SECOND):
            t_ns = start + tick * SECOND // TICKS_A_SECOND
            self._writer.put_process(ProcessSample(t_ns, rss, None, None, 0, 0, 2, t_ns))
            self._writer.put_heap_total(HeapTotal(t_ns, rss - 40_000_000, 2_000_000))
            self._writer.add_gc_summaries([GcSummary(t_ns, 0, 9, 90_000, 20_000, 5, 0)])
            born = self._sites[tick * STACKS // TICKS_A_SECOND :][: STACKS // TICKS_A_SECOND]
            alive = {alive_id(page, site): (BLOCK_BYTES + site, 40) for site in born}
            self._writer.add_changes("alive", t_ns, page, alive)
        self._writer.add_gc_events([GcEvent(end, 5_000_000, 2, 0, 0, page)])
        kept = STACKS * BLOCK_BYTES
        ended = UnitRow(page, "page", f"page {page}", start, end, "finished")
        self._writer.put_units([ended, UnitRow(page + 1, "page", f"page {page + 1}", end)])
        self._writer.put_unit_peaks([UnitPeak(page, rss - kept, rss, rss, "sampled maximum")])
        self._writer.put_unit_heaps([UnitHeap(page, 3 * kept, kept)])
        self._second = page

    def close(self) -> None:
        self._writer.close()


def measured(minutes: int) -> Iterator[tuple[int, list[Cost], float]]:
    """For the first and each tenth minute: the refreshes, and bytes of JavaScript heap after."""
    with tempfile.TemporaryDirectory(prefix="page87-bench-") as folder:
        path = Path(folder) / "live.p87"
        leak = Leak(path)
        leak.write_second()
        with (
            workbench(Path(folder)) as (server, url),
            opened_tab(server, f"{url}/heatmap?recording={path.name}") as tab,
        ):
            for minute in (1, *range(10, minutes + 1, 10)):
                leak.write_until(60 * minute - REFRESHES)
                yield minute, _refreshes(leak, tab), tab.heap_bytes()
        leak.close()


def _refreshes(leak: Leak, tab: Tab) -> list[Cost]:
    tab.catch_up()
    tab.next_refresh()  # from here on each refresh has one second to take in
    costs = []
    for _ in range(REFRESHES):
        leak.write_second()
        costs.append(tab.next_refresh())
    return costs


def row(minute: int, costs: list[Cost], heap_bytes: float) -> str:
    """One line of the table."""
    cpu = sorted(cost.cpu_s * 1000 for cost in costs)
    sent = sorted(cost.bytes / 1000 for cost in costs)
    return (
        f"| {minute} | {statistics.median(cpu):.0f} ({cpu[0]:.0f} – {cpu[-1]:.0f})"
        f" | {statistics.median(sent):.0f} ({sent[0]:.0f} – {sent[-1]:.0f})"
        f" | {heap_bytes / 1e6:.1f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=int, default=60)
    parser.add_argument("--write", action="store_true", help=f"into {PAGE.relative_to(ROOT)}")
    chosen = parser.parse_args()
    lines = [
        "| minute | server CPU a refresh (ms) | sent a refresh (kB) | JavaScript heap (MB) |",
        "|---|---|---|---|",
    ]
    print("\n".join(lines))
    for minute, costs, heap_bytes in measured(chosen.minutes):
        lines.append(row(minute, costs, heap_bytes))
        print(lines[-1], flush=True)
    if chosen.write:
        PAGE.write_text("\n\n".join([_HEAD, _about(), "\n".join(lines)]) + "\n")


if __name__ == "__main__":
    main()
