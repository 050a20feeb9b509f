"""One measured run in a fresh process: python -m benchmarks.worker LOAD SIZE VARIANT FOLDER

Says "ready", waits for a line, and prints one JSON object: the CPU seconds of the whole process
(all threads) for the load with the start and the end of the recording, the seconds of these two,
and the size of the capture.
"""

from __future__ import annotations

import gc
import json
import sys
import time
import tracemalloc
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from benchmarks.loads import ALL_LOADS


def observed(variant: str, capture: Path) -> AbstractContextManager[Any]:
    """What watches the load: started on entering, complete on leaving."""
    if variant == "bare":
        return nullcontext()
    if variant.startswith("memray"):
        import memray

        return memray.Tracker(capture, trace_python_allocators=variant == "memray, Python too")
    from diagnostics import record

    options: dict[str, dict[str, Any]] = {
        "page87 sampled": {"engine": "sampled"},
        "page87 exact, 1 frame": {"engine": "exact", "frames": 1},
        "page87 exact, 10 frames": {"engine": "exact", "frames": 10},
    }
    return record(capture, **options[variant])


class Traced:
    """tracemalloc alone, as people use it: started, one snapshot at the end."""

    def __init__(self, frames: int) -> None:
        self._frames = frames

    def __enter__(self) -> None:
        tracemalloc.start(self._frames)

    def __exit__(self, *exc_info: object) -> None:
        tracemalloc.take_snapshot()
        tracemalloc.stop()


def main() -> None:
    name, size, variant, folder = sys.argv[1:]
    load = ALL_LOADS[name].pages
    for _ in load(1):  # libraries are imported, and their caches filled, before the clock starts
        break
    from diagnostics import units

    capture = Path(folder) / "capture"
    gc.collect()
    if variant == "memory_profiler lines":
        from memory_profiler import LineProfiler

        profiler = LineProfiler(backend="psutil")
        load = profiler(load)
    if variant.startswith("tracemalloc"):
        watcher: AbstractContextManager[Any] = Traced(int(variant.rpartition(" ")[2]))
    elif variant == "memory_profiler lines":
        watcher = nullcontext()
    else:
        watcher = observed(variant, capture)
    print("ready", flush=True)
    sys.stdin.readline()
    start = time.process_time()
    with watcher:
        started = time.process_time()
        for _ in units(load(int(size))):
            pass
        ended = time.process_time()
    complete = time.process_time()
    said = {
        "cpu_s": complete - start,
        "start_s": started - start,
        "end_s": complete - ended,
        "capture_bytes": capture.stat().st_size if capture.exists() else 0,
    }
    print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
