"""What a capture costs on a large heap: python -m benchmarks.capture

A loader keeps of each page a list of records, until some two million objects are alive. Then
captures are taken, the first of which imports what it needs, and it is counted whether the process
is the same afterwards. CPU time is that of the calling thread.
"""

from __future__ import annotations

import argparse
import threading
import time
from contextvars import ContextVar
from operator import attrgetter

import psutil

from diagnostics.holders.sources import SampledSource
from diagnostics.holders.taking import CaptureRows, take_capture
from diagnostics.probes import _heap
from diagnostics.probes.object_types import count_types

RECORDS_A_PAGE = 2_500
OBJECTS_A_RECORD = 5
"""The record, its dict of marks, and the three lists in that."""

CURRENT_UNIT: ContextVar[int] = ContextVar("unit", default=0)


class Record:
    """One line of a page."""

    def __init__(self, number: int) -> None:
        self.text = f"line {number}"
        self.marks = {"spans": [[number], [float(number)]]}


class Document:
    """Keeps every page that it has read."""

    def __init__(self) -> None:
        self.pages: list[list[Record]] = []
        self.texts: list[dict[str, str]] = []

    def read_page(self) -> None:
        page = [Record(number) for number in range(RECORDS_A_PAGE)]
        self.pages.append(page)
        self.texts.append({"text": "\n".join(record.text for record in page)})


class PeakRss:
    """The highest RSS of this process while it is entered, over that at the start, in bytes."""

    def __enter__(self) -> PeakRss:
        self._process = psutil.Process()
        self._start = self._highest = self._process.memory_info().rss
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def grown(self) -> int:
        return self._highest - self._start

    def _watch(self) -> None:
        while not self._over.wait(0.01):
            self._highest = max(self._highest, self._process.memory_info().rss)


def capture(unit: int) -> CaptureRows:
    return take_capture(
        SampledSource(_heap.samples, _heap.nodes),
        number=1,
        reason="asked for",
        unit=unit,
        ended=True,
        now_ns=time.monotonic_ns,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, default=2_000_000)
    parser.add_argument("--times", type=int, default=3)
    chosen = parser.parse_args()
    pages = chosen.objects // (RECORDS_A_PAGE * OBJECTS_A_RECORD)
    # The engine's core alone: a recorder would go on noting down what the captures allocate.
    _heap.start(CURRENT_UNIT, 8192.0, 250_000, 64, False, 1)
    document = Document()
    for page in range(1, pages + 1):
        CURRENT_UNIT.set(page)
        document.read_page()
    print("| capture | wall (s) | CPU (s) | RSS more at most (MB) |\n|---|---|---|---|")
    for number in range(1, chosen.times + 1):
        before = count_types()
        cpu = time.thread_time()
        with PeakRss() as peak:
            rows = capture(pages)
        cpu = time.thread_time() - cpu
        wall = rows.capture.duration_ns / 1e9
        print(f"| {number} | {wall:.1f} | {cpu:.1f} | {peak.grown / 1e6:.0f} |", flush=True)
        suspects, chains, result = len(rows.suspects), chains_of(rows), rows.capture
        del rows, peak
    after = count_types()
    changed = {kind: after.get(kind, 0) - before.get(kind, 0) for kind in after | before}
    changed = {kind: count for kind, count in changed.items() if count}
    print(f"{result.objects:,} objects, {suspects} suspects, {chains} chains,", end=" ")
    print(f"complete: {result.complete} {result.note}")
    print(f"more or fewer objects after the last capture, by type: {changed}")
    _heap.stop()


def chains_of(rows: CaptureRows) -> int:
    return len(set(map(attrgetter("suspect", "chain"), rows.chains)))


if __name__ == "__main__":
    main()
