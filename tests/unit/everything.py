"""A small recording with rows in every table and frames of every series, and a look at all that the
screens, the command line and the list of recordings make of one."""

import json
from collections.abc import Iterator
from pathlib import Path

from births import MB, MS, S
from hand_built import CHARS, INGEST_PY, MAIN, META, OBJECTS, OUTCOME, READ

from diagnostics.analysis.address import bins_of, mappings_at, residency_sentence
from diagnostics.analysis.alive import alive_at, stack_table, stack_tree, top_stacks
from diagnostics.analysis.collector import (
    event_table,
    generation_table,
    pause_table,
    small_collections,
)
from diagnostics.analysis.drops import heap_drops
from diagnostics.analysis.heatmap import row_figures
from diagnostics.analysis.held_graph import name_of, place_of, read_graph, size_of, steps
from diagnostics.analysis.ledger import ledger_table, line_of
from diagnostics.analysis.library import list_recordings
from diagnostics.analysis.lines import line_table
from diagnostics.analysis.settlement import last_settlement, sentences, settlement_table
from diagnostics.analysis.sites import GROUPINGS
from diagnostics.analysis.source_lines import numbered_source
from diagnostics.analysis.stacks import Stacks
from diagnostics.analysis.summary import summarise, summary_json, summary_text
from diagnostics.analysis.suspect_table import suspect_table
from diagnostics.analysis.suspects import best_capture, suspects_of
from diagnostics.analysis.tables import library_table, log_table
from diagnostics.analysis.timeline import memory_curves, unit_marks, unit_table
from diagnostics.analysis.type_counts import count_marks, course_table, type_courses
from diagnostics.analysis.watch import Watch
from diagnostics.recording.model import (
    BIN_BYTES,
    Capture,
    ChainLink,
    GcEvent,
    GcSummary,
    HeapTotal,
    HeldObject,
    LedgerReading,
    LineRow,
    MappingMemory,
    MappingRow,
    ProbeStatus,
    ProcessSample,
    Reference,
    SettlementStep,
    Suspect,
    UnitHeap,
    UnitPeak,
    UnitRow,
    alive_id,
)
from diagnostics.recording.reader import RecordingReader
from diagnostics.recording.writer import RecordingWriter

PAGES = range(1, 13)
"""Page *p* lasts from *p* to *p* + 1 seconds and leaves 2 MB behind; page 5 fails."""

CHAIN = ("builtins.module", "builtins.dict", "app.Cache", "builtins.bytes")


def record_everything(path: Path) -> Path:
    """Write the recording to ``path``."""
    writer = RecordingWriter(path, META | {"settings": {"engine": "sampled", "settle": True}})
    sites = [writer.site([MAIN, OBJECTS, CHARS]), writer.site([MAIN, READ])]
    types = [writer.type_id(name) for name in ("app.Cache", "builtins.bytes")]
    writer.put_source(INGEST_PY, {9: "def main():", 14: "    return path.read_bytes()"})
    writer.put_mappings([MappingRow(1, "heap", 16 * BIN_BYTES, 32 * BIN_BYTES, "[heap]")])
    writer.put_mappings([MappingRow(2, "anonymous", 64 * BIN_BYTES, 96 * BIN_BYTES, "")])
    for page in PAGES:
        _record(page, writer, sites, types)
    _let_go(writer)
    _capture(writer, sites[0])
    writer.put_line_profile([LineRow("read", INGEST_PY, 14, "return 1\n", 61 * MB, 5 * MB, 3)])
    writer.put_probes([ProbeStatus("gc", "on", "", 10 * MS), ProbeStatus("lines", "missing")])
    writer.add_log(3 * S, "warning", "process", "USS is not available.")
    writer.put_outcome(OUTCOME)
    writer.close()
    return path


def _record(page: int, writer: RecordingWriter, sites: list[int], types: list[int]) -> None:
    end, rss, held = (page + 1) * S, (50 + 2 * page) * MB, 2 * MB * page
    error = ("failed", "ValueError", "no such font") if page == 5 else ("finished", None, None)
    writer.put_units([UnitRow(page, "page", f"page {page}", page * S, end, *error, 900, 800)])
    peak = UnitPeak(page, rss - 2 * MB, rss, rss + 5 * MB, "kernel high-water mark")
    writer.put_unit_peaks([peak])
    writer.put_unit_heaps([UnitHeap(page, 9 * MB, 4 * MB)])
    writer.put_process(ProcessSample(end, rss, rss - MB, rss - MB, 100, 2, 3, page * 100 * MS))
    writer.put_heap_total(HeapTotal(end, held, MB))
    writer.put_ledger(
        LedgerReading(end, rss, rss - MB, MB, 0, held, held // 2, held, MB, MB, 0, rss, MB)
    )
    writer.add_gc_events([GcEvent(end, 2 * MS, 2, 40, 1, page, False, held + MB, held)])
    writer.add_gc_summaries([GcSummary(end, 0, 7, 700_000, 200_000, 11, 0, 500)])
    born = {alive_id(page, site): (MB, 10) for site in sites}
    writer.add_changes("alive", end, page, born)
    writer.add_frame("heap", end, page, {site: (page * MB, 10 * page) for site in sites})
    writer.add_frame("types", end, page, {kind: (20 * page,) for kind in types})
    memory = MappingMemory(rss // 2, rss // 2, rss // 2, 0, rss)
    writer.add_frame("mappings", end, page, {1: memory, 2: memory})
    writer.add_frame("residency", end, page, {16 + page: (page,), 64 + page: (16,)})


def _let_go(writer: RecordingWriter) -> None:
    writer.put_settlement(
        [
            SettlementStep(1, "result released", 14 * S, 74 * MB, 70 * MB, 24 * MB, 20 * MB, 9, 0),
            SettlementStep(2, "collection", 15 * S, 70 * MB, 66 * MB, 20 * MB, 16 * MB, 50, 1),
            SettlementStep(3, "malloc_trim", 16 * S, 66 * MB, 60 * MB, 16 * MB, 16 * MB, 0, 0),
        ]
    )


def _capture(writer: RecordingWriter, site: int) -> None:
    last = len(CHAIN) - 1
    writer.put_capture(
        Capture(1, 14 * S, 0, "end of the run", 30 * MS, 4_000, True, ""),
        [Suspect(1, 1, site, CHAIN[-1], 20 * MB, 100, 1, 10, 10, 1.0)],
        [
            HeldObject(
                *(1, place, kind, "app" if place == 0 else ""),
                *(64, 100 if place == last else 1, "" if place else "module"),
                *(3 if place == last else None, site if place == last else None, INGEST_PY, 9),
            )
            for place, kind in enumerate(CHAIN)
        ],
        [Reference(1, place, place + 1, label) for place, label in enumerate((".d", "['c']", ".b"))],
        [ChainLink(1, 1, 1, place, place, 100, place == 2) for place in range(len(CHAIN))],
    )


def look_at_everything(path: Path) -> None:
    """All that is made of a recording somewhere. Raises what the first part of it raises."""
    for _part, look in parts(path):
        look()


def parts(path: Path) -> Iterator[tuple[str, object]]:
    """The single looks, each with a name."""
    yield from {
        "summary": lambda: _summary(path),
        "watch": lambda: _watch(path),
        "stacks": lambda: _stacks(path),
        "captures": lambda: _captures(path),
        "addresses": lambda: _addresses(path),
        "rest": lambda: _rest(path),
        "list": lambda: library_table(list_recordings(path.parent)),
    }.items()


def _summary(path: Path) -> None:
    with RecordingReader(path) as reader:
        summary = summarise(reader)
    summary_text(summary, details=True)
    json.dumps(summary_json(summary), allow_nan=False)


def _watch(path: Path) -> None:
    watch = Watch(path)
    watch.update()
    marked = unit_marks(watch.units.figures())
    memory_curves(watch.series)
    unit_table(watch.units.figures())
    generation_table(watch.collector)
    pause_table(watch.collector)
    small_collections(watch.collector)
    event_table(watch.collector.longest(), dict(zip(marked["index"], marked["label"], strict=True)))
    for group in GROUPINGS:
        heat = watch.heat(group)
        for key in heat.row_keys:
            row_figures(heat, key, watch.outcome.t_ns)
    watch.births()
    watch.shape()
    watch.addresses()
    watch.bins(2)
    ledger = watch.ledger()
    ledger_table(ledger.rows())
    for moment in filter(None, (ledger.peak(), ledger.end(), ledger.at(watch.outcome.t_ns))):
        line_of(moment)


def _stacks(path: Path) -> None:
    with RecordingReader(path) as reader:
        sites = reader.sites()
        for units in (None, range(1, 6)):
            alive = alive_at(reader, reader.last_ns(), units)
            stack_tree(alive, sites)
            stack_table(top_stacks(alive, sites))
        for site in sites.values():
            numbered_source(reader.source(site.file), site.line)


def _captures(path: Path) -> None:
    with RecordingReader(path) as reader:
        stacks = Stacks(reader.sites())
        best_capture(reader)
        for capture in reader.captures():
            suspect_table(suspects_of(reader, capture, stacks), "page")
            graph = read_graph(reader, capture)
            for item in graph.objects.values():
                f"{name_of(item)} {place_of(item)} {size_of(item)}"
            for chain in (chain for chains in graph.chains.values() for chain in chains):
                graph.in_words(chain)
                steps(graph, chain)


def _addresses(path: Path) -> None:
    with RecordingReader(path) as reader:
        t_ns = reader.last_ns()
        for row in mappings_at(reader, t_ns).rows:
            residency_sentence(row, bins_of(reader, row.mapping, t_ns))


def _rest(path: Path) -> None:
    with RecordingReader(path) as reader:
        heap_drops(reader)
        line_table(reader.line_profile())
        log_table(reader.log())
        settlement = last_settlement(reader)
        if settlement is not None:
            sentences(settlement)
            settlement_table(settlement)
        marks = count_marks(reader)
        course_table(type_courses(reader, marks))
