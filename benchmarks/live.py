"""What one refresh of the live view costs as a recording grows: python -m benchmarks.live

A fast writer makes an hour of a leaking loader (ten ticks a second, a page each second, a hundred
stacks a page); after each stretch one second more is written and one refresh is measured: reading
what is new, building the birth-unit picture, encoding it for the browser. CPU time of this process,
median of the refreshes of a minute, and the bytes that would be sent.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from diagnostics.analysis.watch import Watch
from diagnostics.figures.retention import birth_view
from diagnostics.recording.liveness import writer_identity
from diagnostics.recording.model import GcSummary, HeapTotal, ProcessSample, UnitRow, alive_id
from diagnostics.recording.writer import RecordingWriter
from pages.components.heatmap.component import encode

TICKS_A_SECOND = 10
STACKS = 100
SECOND = 1_000_000_000


class Leak:
    """Writes the recording of a loader that keeps 4 MB of each page, a second at a time."""

    def __init__(self, path: Path) -> None:
        self._writer = RecordingWriter(
            path, {"writer": writer_identity(), "settings": {"engine": "sampled"}}
        )
        self._second = 0

    def write_second(self) -> None:
        """One page, in ten ticks."""
        page = self._second + 1
        start = self._second * SECOND
        for tick in range(TICKS_A_SECOND):
            t_ns = start + tick * SECOND // TICKS_A_SECOND
            rss = 50_000_000 + page * 4_000_000
            self._writer.put_process(ProcessSample(t_ns, rss, None, None, 0, 0, 2, t_ns))
            self._writer.put_heap_total(HeapTotal(t_ns, rss - 40_000_000, 2_000_000))
            self._writer.add_gc_summaries([GcSummary(t_ns, 0, 9, 90_000, 20_000, 5, 0)])
            stacks = range(tick * STACKS // TICKS_A_SECOND, (tick + 1) * STACKS // TICKS_A_SECOND)
            self._writer.add_changes(
                "alive", t_ns, page, {alive_id(page, 1 + n): (40_000 + n, 40) for n in stacks}
            )
            self._writer.put_units([UnitRow(page, "page", f"page {page}", start)])
            self._writer.commit()
        end = start + SECOND - 1
        self._writer.put_units([UnitRow(page, "page", f"page {page}", start, end, "finished")])
        self._writer.commit()
        self._second += 1

    def close(self) -> None:
        self._writer.close()


def refresh(watch: Watch) -> tuple[float, int]:
    """CPU milliseconds and bytes of one refresh."""
    start = time.process_time()
    watch.update()
    view = birth_view(watch.births(), gc=watch.collector, units=watch.units.figures())
    payload = encode(view, selection=None, sequence=0, height=440)
    return (time.process_time() - start) * 1000, len(payload)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=int, default=60)
    chosen = parser.parse_args()
    print("| minute | CPU a refresh (ms) | lowest – highest | sent (kB) |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        leak = Leak(Path(folder) / "live.p87")
        leak.write_second()
        watch = Watch(Path(folder) / "live.p87")
        refresh(watch)
        for minute in range(1, chosen.minutes + 1):
            costs, sizes = [], []
            for _ in range(60):
                leak.write_second()
                cost, size = refresh(watch)
                costs.append(cost)
                sizes.append(size)
            if minute == 1 or minute % 10 == 0:
                spread = f"{min(costs):.1f} – {max(costs):.1f}"
                middle = statistics.median(costs)
                print(
                    f"| {minute} | {middle:.1f} | {spread} | {max(sizes) / 1000:.0f} |", flush=True
                )
        leak.close()


if __name__ == "__main__":
    main()
