"""The summary of a hand-built recording: each number worked out by hand."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest
from hand_built import INGEST_PY, MB, METHOD, OUTCOME, PAGE_PY, S, build

from diagnostics.analysis.summary import summarise, summary_json, summary_text
from diagnostics.recording.model import Outcome, UnitRow
from diagnostics.recording.reader import RecordingReader
from diagnostics.recording.writer import RecordingWriter


@pytest.fixture
def summary(tmp_path):
    with RecordingReader(build(tmp_path / "run.p87")) as reader:
        return summarise(reader)


def test_the_json_form(summary, tmp_path):
    path = tmp_path / "run.p87"
    size = path.stat().st_size

    assert json.loads(json.dumps(summary_json(summary))) == {
        "format": 1,
        "recording": {
            "path": str(path),
            "bytes": size,
            "version": 1,
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
    assert "49.0 MB at the start, 152 MB at its peak, 51.0 MB at the end (+2.0 MB)" in text
    assert "30 collections, 74.0 ms in all (0.9 % of the run), longest 70.0 ms" in text
    assert "  +100 MB  page 2\n" in text
    assert "1 page failed\n  page 2: ValueError: no such font" in text
    assert "30.0 MB  pdfplumber/page.py:430 in chars (300 blocks)" in text
    assert "Probe lines missing: no memory_profiler here" in text
    assert "Warning: USS is not available." in text
    assert "recording took 40.0 ms of CPU, 2 measurements lost" in text


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
