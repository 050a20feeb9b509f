"""What it costs to record, beside what peers cost: python -m benchmarks.overhead [--write]

Every run is a process of its own; the variants take turns, so that a machine that grows slower
slows all of them. Ratios are to the bare runs of the same load: the median, and the lowest and
the highest pair. --write puts the table into docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import NamedTuple

from benchmarks.loads import LOADS

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "benchmarks.md"
OFTEN = ("bare", "page87 sampled")
SELDOM = (
    "page87 exact, 1 frame",
    "tracemalloc 1",
    "tracemalloc 10",
    "memray",
    "memray, Python too",
    "memory_profiler lines",
)
_POLL_S = 0.002


class Run(NamedTuple):
    cpu_s: float
    peak_bytes: int
    capture_bytes: int


def measure(load: str, variant: str) -> Run:
    """One run; its peak is the highest resident set seen every 2 ms from outside."""
    with tempfile.TemporaryDirectory(prefix="page87-bench-") as folder:
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker", load, variant, folder],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        if process.stdout.readline().strip() != "ready":
            raise RuntimeError(f"{load} under {variant} did not start")
        over = threading.Event()
        peak = [0]
        watcher = threading.Thread(target=_watch, args=(process.pid, over, peak))
        watcher.start()
        said = json.loads(process.stdout.readline())
        over.set()
        watcher.join()
        process.wait()
    return Run(said["cpu_s"], peak[0], said["capture_bytes"])


def _watch(pid: int, over: threading.Event, peak: list[int]) -> None:
    page = os.sysconf("SC_PAGE_SIZE")
    statm = Path(f"/proc/{pid}/statm")
    while not over.wait(_POLL_S):
        try:
            peak[0] = max(peak[0], int(statm.read_text().split()[1]) * page)
        except OSError:
            return


def measured(rounds: int, seldom: int) -> dict[tuple[str, str], list[Run]]:
    """All runs, by load and variant, in turns."""
    runs: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for turn in range(rounds):
        for load in LOADS:
            for variant in (*OFTEN, *(SELDOM if turn < seldom else ())):
                runs[load, variant].append(measure(load, variant))
                print(f"{turn + 1}/{rounds} {load}: {variant}", file=sys.stderr, flush=True)
    return runs


def table(runs: dict[tuple[str, str], list[Run]]) -> Iterator[str]:
    """The figures as Markdown."""
    yield "| load | variant | CPU | peak RSS | peak RSS more | capture | n |"
    yield "|---|---|---|---|---|---|---|"
    for load in LOADS:
        bare = runs[load, "bare"]
        bare_cpu = statistics.median(run.cpu_s for run in bare)
        bare_peak = statistics.median(run.peak_bytes for run in bare)
        for variant in (*OFTEN, *SELDOM):
            own = runs[load, variant]
            ratios = [run.cpu_s / other.cpu_s for run, other in zip(own, bare, strict=False)]
            peak = statistics.median(run.peak_bytes for run in own)
            if variant == "bare":
                cpu, peaks, more = f"1 ({bare_cpu:.2f} s)", f"1 ({bare_peak / 1e6:.0f} MB)", ""
            else:
                cpu = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} – {max(ratios):.2f})"
                peaks, more = f"{peak / bare_peak:.2f}", f"{(peak - bare_peak) / 1e6:+.0f} MB"
            size = statistics.median(run.capture_bytes for run in own)
            capture = f"{size / 1e3:,.0f} kB" if size else ""
            yield f"| {load} | {variant} | {cpu} | {peaks} | {more} | {capture} | {len(own)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="of bare and sampled runs")
    parser.add_argument("--seldom", type=int, default=1, help="rounds of all the others")
    parser.add_argument("--write", action="store_true", help=f"into {PAGE.relative_to(ROOT)}")
    chosen = parser.parse_args()
    text = "\n".join(table(measured(chosen.rounds, chosen.seldom)))
    about = (
        f"Measured on {date.today()}: Python {platform.python_version()}, {platform.system()},"
        f" {os.cpu_count()} cores. CPU is of the whole process, recorder thread, start and end of"
        " the recording included. The spread is over pairs of neighbouring runs."
    )
    print(text)
    if chosen.write:
        PAGE.write_text(
            "# What it costs to record\n\n"
            "`python -m benchmarks.overhead --write` writes this page.\n\n"
            f"{about}\n\n{text}\n"
        )


if __name__ == "__main__":
    main()
