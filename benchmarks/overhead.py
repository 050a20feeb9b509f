"""What it costs to record, beside what peers cost: python -m benchmarks.overhead [--write]

Every run is a process of its own. A long load runs bare and recorded at the same time on one and
the same core, so that whatever else the machine does slows both; two bare runs treated in the same
way say how much of a difference is noise. --write puts the tables into docs/benchmarks.md.
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
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import date
from pathlib import Path
from typing import NamedTuple

from benchmarks.loads import LEAK, LOADS

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "benchmarks.md"
BARE, OURS = "bare", "page87 sampled"
PEERS = (
    "page87 exact, 1 frame",
    "page87 exact, 10 frames",
    "tracemalloc 1",
    "tracemalloc 10",
    "memray",
    "memray, Python too",
    "memory_profiler lines",
)
_POLL_S = 0.005
_NO_CACHE = "PYTHONDONTWRITEBYTECODE"

_HEAD = """# What it costs to record

`python -m benchmarks.overhead --write` writes this page."""

_BESIDE = """## Beside the peers, on shorter loads

One run after the other here. A recording takes about a tenth of a second to begin and to end, which
counts for more in a short one."""

Runs = dict[tuple[str, str], list["Run"]]
Pairs = dict[tuple[str, str], list[tuple["Run", "Run"]]]
"""By load and variant: a bare run and one under the variant."""


class Run(NamedTuple):
    cpu_s: float
    start_s: float
    end_s: float
    peak_bytes: int
    capture_bytes: int

    @property
    def during_s(self) -> float:
        """CPU time between the recording's start and its end."""
        return self.cpu_s - self.start_s - self.end_s


class Worker:
    """One run in a process of its own, ready to begin; pinned to a core if one is given."""

    def __init__(self, load: str, size: int, variant: str, folder: str, core: int | None) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker", load, str(size), variant, folder],
            cwd=ROOT,
            # As installed packages are: compiled once, not in every process.
            env={key: value for key, value in os.environ.items() if key != _NO_CACHE},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        if core is not None:
            os.sched_setaffinity(self._process.pid, {core})
        if self._said() != "ready":
            raise RuntimeError(f"{load} under {variant} did not start")

    def begin(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("begin\n")
        self._process.stdin.flush()
        self._over = threading.Event()
        self._peak = [0]
        self._watcher = threading.Thread(
            target=_watch, args=(self._process.pid, self._over, self._peak)
        )
        self._watcher.start()

    def result(self) -> Run:
        """Its peak is the highest resident set seen every 5 ms from outside."""
        said = json.loads(self._said())
        self._over.set()
        self._watcher.join()
        self._process.communicate()
        return Run(
            said["cpu_s"], said["start_s"], said["end_s"], self._peak[0], said["capture_bytes"]
        )

    def _said(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


def measure(load: str, size: int, variant: str) -> Run:
    """One run with the machine to itself."""
    [run] = _at_once(load, size, (variant,), None)
    return run


def measure_pair(load: str, size: int, variants: tuple[str, str]) -> tuple[Run, Run]:
    """Two runs at the same time, on one core where the system can pin them to it."""
    core = max(os.sched_getaffinity(0)) if hasattr(os, "sched_setaffinity") else None
    first, second = _at_once(load, size, variants, core)
    return first, second


def _at_once(load: str, size: int, variants: Sequence[str], core: int | None) -> list[Run]:
    """A run under each variant, all begun when all are ready."""
    with ExitStack() as stack:
        folders = [
            stack.enter_context(tempfile.TemporaryDirectory(prefix="page87-bench-"))
            for _variant in variants
        ]
        workers = [
            Worker(load, size, variant, folder, core)
            for variant, folder in zip(variants, folders, strict=True)
        ]
        for worker in workers:
            worker.begin()
        return [worker.result() for worker in workers]


def _watch(pid: int, over: threading.Event, peak: list[int]) -> None:
    page = os.sysconf("SC_PAGE_SIZE")
    statm = Path(f"/proc/{pid}/statm")
    while not over.wait(_POLL_S):
        try:
            peak[0] = max(peak[0], int(statm.read_text().split()[1]) * page)
        except OSError:
            return


def long_runs(rounds: int) -> Pairs:
    """The long loads in pairs: bare beside recorded, and once bare beside bare."""
    pairs: Pairs = defaultdict(list)
    for turn in range(rounds):
        for load, (_pages, size, _short) in LOADS.items():
            for variant in (OURS, BARE) if turn == 0 else (OURS,):
                if turn % 2:
                    other, bare = measure_pair(load, size, (variant, BARE))
                else:
                    bare, other = measure_pair(load, size, (BARE, variant))
                pairs[load, variant].append((bare, other))
            print(f"{turn + 1}/{rounds} {load}", file=sys.stderr, flush=True)
    return pairs


def short_runs(rounds: int) -> Runs:
    """The short loads under everything."""
    runs: Runs = defaultdict(list)
    for turn in range(rounds):
        for load, (_pages, _long, size) in LOADS.items():
            for variant in (BARE, OURS, *PEERS):
                runs[load, variant].append(measure(load, size, variant))
                print(f"peers {turn + 1}/{rounds} {load}: {variant}", file=sys.stderr, flush=True)
    return runs


def long_table(pairs: Pairs) -> Iterator[str]:
    """The figures of the long loads as Markdown."""
    yield (
        "| load | bare | bare beside bare | recorded | while it runs | start | end | peak RSS more"
        " | capture | n |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for load in LOADS:
        bares, own = zip(*pairs[load, OURS], strict=True)
        noise = [b.cpu_s / a.cpu_s for a, b in pairs[load, BARE]]
        whole = [run.cpu_s / bare.cpu_s for bare, run in pairs[load, OURS]]
        during = [run.during_s / bare.cpu_s for bare, run in pairs[load, OURS]]
        bare_peak = statistics.median(run.peak_bytes for run in bares)
        peak = statistics.median(run.peak_bytes for run in own)
        columns = (
            load,
            f"{statistics.median(run.cpu_s for run in bares):.1f} s, {bare_peak / 1e6:.0f} MB",
            _spread(noise) if len(noise) > 1 else f"{noise[0]:.2f}",
            _spread(whole),
            _spread(during),
            f"{statistics.median(run.start_s for run in own):.2f} s",
            f"{statistics.median(run.end_s for run in own):.2f} s",
            f"{(peak - bare_peak) / 1e6:+.0f} MB ({peak / bare_peak:.2f})",
            f"{statistics.median(run.capture_bytes for run in own) / 1e3:,.0f} kB",
            str(len(own)),
        )
        yield f"| {' | '.join(columns)} |"


def _spread(ratios: list[float]) -> str:
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} – {max(ratios):.2f})"


def table(runs: Runs, variants: Sequence[str]) -> Iterator[str]:
    """The figures of the short loads as Markdown."""
    yield "| load | variant | CPU | peak RSS | peak RSS more | capture | n |"
    yield "|---|---|---|---|---|---|---|"
    for load in LOADS:
        bare = runs[load, BARE]
        bare_cpu = statistics.median(run.cpu_s for run in bare)
        bare_peak = statistics.median(run.peak_bytes for run in bare)
        yield _row(
            load, BARE, f"1 ({bare_cpu:.2f} s)", f"1 ({bare_peak / 1e6:.0f} MB)", "", "", bare
        )
        for variant in variants:
            own = runs[load, variant]
            ratios = [run.cpu_s / other.cpu_s for run, other in zip(own, bare, strict=True)]
            cpu = _spread(ratios)
            peak = statistics.median(run.peak_bytes for run in own)
            more = f"{(peak - bare_peak) / 1e6:+.0f} MB"
            size = statistics.median(run.capture_bytes for run in own)
            capture = f"{size / 1e3:,.0f} kB" if size else ""
            yield _row(load, variant, cpu, f"{peak / bare_peak:.2f}", more, capture, own)


def _row(
    load: str, variant: str, cpu: str, peak: str, more: str, capture: str, runs: list[Run]
) -> str:
    return f"| {load} | {variant} | {cpu} | {peak} | {more} | {capture} | {len(runs)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="of the long loads")
    parser.add_argument(
        "--peers", type=int, default=1, help="rounds of the short loads; 0 keeps what was measured"
    )
    parser.add_argument("--write", action="store_true", help=f"into {PAGE.relative_to(ROOT)}")
    chosen = parser.parse_args()
    about = (
        f"Measured on {date.today()}: Python {platform.python_version()}, {platform.system()},"
        f" {os.cpu_count()} cores. CPU is of the whole process: recorder thread, start and end of"
        " the recording included. Ratios are of runs at the same time on the same core: the median,"
        " and the lowest and the highest. *Start* and *end* are paid once for a recording; at the"
        " end stands the look at who holds what is left, whose time grows with the heap."
    )
    parts = [_HEAD, about]
    if chosen.rounds:
        parts += ["## Whole loads", "\n".join(long_table(long_runs(chosen.rounds)))]
        size = measure(LEAK, 1, OURS).capture_bytes
        parts.append(f"The recording of one minute of pdfplumber's leak: {size / 1e6:.2f} MB.")
    if chosen.peers:
        parts += [_BESIDE, "\n".join(table(short_runs(chosen.peers), [OURS, *PEERS]))]
    text = "\n\n".join(parts) + "\n"
    print(text)
    if chosen.write:
        PAGE.write_text(text if chosen.peers else text + _peers_before())


def _peers_before() -> str:
    """What the page says beside the peers, where they are not measured again."""
    _, heading, rest = PAGE.read_text().partition(_BESIDE.partition("\n")[0])
    return f"\n{heading}{rest}"


if __name__ == "__main__":
    main()
