"""Recordings of made-up runs: what is alive of each page, written as the sampled engine would."""

from collections.abc import Callable, Mapping
from pathlib import Path

from diagnostics.recording.model import Frame, Outcome, UnitHeap, UnitRow, alive_id
from diagnostics.recording.writer import RecordingWriter

MS = 1_000_000
S = 1_000_000_000
MB = 1_000_000

MAIN = Frame("/srv/app/ingest.py", 9, "main")
OBJECTS = Frame("/srv/venv/lib/python3.11/site-packages/pdfplumber/page.py", 412, "objects")

Alive = Mapping[int, int]


def write_run(
    path: Path,
    pages: int,
    after: Callable[[int], Alive],
    during: Callable[[int], int] = lambda page: 2 * MB,
    *,
    at_the_end: Alive | None = None,
    engine: str = "sampled",
) -> Path:
    """Page *p* lasts from *p* to *p* + 1 seconds. In its middle ``during(p)`` bytes of it are alive
    beside what the pages before left, at its end ``after(p)``, bytes by page. ``at_the_end`` is
    what is alive a second after the last page, where that is something else."""
    writer = RecordingWriter(path, {"settings": {"engine": engine}})
    site = writer.site([MAIN, OBJECTS])
    known: dict[int, int] = {}

    def frame(t_ns: int, alive: Alive) -> None:
        pairs = {alive_id(unit, site): (size, 1) for unit, size in alive.items() if size}
        gone = dict.fromkeys(known.keys() - pairs.keys(), (0, 0))
        writer.add_changes("alive", t_ns, 0, gone | pairs)
        known.clear()
        known.update(dict.fromkeys(pairs, 0))

    frame(0, {})
    for page in range(1, pages + 1):
        before = after(page - 1) if page > 1 else {}
        writer.put_units([UnitRow(page, "page", f"page {page}", page * S, (page + 1) * S)])
        frame(page * S + 500 * MS, {**before, page: during(page)})
        frame((page + 1) * S, after(page))
        writer.put_unit_heaps([UnitHeap(page, 3 * during(page), during(page))])
    if at_the_end is not None:
        frame((pages + 2) * S, at_the_end)
    writer.put_outcome(Outcome("finished", "The loader returned.", (pages + 2) * S, pages))
    writer.close()
    return path


def leak(size: int) -> Callable[[int], Alive]:
    """Every page leaves ``size`` bytes for good."""
    return lambda page: dict.fromkeys(range(1, page + 1), size)


def band(width: int, size: int) -> Callable[[int], Alive]:
    """The last ``width`` pages keep ``size`` bytes each."""
    return lambda page: dict.fromkeys(range(max(1, page - width + 1), page + 1), size)
