"""What it takes to print a recording of many units: python -m benchmarks.show [--write]

A fast writer makes recordings of ten minutes of a leaking loader, which differ in how many units
there are. ``page87 show`` prints each of them, as text and as JSON, every time in a process of its
own; the repeats go round all of them, so that whatever else the machine does meets every one.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from pathlib import Path
from typing import NamedTuple

from diagnostics.recording.model import (
    Frame,
    GcSummary,
    HeapTotal,
    LedgerReading,
    Outcome,
    ProcessSample,
    UnitHeap,
    UnitPeak,
    UnitRow,
    alive_id,
)
from diagnostics.recording.writer import RecordingWriter

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "benchmarks-show.md"
UNITS = (100, 10_000, 100_000)
FORMS = {"text": (), "JSON": ("--json",)}
RUN_NS = 600_000_000_000
TICK_NS = 100_000_000
STACKS = 100
KEPT_BYTES = 40_000
START_BYTES = 50_000_000
_NO_CACHE = "PYTHONDONTWRITEBYTECODE"

_HEAD = """# What it takes to print a recording

`python -m benchmarks.show --write` writes this page."""


def _about(repeats: int) -> str:
    return (
        f"Measured on {date.today()}: Python {platform.python_version()}, {platform.system()},"
        f" {os.cpu_count()} cores, {repeats} repeats in turn: the median, and the lowest and the"
        " highest. The machine's load average was"
        f" {os.getloadavg()[0]:.1f} at the end, with what else it did. Each time is that of a whole"
        " process, from its start to its end. The recordings are of ten minutes of a leak with ten"
        f" ticks a second: each unit keeps {KEPT_BYTES:,} bytes, from one of {STACKS} allocation"
        " stacks."
    )


class Printed(NamedTuple):
    """One process that printed a recording."""

    wall_s: float
    cpu_s: float
    peak_bytes: int


def write_recording(path: Path, units: int) -> None:
    """Ten minutes of a loader that keeps a block of each of its units."""
    writer = RecordingWriter(path, {"settings": {"engine": "sampled"}, "name": path.stem})
    sites = [writer.site([Frame("loader.py", 1 + n, f"read_{n}")]) for n in range(STACKS)]
    duration_ns = RUN_NS // units
    blocks: Counter[int] = Counter()
    ended = 0
    for t_ns in range(0, RUN_NS + 1, TICK_NS):
        new = range(ended + 1, t_ns // duration_ns + 1)
        ended = new.stop - 1
        kept = ended * KEPT_BYTES
        _write_tick(writer, t_ns, kept)
        writer.put_units(_row(unit, duration_ns) for unit in new)
        writer.put_unit_peaks(_peak(unit) for unit in new)
        writer.put_unit_heaps(UnitHeap(unit, 3 * KEPT_BYTES, 2 * KEPT_BYTES) for unit in new)
        if new:
            born = {alive_id(unit, sites[unit % STACKS]): (KEPT_BYTES, 1) for unit in new}
            writer.add_changes("alive", t_ns, ended, born)
            changed = Counter(sites[unit % STACKS] for unit in new)
            blocks += changed
            heap = {site: (blocks[site] * KEPT_BYTES, blocks[site]) for site in changed}
            writer.add_changes("heap", t_ns, ended, heap)
    writer.put_outcome(Outcome("finished", "The loader returned.", RUN_NS, units))
    writer.close()


def _write_tick(writer: RecordingWriter, t_ns: int, kept: int) -> None:
    rss = START_BYTES + kept
    writer.put_process(ProcessSample(t_ns, rss, None, None, 0, 0, 2, t_ns))
    writer.put_heap_total(HeapTotal(t_ns, kept, 2_000_000))
    writer.add_gc_summaries([GcSummary(t_ns, 0, 9, 90_000, 20_000, 5, 0)])
    ledger = LedgerReading(
        t_ns,
        rss=rss,
        anonymous=rss - 10_000_000,
        file_backed=10_000_000,
        shared=0,
        python=kept,
        python_small=0,
        arenas=0,
        native_used=kept + 20_000_000,
        native_free=1_000_000,
        children=None,
        group_anonymous=None,
        group_cache=None,
    )
    writer.put_ledger(ledger)


def _row(unit: int, duration_ns: int) -> UnitRow:
    end_ns = unit * duration_ns
    return UnitRow(unit, "page", f"page {unit}", end_ns - duration_ns, end_ns, "finished")


def _peak(unit: int) -> UnitPeak:
    before = START_BYTES + (unit - 1) * KEPT_BYTES
    after = before + KEPT_BYTES
    return UnitPeak(unit, before, after, after + KEPT_BYTES, "sampled maximum")


def printed(path: Path, options: Sequence[str]) -> Printed:
    """What ``page87 show`` took."""
    begun = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "diagnostics", "show", str(path), *options],
        cwd=ROOT,
        # As installed packages are: compiled once, not in every process.
        env={key: value for key, value in os.environ.items() if key != _NO_CACHE},
        stdout=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)  # tells what it took, unlike ``wait``
    wall_s = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"page87 show {path} ended with {process.returncode}")
    rss_unit = 1 if sys.platform == "darwin" else 1024
    return Printed(wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * rss_unit)


def measured(repeats: int) -> Iterator[tuple[int, str, int, list[Printed]]]:
    """For each number of units and each form: the file's bytes, and the processes."""
    runs: dict[tuple[int, str], list[Printed]] = defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="page87-bench-") as folder:
        paths = {units: Path(folder) / f"{units}.p87" for units in UNITS}
        # In a process that ends: the peak that the system tells of a new one begins with ours.
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as other:
            list(other.map(write_recording, paths.values(), paths))
        printed(paths[UNITS[0]], ())  # compiles
        for turn in range(repeats):
            for units, path in paths.items():
                for form, options in FORMS.items():
                    runs[units, form].append(printed(path, options))
            print(f"{turn + 1}/{repeats}", file=sys.stderr, flush=True)
        for (units, form), times in runs.items():
            yield units, form, paths[units].stat().st_size, times


def row(units: int, form: str, size: int, times: list[Printed]) -> str:
    """One line of the table."""
    peak = statistics.median(run.peak_bytes for run in times)
    return (
        f"| {units:,} | {form} | {size / 1e6:.1f} | {_spread([run.wall_s for run in times])}"
        f" | {_spread([run.cpu_s for run in times])} | {peak / 1e6:.0f} |"
    )


def _spread(seconds: list[float]) -> str:
    return f"{statistics.median(seconds):.2f} ({min(seconds):.2f} – {max(seconds):.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--write", action="store_true", help=f"into {PAGE.relative_to(ROOT)}")
    chosen = parser.parse_args()
    lines = [
        "| units | form | recording (MB) | wall (s) | CPU (s) | peak RSS (MB) |",
        "|---|---|---|---|---|---|",
    ]
    lines += [row(*found) for found in measured(chosen.repeats)]
    print("\n".join(lines))
    if chosen.write:
        PAGE.write_text("\n\n".join([_HEAD, _about(chosen.repeats), "\n".join(lines)]) + "\n")


if __name__ == "__main__":
    main()
