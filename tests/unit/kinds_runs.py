"""Recordings of made-up runs with every reading that a verdict can ask for, in round numbers.

Page *p* lasts from *p* to *p* + 1 seconds. What the process holds at each moment is the sum of
parts that the test chooses, so that every figure in a verdict can be worked out with a pencil.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from births import MAIN, MB, MS, OBJECTS, Alive, S

from diagnostics.recording.model import (
    OUT_OF_TIME,
    Capture,
    CaptureReason,
    ChainLink,
    Frame,
    HeapTotal,
    HeldObject,
    LedgerReading,
    Outcome,
    ProcessSample,
    Reference,
    SettlementStep,
    Suspect,
    UnitHeap,
    UnitPeak,
    UnitRow,
    alive_id,
)
from diagnostics.recording.writer import RecordingWriter

START = 50 * MB
"""The resident set before anything happens; none of it is Python's, malloc's or an arena's."""

LOAD = Frame("/srv/app/ingest.py", 12, "load")
IMPORTING = Frame("<frozen importlib._bootstrap_external>", 729, "_compile_bytecode")
Bytes = Callable[[int], int]


def nothing(page: int) -> int:
    return 0


def nobody(page: int) -> Alive:
    return {}


@dataclass(frozen=True)
class Link:
    """One object of a chain; ``root`` only for the first."""

    type: str
    label: str = ""
    root: str = ""
    name: str = ""
    size: int = 64


@dataclass(frozen=True)
class Holder:
    """A suspect with ``bytes`` born in ``units`` units of the run, held by ``chain``, as a capture
    saw it at the end of ``at_page``, or after the run."""

    bytes: int
    chain: Sequence[Link]
    type: str = "builtins.bytes"
    units: int | None = None
    alike: int = 9
    at_page: int | None = None


@dataclass(frozen=True)
class Run:
    """``python`` gives what is alive at the end of a page, by birth page; 0 is what was there
    before the first. ``imported`` is the same of code and classes. The others are bytes at the end
    of a page; ``arenas`` is what arenas hold beyond live blocks, ``tables`` what the engine's own
    tables take of malloc. ``steps`` are (name, RSS given back, Python bytes given back, objects),
    at the end or after page ``settled_after``. Birth units are known with the ``engine``
    "sampled" alone; with "none" nobody counts Python memory. Captures that were ``cut_off`` ran
    out of their time after 8.8 s in a heap of 816,790 objects."""

    pages: int = 20
    python: Callable[[int], Alive] = nobody
    during: Bytes = lambda page: 2 * MB
    imported: Callable[[int], Alive] = nobody
    native: Bytes = nothing
    free: Bytes = nothing
    arenas: Bytes = nothing
    peak: Bytes = lambda page: 2 * MB
    tables: Bytes = nothing
    children: Bytes | None = None
    failed: Sequence[int] = ()
    held: Sequence[Holder] = ()
    cut_off: bool = False
    steps: Sequence[tuple[str, int, int, int]] | None = ()
    settled_after: int | None = None
    stack: Sequence[Frame] = (MAIN, LOAD, OBJECTS)
    source: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    document: Mapping[str, object] = field(default_factory=dict)
    engine: str = "sampled"

    def but(self, **changes: object) -> "Run":
        return replace(self, **changes)  # type: ignore[arg-type]

    def rss(self, page: int) -> int:
        parts = (self.native, self.free, self.arenas, self.tables)
        return START + self.alive(page) + sum(part(page) for part in parts)

    def alive(self, page: int) -> int:
        return sum(self.python(page).values()) + sum(self.imported(page).values())


def write(path: Path, run: Run) -> Path:
    writer = RecordingWriter(
        path, {"settings": {"engine": run.engine}, "document": dict(run.document) or None}
    )
    site = writer.site(list(run.stack))
    importing = writer.site([MAIN, LOAD, IMPORTING])
    for file, lines in run.source.items():
        writer.put_source(file, lines)
    known: set[int] = set()

    def frame(t_ns: int, page: int, alive: Alive, imported: Alive) -> None:
        pairs = {
            alive_id(unit, at): (size, 1)
            for at, sizes in ((site, alive), (importing, imported))
            for unit, size in sizes.items()
            if size
        }
        if run.engine == "none":
            return
        if run.engine == "sampled":
            gone = dict.fromkeys(known - pairs.keys(), (0, 0))
            writer.add_changes("alive", t_ns, 0, gone | pairs)
        known.clear()
        known.update(pairs)
        totals = {site: sum(alive.values()), importing: sum(imported.values())}
        writer.add_frame("heap", t_ns, 0, {at: (size, 1) for at, size in totals.items() if size})
        writer.put_heap_total(HeapTotal(t_ns, sum(totals.values()), run.tables(page)))

    def reading(t_ns: int, page: int) -> None:
        writer.put_process(ProcessSample(t_ns, run.rss(page), None, None, 0, 0, 1, 0))
        writer.put_ledger(_ledger(run, t_ns, page))

    writer.put_process(ProcessSample(0, START, None, None, 0, 0, 1, 0))
    writer.put_ledger(_ledger(Run(), 0, 0))
    frame(0, 0, {}, {})
    frame(S - 1, 0, run.python(0), run.imported(0))
    reading(S - 1, 0)
    for page in range(1, run.pages + 1):
        error = ("ValueError", "damaged") if page in run.failed else (None, None)
        status = "failed" if page in run.failed else "finished"
        writer.put_units(
            [UnitRow(page, "page", f"page {page}", page * S, (page + 1) * S, status, *error)]
        )
        before, after = run.rss(page - 1), run.rss(page)
        writer.put_unit_peaks(
            [UnitPeak(page, before, after, before + run.peak(page), "kernel high-water mark")]
        )
        middle = {**run.python(page - 1), page: run.during(page)}
        frame(page * S + 500 * MS, page - 1, middle, run.imported(page - 1))
        frame((page + 1) * S, page, run.python(page), run.imported(page))
        reading((page + 1) * S, page)
        if run.engine == "sampled":
            writer.put_unit_heaps([UnitHeap(page, run.during(page), run.during(page))])
    end = (run.pages + 2) * S
    if run.held:
        _captures(writer, run, site, end)
    if run.steps is not None:
        if run.settled_after is None:
            steps = _settlement(run, run.pages, end)
        else:
            steps = _settlement(run, run.settled_after, (run.settled_after + 1) * S)
        writer.put_settlement(steps)
    writer.put_outcome(Outcome("finished", "The loader returned.", end + S, run.pages))
    writer.close()
    return path


def _ledger(run: Run, t_ns: int, page: int) -> LedgerReading:
    python = run.alive(page)
    sampled = run.engine == "sampled"
    return LedgerReading(
        t_ns=t_ns,
        rss=run.rss(page),
        anonymous=run.rss(page),
        file_backed=0,
        shared=0,
        python=python if run.engine != "none" else None,
        python_small=python if sampled else None,
        arenas=python + run.arenas(page) if sampled else None,
        native_used=run.native(page) + run.tables(page),
        native_free=run.free(page),
        children=run.children(page) if run.children else None,
        group_anonymous=None,
        group_cache=None,
    )


def _settlement(run: Run, page: int, end: int) -> list[SettlementStep]:
    rss, python = run.rss(page), run.alive(page)
    steps = []
    given = {name: figures for name, *figures in run.steps or ()}
    for place, name in enumerate(("result released", "collection", "malloc_trim"), start=1):
        freed, blocks, objects = given.get(name, (0, 0, 0))
        steps.append(
            SettlementStep(
                place, name, end + place, rss, rss - freed, python, python - blocks, objects, 0
            )
        )
        rss, python = rss - freed, python - blocks
    return steps


def _captures(writer: RecordingWriter, run: Run, site: int, end: int) -> None:
    moments = sorted({holder.at_page or run.pages + 1 for holder in run.held})
    for number, page in enumerate(moments, start=1):
        held = [holder for holder in run.held if (holder.at_page or run.pages + 1) == page]
        _capture(writer, run, site, number, (page + 1) * S if page <= run.pages else end, held)


def _capture(
    writer: RecordingWriter, run: Run, site: int, number: int, t_ns: int, held: Sequence[Holder]
) -> None:
    suspects, objects, references, chains = [], [], [], []
    for rank, holder in enumerate(held, start=1):
        units = holder.units or run.pages
        steady = units / run.pages
        suspects.append(
            Suspect(number, rank, site, holder.type, holder.bytes, 100, 1, run.pages, units, steady)
        )
        for place, link in enumerate(holder.chain):
            key = 100 * rank + place
            figures = (link.size, 1, link.root, None, None, "", 0)
            objects.append(HeldObject(number, key, link.type, link.name, *figures))
            if place:
                references.append(Reference(number, key - 1, key, link.label))
            chains.append(ChainLink(number, rank, 1, place, key, holder.alike, False))
    took = (8_800 * MS, 816_790, False, OUT_OF_TIME) if run.cut_off else (0, 0, True, "")
    reason: CaptureReason = "end of the run" if held[0].at_page is None else "retention grew"
    capture = Capture(number, t_ns, run.pages, reason, *took)
    writer.put_capture(capture, suspects, objects, references, chains)
