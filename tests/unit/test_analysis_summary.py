"""The summary of a hand-built recording: each number worked out by hand."""

import json
import subprocess
import sys
import types
import typing
from collections import Counter
from dataclasses import replace

import pytest
from births import leak, write_run
from hand_built import INGEST_PY, MB, METHOD, OUTCOME, PAGE_PY, S, build
from kinds_runs import Holder, Link, Run, write

from diagnostics.analysis.cost_text import cost_in_words, losses
from diagnostics.analysis.explanation import ExplanationInfo
from diagnostics.analysis.summary import summarise, summary_json, summary_text
from diagnostics.analysis.summary_model import ProbeInfo, UnitPeakInfo
from diagnostics.recording.model import Outcome, UnitPeak, UnitRow
from diagnostics.recording.reader import RecordingReader
from diagnostics.recording.writer import RecordingWriter


@pytest.fixture
def summary(tmp_path):
    with RecordingReader(build(tmp_path / "run.p87")) as reader:
        return summarise(reader)


class CountingReader(RecordingReader):
    """Counts how often what grows with the units is read."""

    def __init__(self, path):
        super().__init__(path)
        self.read = Counter()

    def units(self, **how):
        self.read["units"] += 1
        return super().units(**how)

    def unit_peaks(self, **how):
        self.read["unit_peaks"] += 1
        return super().unit_peaks(**how)

    def unit_heaps(self, **how):
        self.read["unit_heaps"] += 1
        return super().unit_heaps(**how)

    def changes(self, series, **how):
        self.read[series] += 1
        return super().changes(series, **how)


def test_the_units_and_their_births_are_read_once(tmp_path):
    with CountingReader(write_run(tmp_path / "leak.p87", 20, leak(1 * MB))) as reader:
        summarise(reader)

    read = {what: reader.read[what] for what in ("units", "unit_peaks", "unit_heaps", "alive")}
    assert read == {"units": 1, "unit_peaks": 1, "unit_heaps": 1, "alive": 1}


def test_the_highest_peaks_are_named_the_first_of_equal_ones_first(tmp_path):
    writer = RecordingWriter(tmp_path / "run.p87", {})
    writer.put_units(UnitRow(n, "page", f"page {n}", n * S, (n + 1) * S) for n in range(1, 10))
    sizes = {1: 4, 2: 7, 3: 7, 4: 1, 5: 9, 6: 7, 7: 4, 9: 7}  # page 8 has none
    writer.put_unit_peaks(
        UnitPeak(n, n * MB, n * MB, (n + size) * MB, METHOD) for n, size in sizes.items()
    )
    writer.close()
    with RecordingReader(writer.path) as reader:
        units = summarise(reader).units

    assert [peak.index for peak in units.peaks] == [5, 2, 3, 6, 9]
    assert units.peaks[0] == units.peak_bytes_max == UnitPeakInfo(5, "page 5", 9 * MB, 14 * MB)


def test_a_unit_that_begins_while_the_recording_is_read_is_left_for_the_next_time(tmp_path):
    class Late(RecordingReader):
        def unit_peaks(self, **how):
            late = UnitPeak(4, 0, 0, 900 * MB, METHOD)
            return [*super().unit_peaks(**how), late]

    with Late(build(tmp_path / "run.p87")) as reader:
        units = summarise(reader).units

    assert units.count == 3
    assert units.peaks
    assert all(peak.index <= 3 for peak in units.peaks)


def test_the_json_form(summary, tmp_path):
    path = tmp_path / "run.p87"
    size = path.stat().st_size

    found = json.loads(json.dumps(summary_json(summary)))
    explained = {key: found.pop(key) for key in ("verdict", "suspects", "ledger", "settlement")}
    assert explained["verdict"]["kind"] == 14  # page 2, which took 100 MB and gave them back
    assert explained["verdict"]["bytes_per_unit"] is None
    assert explained["suspects"] == explained["settlement"] == []
    assert explained["ledger"] == {"at_peak": None, "at_end": None, "after_settlement": None}
    assert found == {
        "format": 1,
        "recording": {
            "path": str(path),
            "bytes": size,
            "version": 2,
            "name": "report",
            "started_at": "2026-03-01T10:00:00.000+00:00",
        },
        "command": "page87 run report.pdf",
        "document": {"name": "report.pdf", "bytes": 700_000, "loader": "pdfplumber", "pages": 4},
        "outcome": {
            "state": "raised",
            "reason": "ValueError left the loader in unit 3.",
            "signal": None,
            "exit_status": None,
            "last_unit": 3,
            "error": {"type": "ValueError", "message": "no such font"},
            "duration_s": 8.0,
        },
        "units": {
            "count": 3,
            "kind": "page",
            "total": 4,
            "failed": 1,
            "failures": [{"index": 2, "label": "page 2", "error": "ValueError: no such font"}],
            "peak_bytes_max": peak(2, 100, 152),
            "peaks": [peak(2, 100, 152), peak(1, 10, 60), peak(3, 2, 55)],
            "peak_method": METHOD,
        },
        "process": {
            "rss_start_bytes": 49 * MB,
            "rss_peak_bytes": 152 * MB,  # of unit 2: the samples saw 120
            "rss_end_bytes": 51 * MB,
            "uss_peak_bytes": 110 * MB,
            "uss_end_bytes": 42 * MB,
            "pss_end_bytes": 46 * MB,
            "heap_peak_bytes": 56 * MB,
            "heap_end_bytes": 12 * MB,
            "cpu_s": 3.0,
            "major_faults": 4,
        },
        "gc": {
            "collections": {"0": 28, "1": 1, "2": 1},
            "pause_total_s": 0.074,
            "pause_max_s": 0.07,
            "share": 0.00925,
            "collected": 59,
            "uncollectable": 1,
            "own_collections": 1,
        },
        "sites": [site(PAGE_PY, 412, "objects", 9, 3)],
        "sites_at_peak": [
            site(PAGE_PY, 430, "chars", 30, 300),
            site(PAGE_PY, 412, "objects", 24, 10),  # two stacks that end in one line
        ],
        "retention": [],
        "shape": {
            "kind": "other",
            "bytes_per_unit": None,
            "width": None,
            "spike_unit": None,
            "spike_bytes": None,
            "sentence": "The exact engine does not know in which unit a block was born."
            " Record with the sampled engine to see it.",
        },
        "types": [
            {"name": "pdfminer.layout.LTChar", "count": 1000, "growth": 1000},
            {"name": "list", "count": 400, "growth": 300},
            {"name": "dict", "count": 40, "growth": -10},
        ],
        "lines": [
            line(13, "def read(path):", None, None, None),
            line(14, "    return path.read_bytes()", 61 * MB, 5 * MB, 3),
        ],
        "probes": [
            {"name": "gc", "state": "on", "detail": "", "cost_s": 0.01, "dropped": 0},
            {
                "name": "lines",
                "state": "missing",
                "detail": "no memory_profiler here",
                "cost_s": 0.0,
                "dropped": 0,
            },
            {"name": "recorder", "state": "on", "detail": "", "cost_s": 0.03, "dropped": 2},
        ],
        "cost": {
            "recorder_cpu_s": 0.04,
            "recorder_cpu_share": 0.04 / 3,
            "recording_bytes": size,
            "dropped": 2,
            "engine": "exact",
            "engine_bytes_max": 3 * MB,
            "sampling_bytes": None,
            "live_samples": None,
        },
        "warnings": [
            {
                "t_s": 3.0,
                "level": "warning",
                "source": "process",
                "message": "USS is not available.",
            }
        ],
    }


def peak(index, own_mb, rss_mb):
    return {
        "index": index,
        "label": f"page {index}",
        "bytes": own_mb * MB,
        "rss_bytes": rss_mb * MB,
    }


def site(file, number, function, size_mb, blocks):
    return {
        "file": file,
        "line": number,
        "function": function,
        "bytes": size_mb * MB,
        "blocks": blocks,
    }


def line(number, source, rss, increment, hits):
    return {
        "function": "read",
        "file": INGEST_PY,
        "line": number,
        "source": source,
        "rss_bytes": rss,
        "increment_bytes": increment,
        "hits": hits,
    }


def test_what_a_person_reads(summary):
    text = summary_text(summary)
    lines = text.splitlines()

    assert lines[0] == "report.pdf with pdfplumber: raised ValueError, 3 of 4 pages in 8.0 s"
    assert lines[1] == "ValueError left the loader in unit 3."
    assert "from 49.0 MB to 51.0 MB (+2.0 MB), 152 MB at its peak" in text
    assert "30 collections, 74.0 ms (0.9 % of the run), longest 70.0 ms" in text
    assert "  +100 MB  page 2\n" in text
    assert "1 page failed\n  page 2: ValueError: no such font" in text
    assert "30.0 MB  pdfplumber/page.py:430 in chars (300 blocks)" in text
    assert "Probe lines missing: no memory_profiler here" in text
    assert "Warning: USS is not available." in text
    assert "on disk\nRecording took    40.0 ms of CPU and 3.0 MB of memory, " in text
    assert "beside the time that tracing takes" in " ".join(text.split())
    assert "Lost 2 readings that could not be stored; the log says why." in " ".join(text.split())


def test_a_recorder_that_was_killed_in_its_first_second_did_not_cost_nothing(summary):
    words = cost_in_words(replace(summary.cost, recorder_cpu_s=0.0))
    assert words.startswith("CPU time that it did not come to note down and 3.0 MB of memory")


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (Outcome("finished", "", S), "finished"),
        (Outcome("killed", "", S, signal=9), "killed by SIGKILL"),
        (Outcome("killed", "", S, signal=250), "killed by signal 250"),
        (Outcome("killed", "", S), "killed by a signal"),
        (Outcome("exited", "", S, exit_status=7), "left with exit status 7"),
        (Outcome("cancelled", "", S), "cancelled"),
        (Outcome("lost", "", S), "lost"),
    ],
)
def test_how_a_run_ended_in_words(tmp_path, outcome, words):
    writer = RecordingWriter(tmp_path / "run.p87", {"name": "report"})
    writer.put_units([UnitRow(1, "page", "page 1", 0, S, "finished")])
    writer.put_outcome(outcome)
    writer.close()
    with RecordingReader(writer.path) as reader:
        headline = summary_text(summarise(reader)).splitlines()[0]
    assert headline == f"report: {words}, 1 page in 1.0 s"


def test_an_empty_recording_with_odd_meta_data_has_a_summary(tmp_path):
    meta = {"document": "a text", "settings": 7, "unit_total": [], "name": None, "command": 3}
    writer = RecordingWriter(tmp_path / "run.p87", meta)
    writer.put_outcome(replace(OUTCOME, t_ns=0, error_type=None, error_message=None))
    writer.close()
    with RecordingReader(writer.path) as reader:
        summary = summarise(reader)

    assert summary.document is None
    assert summary.units.peak_bytes_max is None
    assert summary.process.rss_peak_bytes is None
    assert (summary.sites, summary.sites_at_peak, summary.types) == ([], [], [])
    assert summary.gc.share == 0
    assert summary_text(summary).startswith("run: raised, 0 units in 0 s")


CHAIN = (
    Link("frame", root="frame", name="load_pages"),
    Link("pdfplumber.pdf.PDF", ".pdf"),
    Link("builtins.list", ".pages"),
    Link("pdfplumber.page.Page", "[3]"),
    Link("pdfminer.layout.LTPage", "._layout"),
)
LEAK = Run(
    python=leak(1 * MB),
    # A library takes 30 MB while page 10 is read, and gives them back.
    native=lambda page: 30 * MB if page == 10 else 0,
    held=(Holder(19 * MB, CHAIN, type="pdfminer.layout.LTPage"),),
    steps=(
        ("result released", 2 * MB, 16 * MB, 300),
        ("collection", 0, 0, 0),
        ("malloc_trim", 15 * MB, 0, 0),
    ),
)
HEALTHY = Run(steps=(("result released", 0, 0, 0),))


def summary_of(path, run):
    with RecordingReader(write(path / "leak.p87", run)) as reader:
        return summarise(reader)


def test_the_explanation_of_a_leak(tmp_path):
    found = summary_json(summary_of(tmp_path, LEAK))

    assert len(found["retention"]) == 20
    assert found["retention"][19] == {
        "index": 20,
        "label": "page 20",
        "born_bytes": 2 * MB,
        "retained_bytes": 1 * MB,
        "peak_bytes": 2 * MB,
    }
    verdict = found["verdict"]
    assert (verdict["kind"], verdict["bytes"], verdict["bytes_per_unit"]) == (1, 19 * MB, 950_000)
    [suspect] = found["suspects"]
    assert (suspect["bytes"], suspect["type"]) == (19 * MB, "pdfminer.layout.LTPage")
    assert [holder["role"] for holder in suspect["holders"]] == [
        "frame",
        "holder",
        "holder",
        "holder",
        "object",
    ]
    assert found["ledger"] == {
        # page 11 took 2 MB more, between two readings
        "at_peak": moment(11.0, 90, python=10, native=30)
        | {"note": "The nearest reading is 2.0 MB below the peak."},
        "at_end": moment(21.0, 70, python=20, native=0),
        "after_settlement": None,
    }
    assert found["settlement"] == [
        step("result released", rss=(70, 68), python=(20, 4), objects=300),
        step("collection", rss=(68, 68), python=(4, 4), objects=0),
        step("malloc_trim", rss=(68, 53), python=(4, 4), objects=0),
    ]


def moment(t_s, rss, *, python, native):
    """50 MB of the resident set are the interpreter's; arenas are full, malloc has nothing free."""
    nothing = ("pymalloc_empty", "malloc_free", "recorder", "file_backed", "shared", "not_resident")
    unknown = ("children", "group_anonymous", "group_cache")
    return {
        "t_s": t_s,
        "rss": rss * MB,
        "python": python * MB,
        "native": native * MB,
        "rest": 50 * MB,
        **dict.fromkeys(nothing, 0),
        **dict.fromkeys(unknown),
        "note": "",
    }


def step(name, *, rss, python, objects):
    return {
        "step": name,
        "rss_before": rss[0] * MB,
        "rss_after": rss[1] * MB,
        "python_before": python[0] * MB,
        "python_after": python[1] * MB,
        "objects": objects,
        "uncollectable": 0,
    }


def test_bytes_per_unit_mean_nothing_for_what_a_run_takes_once(tmp_path):
    spike = Run(
        during=lambda page: 40 * MB if page == 7 else 2 * MB,
        peak=lambda page: 40 * MB if page == 7 else 2 * MB,
    )
    verdict = summary_json(summary_of(tmp_path, spike))["verdict"]
    assert verdict["kind"] == 14
    assert verdict["bytes"] > 0
    assert verdict["bytes_per_unit"] is None


def conforms(value, hint):
    """Whether a value is what a type of the contract promises: the same keys, the same types."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if typing.is_typeddict(hint):
        hints = typing.get_type_hints(hint)
        return (
            isinstance(value, dict)
            and value.keys() == hints.keys()
            and all(conforms(value[key], hints[key]) for key in hints)
        )
    if origin is list:
        return isinstance(value, list) and all(conforms(item, inner[0]) for item in value)
    if origin is dict:
        return isinstance(value, dict) and all(conforms(item, inner[1]) for item in value.values())
    if origin in (typing.Union, types.UnionType):
        return any(conforms(value, part) for part in inner)
    if origin is typing.Literal:
        return value in inner
    return type(value) is hint


@pytest.mark.parametrize(
    ("run", "filled"),
    [
        (LEAK, ["suspects"]),
        (LEAK.but(native=lambda page: 2 * MB * page), ["stacked", "alternatives"]),
        (LEAK.but(held=(), steps=None), ["rerun"]),
    ],
)
def test_what_is_printed_is_what_the_contract_says(tmp_path, run, filled):
    found = json.loads(json.dumps(summary_json(summary_of(tmp_path, run))))
    assert all((found | found["verdict"])[key] for key in filled), "else this shows nothing"
    explained = {key: found[key] for key in ExplanationInfo.__annotations__}
    assert conforms(explained, ExplanationInfo)


def test_each_loss_says_what_was_lost_and_what_it_means(summary):
    cost = replace(summary.cost, sampling_bytes=32_768.0)
    probes = [
        ProbeInfo(name, "on", "", 0.0, dropped)
        for name, dropped in (("heap", 28), ("gc", 0), ("mappings", 12), ("process", 3))
    ]
    heap, mappings, process = losses(probes, cost)
    assert heap.startswith("28 picks of the heap engine: blocks that")
    assert heap.endswith("too low by up to 32.8 kB for each, and by all of a larger block.")
    # One mapping may be too large at each reading.
    assert mappings.startswith("12 readings of mappings too large to be walked through")
    assert process.startswith("3 measurements of the probe process.")


def test_the_line_profile_in_the_terminal(summary):
    assert (
        "Line profile: what lines added to the process's memory, over all their runs\n"
        "     +5.0 MB  app/ingest.py:14 in read (3 runs)\n"
    ) in summary_text(summary)


def test_a_recording_without_a_line_profile_says_how_to_get_one(tmp_path):
    summary = summary_of(tmp_path, LEAK)
    assert "Line profile" not in summary_text(summary)
    said = " ".join(summary_text(summary, details=True).split())
    assert "Line profile none; page87 run --lines script.py:function follows a function" in said


def test_a_leak_in_the_terminal(tmp_path):
    text = summary_text(summary_of(tmp_path, LEAK))

    # Page 11 began with 90 MB and took 2 MB: 42 MB above the start, of which 19 MB are 45.2 %.
    assert text.splitlines()[:4] == [
        "leak: finished, 20 pages in 23.0 s",
        "",
        "Verdict           Per-unit cache kept on the document (sure): 19.0 MB, 45.2 % of",
        "                  what the process took at most",
    ]
    assert (
        """
   19.0 MB in 100 blocks (LTPage), born in pages 1-20
    allocated in app/ingest.py:12 in load ← app/ingest.py:9 in main
    through pdfplumber/page.py:412 in objects
    held by `pdf` (frame load_pages) → `.pages` list → `[3]` Page
      → `._layout` LTPage (9 like it)
"""
        in text
    )
    assert "Fix\n  pdfplumber: page.close()\n  for page in pdf.pages:\n      text = page" in text
    assert "malloc_trim" not in text


CUT_OFF = (
    "The capture (end of the run) was cut off after 8.8 s, in a heap of 816,790 objects: it found"
    " who holds 1 of 2 suspects."
)


def test_a_capture_that_was_cut_off_is_told_in_the_terminal_and_in_json(tmp_path):
    chain = (Link("frame", root="frame", name="load"), Link("pdfplumber.pdf.PDF", ".pdf"))
    held = (Holder(9 * MB, chain), Holder(10 * MB, ()))
    summary = summary_of(tmp_path, Run(python=leak(1 * MB), held=held, cut_off=True))
    [warning] = summary_json(summary)["warnings"]
    assert warning["source"] == "captures"
    assert warning["message"].startswith(CUT_OFF)
    assert CUT_OFF in " ".join(summary_text(summary).split())


def test_a_capture_that_saw_all_is_no_warning(tmp_path):
    held = (Holder(10 * MB, ()),)
    assert summary_of(tmp_path, Run(python=leak(1 * MB), held=held)).warnings == []


def test_details_add_the_ledger_and_the_settlement(tmp_path):
    text = summary_text(summary_of(tmp_path, LEAK), details=True)
    assert (
        """
What the resident set is made of
  at its peak     90.0 MB = 50.0 MB the rest + 30.0 MB native blocks in use
    + 10.0 MB live Python blocks
    The nearest reading is 2.0 MB below the peak.
  at the end      70.0 MB = 50.0 MB the rest + 20.0 MB live Python blocks

Letting go at the end
  Releasing the result gave back 2.0 MB; it freed 16.0 MB of Python blocks.
  A collection gave back nothing.
  malloc_trim gave back 15.0 MB.
  3.0 MB more than at the start stay, 4.0 MB of them live Python blocks.
"""
        in text
    )


def test_a_peak_that_no_reading_of_the_ledger_came_near_is_told(tmp_path):
    # given pages of 30 MB that begin and end with what the ledger reads: 90 MB at most
    summary = summary_of(tmp_path, LEAK.but(peak=lambda page: 30 * MB))
    told = "The nearest reading is 30.0 MB below the peak."
    assert summary.process.rss_peak_bytes == 120 * MB
    assert f"live Python blocks\n    {told}\n" in summary_text(summary, details=True)
    ledger = summary_json(summary)["ledger"]
    assert (ledger["at_peak"]["note"], ledger["at_end"]["note"]) == (told, "")


def test_of_a_healthy_run_the_verdict_is_one_calm_line(tmp_path):
    blocks = summary_text(summary_of(tmp_path, HEALTHY)).split("\n\n")
    assert blocks[1] == "Verdict           Nothing wrong (sure)"
    assert [block.split()[0] for block in blocks] == ["leak:", "Verdict", "Memory", "Recording"]


def test_details_tell_why_a_healthy_run_is_one(tmp_path):
    text = summary_text(summary_of(tmp_path, HEALTHY), details=True)
    assert "(sure)\n  Each page needs 2.0 MB of Python memory and leaves 0 B behind\n" in text
    assert "Highest peaks" in text


def test_failed_units_of_a_healthy_run_are_told(tmp_path):
    text = summary_text(summary_of(tmp_path, HEALTHY.but(failed=(3,))))
    assert "Nothing wrong" in text
    assert "1 page failed\n  page 3: ValueError: damaged" in text


@pytest.mark.parametrize("run", [LEAK, LEAK.but(native=lambda page: 2 * MB * page), HEALTHY])
def test_a_terminal_of_80_columns_is_enough(tmp_path, run):
    lines = summary_text(summary_of(tmp_path, run), details=True).splitlines()
    assert [line for line in lines if len(line) > 80 and str(tmp_path) not in line] == []


def test_a_long_link_of_a_chain_breaks_between_words(tmp_path):
    root = Link("frame", root="frame", name="Pipeline.of_the_invoices.<locals>.load_every_page")
    held = replace(LEAK.held[0], chain=(root, *CHAIN[1:]))
    text = summary_text(summary_of(tmp_path, LEAK.but(held=(held,))))
    assert (
        """
  19.0 MB in 100 blocks (LTPage) are held through `pdf`
    (frame Pipeline.of_the_invoices.<locals>.load_every_page) → `.pages` list
    → `[3]` Page → `._layout` LTPage
"""
        in text
    )


def test_a_word_that_fits_nowhere_stays_whole(tmp_path):
    place = "/srv/app/" + "x" * 90 + ".py"
    stack = (replace(Run().stack[0], file=place),)
    text = summary_text(summary_of(tmp_path, LEAK.but(stack=stack)))
    assert f"     20.0 MB  app/{'x' * 90}.py:9\n              in main (1 block)" in text


def test_a_summary_does_not_wait_for_pandas():
    loaded = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, diagnostics.analysis.summary, diagnostics.analysis.library\n"
            "print([name for name in ('pandas', 'numpy', 'plotly') if name in sys.modules])",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert loaded.stdout.strip() == "[]"


def test_commands_do_not_bring_the_analysis_into_the_process_of_a_run():
    loaded = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys\nfrom diagnostics.commands import app, list_, run, show\n"
            "print([name for name in ('summary', 'kinds', 'library')"
            " if f'diagnostics.analysis.{name}' in sys.modules])",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert loaded.stdout.strip() == "[]"
