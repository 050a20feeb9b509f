"""A recording written by hand, small enough to count everything in it with a pencil."""

from pathlib import Path

from diagnostics.recording.model import (
    Frame,
    GcEvent,
    GcSummary,
    HeapTotal,
    LineRow,
    Outcome,
    ProbeStatus,
    ProcessSample,
    UnitPeak,
    UnitRow,
)
from diagnostics.recording.writer import RecordingWriter

MS = 1_000_000
S = 1_000_000_000
MB = 1_000_000

PAGE_PY = "/srv/venv/lib/python3.11/site-packages/pdfplumber/page.py"
INGEST_PY = "/srv/app/ingest.py"

MAIN = Frame(INGEST_PY, 9, "main")
OBJECTS = Frame(PAGE_PY, 412, "objects")
CHARS = Frame(PAGE_PY, 430, "chars")
READ = Frame(INGEST_PY, 14, "read")

METHOD = "kernel high-water mark"

META = {
    "name": "report",
    "command": "page87 run report.pdf",
    "document": {"name": "report.pdf", "bytes": 700_000, "loader": "pdfplumber", "pages": 4},
    "settings": {"engine": "exact", "frames": 2},
    "started_at": "2026-03-01T10:00:00.000+00:00",
    "unit_total": {"kind": "page", "total": 4},
}

UNITS = [
    UnitRow(1, "page", "page 1", 1 * S, 2 * S, "finished", bytes=900, characters=800),
    UnitRow(2, "page", "page 2", 2 * S, 5 * S, "failed", "ValueError", "no such font"),
    UnitRow(3, "page", "page 3", 5 * S, 6 * S, "finished", bytes=100, characters=90),
]
PEAKS = [  # index, start, end, peak: own peaks of 10, 100 and 2 MB; 2, 1 and -3 MB kept
    UnitPeak(1, 50 * MB, 52 * MB, 60 * MB, METHOD),
    UnitPeak(2, 52 * MB, 53 * MB, 152 * MB, METHOD),
    UnitPeak(3, 53 * MB, 50 * MB, 55 * MB, METHOD),
]
PROCESS = [  # t, rss, uss, pss, minor, major, threads, cpu
    ProcessSample(0, 49 * MB, 40 * MB, 44 * MB, 100, 2, 3, 100 * MS),
    ProcessSample(2 * S, 52 * MB, None, None, 200, 2, 3, 900 * MS),
    ProcessSample(4 * S, 120 * MB, 110 * MB, 114 * MB, 900, 5, 4, 2_500 * MS),
    ProcessSample(6 * S, 51 * MB, 42 * MB, 46 * MB, 950, 6, 3, 3_100 * MS),
]
HEAP_TOTALS = [
    HeapTotal(1 * S, 17 * MB, 1 * MB),
    HeapTotal(3 * S, 56 * MB, 3 * MB),
    HeapTotal(6 * S, 12 * MB, 2 * MB),
]
GC_EVENTS = [  # t, pause, generation, collected, uncollectable, unit, own
    GcEvent(1_500 * MS, 2 * MS, 0, 5, 0, 1),
    GcEvent(3_500 * MS, 70 * MS, 2, 40, 1, 2),
    GcEvent(4_000 * MS, 90 * MS, 2, 1, 0, 0, own=True),
]
GC_SUMMARIES = [  # t, generation, count, total, longest, collected, uncollectable
    GcSummary(2 * S, 0, 7, 700_000, 200_000, 11, 0),
    GcSummary(2 * S, 1, 1, 300_000, 300_000, 3, 0),
    GcSummary(4 * S, 0, 20, 1_000_000, 100_000, 0, 0),
]
LINES = [
    LineRow("read", INGEST_PY, 13, "def read(path):\n", None, None, None),
    LineRow("read", INGEST_PY, 14, "    return path.read_bytes()\n", 61 * MB, 5 * MB, 3),
]
OUTCOME = Outcome(
    "raised",
    "ValueError left the loader in unit 3.",
    8 * S,
    3,
    error_type="ValueError",
    error_message="no such font",
)


def heap_states(site: dict[str, int]) -> list[tuple[int, int, dict[int, tuple[int, int]]]]:
    """(t_ns, unit, state): totals of 17, 56, 13 and 12 MB. Site 0 is the engine's "all others"."""
    return [
        (1 * S, 1, {site["objects"]: (10 * MB, 4), site["read"]: (5 * MB, 1), 0: (2 * MB, 9)}),
        (
            3 * S,
            2,
            {
                site["objects"]: (10 * MB, 4),
                site["objects from read"]: (14 * MB, 6),
                site["chars"]: (30 * MB, 300),
                0: (2 * MB, 9),
            },
        ),
        (5 * S, 3, {site["objects"]: (10 * MB, 4), 0: (3 * MB, 10)}),
        (5_200 * MS, 3, {site["objects"]: (9 * MB, 3), 0: (3 * MB, 10)}),
    ]


def add_sites(writer: RecordingWriter) -> dict[str, int]:
    return {
        "objects": writer.site([MAIN, OBJECTS]),
        "objects from read": writer.site([READ, OBJECTS]),
        "chars": writer.site([MAIN, OBJECTS, CHARS]),
        "read": writer.site([MAIN, READ]),
    }


def build(path: Path) -> Path:
    """Write the whole recording to ``path``."""
    writer = RecordingWriter(path, META)
    writer.put_units(UNITS)
    writer.put_unit_peaks(PEAKS)
    for sample in PROCESS:
        writer.put_process(sample)
    for total in HEAP_TOTALS:
        writer.put_heap_total(total)
    writer.add_gc_events(GC_EVENTS)
    writer.add_gc_summaries(GC_SUMMARIES)
    for t_ns, unit, state in heap_states(add_sites(writer)):
        writer.add_frame("heap", t_ns, unit, state)
    kinds = {name: writer.type_id(name) for name in ("list", "dict", "pdfminer.layout.LTChar")}
    for t_ns, unit, counts in [(1 * S, 1, (100, 50, 0)), (5 * S, 3, (400, 40, 1000))]:
        numbers = zip(kinds.values(), counts, strict=True)
        writer.add_frame("types", t_ns, unit, {kind: (n,) for kind, n in numbers if n})
    writer.put_line_profile(LINES)
    writer.put_probes([ProbeStatus("gc", "on", "", 10 * MS, 0)])
    writer.put_probes([ProbeStatus("lines", "missing", "no memory_profiler here", 0, 0)])
    writer.put_probes([ProbeStatus("recorder", "on", "", 30 * MS, 2)])
    writer.add_log(1 * S, "info", "recorder", "The run began.")
    writer.add_log(3 * S, "warning", "process", "USS is not available.")
    writer.put_outcome(OUTCOME)
    writer.close()
    return path
