"""The probes at work in real recordings: what they say is what the program did."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from diagnostics import record, unit
from diagnostics.errors import RecordingError
from diagnostics.recording.reader import RecordingReader

MB = 1024 * 1024


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.p87"


@pytest.fixture
def needs_the_kernels_mark():
    if not os.access("/proc/self/clear_refs", os.W_OK):
        pytest.skip("peaks are sampled here")


def spike(megabytes):
    block = b"x" * (megabytes * MB)
    return len(block)


def climbs(path):
    """How far each unit's peak lies above its start, in bytes."""
    with RecordingReader(path) as reader:
        return {row.index: row.rss_peak - row.rss_start for row in reader.unit_peaks()}


@pytest.mark.usefixtures("needs_the_kernels_mark")
def test_the_unit_that_allocates_and_frees_has_the_peak(path):
    with record(path, engine="none"):
        for number in range(1, 6):
            with unit("page", number):
                spike(64 if number == 3 else 1)
    found = climbs(path)
    assert list(found) == [1, 2, 3, 4, 5]
    assert 62 * MB < found.pop(3) < 70 * MB
    assert max(found.values()) < 8 * MB
    with RecordingReader(path) as reader:
        assert {row.method for row in reader.unit_peaks()} == {"kernel high-water mark"}


@pytest.mark.usefixtures("needs_the_kernels_mark")
def test_units_that_overlap_in_two_threads_both_see_the_peak(path):
    second_started, spiked, first_ended = (threading.Event() for _ in range(3))

    def second_thread():
        with unit("page", 2):
            second_started.set()
            assert spiked.wait(10)
        assert first_ended.wait(10)
        with unit("page", 3):
            pass

    with record(path, engine="none"):
        thread = threading.Thread(target=second_thread)
        with unit("page", 1):
            spike(48)  # before unit 2 starts, and resets the mark
            thread.start()
            assert second_started.wait(10)
            spike(96)
            spiked.set()
        first_ended.set()
        thread.join()
    found = climbs(path)
    assert 94 * MB < found[1] < 104 * MB
    assert 94 * MB < found[2] < 104 * MB
    assert found[3] < 8 * MB


def hoard(count):
    return [bytearray(10_000) for _ in range(count)]  # the line that keeps


def test_the_heap_series_names_the_line_and_its_function(path):
    line = hoard.__code__.co_firstlineno + 1
    kept = []
    with record(path, engine="exact", frames=5):
        for number in range(1, 4):
            with unit("page", number):
                kept.append(hoard(100))
    with RecordingReader(path) as reader:
        sites = reader.sites()
        *_, last = reader.frames("heap")
        sizes = [
            values[0]
            for site, values in last.values.items()
            if site and (sites[site].file, sites[site].line) == (__file__, line)
        ]
        total = reader.heap_totals()[-1]
        ours = [site.file for site in sites.values() if "/diagnostics/probes/" in site.file]
        assert reader.source(__file__)[line].endswith("# the line that keeps")
    assert sum(map(len, kept)) == 300
    assert 3.0e6 < sum(sizes) < 3.1e6
    assert total.engine_bytes > 0
    assert ours == []


@pytest.mark.parametrize("engine", ["exact", "sampled"])
def test_the_loop_that_called_what_allocates_is_kept(path, engine):
    # given a loop in people's code, a release call in it, and a function that allocates
    kept = []
    with record(path, engine=engine, frames=5):
        for number in range(1, 6):
            with unit("page", number):
                text = "nothing"
                text += " of this"
                text += " matters"
                kept.append(hoard(200))
                text.strip()  # stands for page.close()
    with RecordingReader(path) as reader:
        code = [text.strip() for text in reader.source(__file__).values()]
    assert "return [bytearray(10_000) for _ in range(count)]  # the line that keeps" in code
    assert "text.strip()  # stands for page.close()" in code
    # and the loop is known, although it stands five lines above
    assert code.index("for number in range(1, 6):") < code.index("kept.append(hoard(200))")
    assert "def test_the_loop_that_called_what_allocates_is_kept(path, engine):" in code


def test_a_collection_belongs_to_the_unit_in_which_it_ran(path):
    gc.collect()
    with record(path, engine="none", types=False):
        with unit("page", 1):
            pass
        with unit("page", 2):
            loop = [None]
            loop[0] = loop
            del loop
            found = gc.collect()
    with RecordingReader(path) as reader:
        events = [event for event in reader.gc_events() if event.generation == 2 and not event.own]
        second = reader.units()[1]
    (event,) = [event for event in events if event.unit == 2]
    assert event.collected == found >= 1
    assert second.start_ns <= event.t_ns <= event.t_ns + event.pause_ns <= second.end_ns


def test_the_line_profile_is_in_the_recording(path, tmp_path, monkeypatch):
    (tmp_path / "ingest_lines.py").write_text(
        "def load(megabytes):\n    block = b'x' * (megabytes << 20)\n    return len(block)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with record(path, engine="none", lines=["ingest_lines:load"]):
        import ingest_lines

        assert ingest_lines.load(64) == 64 * MB
    sys.modules.pop("ingest_lines")
    with RecordingReader(path) as reader:
        rows = {row.line: row for row in reader.line_profile()}
    assert [row.function for row in rows.values()] == ["ingest_lines:load"] * 3
    assert rows[2].hits == 1
    assert 62 * MB < rows[2].increment < 66 * MB


KILLED = """
import sys, time
from diagnostics import record, unit
from killed_ingest import load

with record(sys.argv[1], lines=["killed_ingest:load"]):
    with unit("page", 86):
        load(1)
    with unit("page", 87):
        kept = load(96)
        time.sleep(60)
"""


def test_a_killed_run_keeps_the_peak_of_its_last_unit_and_its_lines(path, tmp_path):
    (tmp_path / "killed_ingest.py").write_text(
        "def load(megabytes):\n    return bytearray(b'x') * (megabytes << 20)\n"
    )
    (tmp_path / "run.py").write_text(KILLED)
    folders = os.pathsep.join([str(Path.cwd()), str(tmp_path)])
    child = subprocess.Popen(
        [sys.executable, tmp_path / "run.py", path], env={**os.environ, "PYTHONPATH": folders}
    )
    deadline = time.monotonic() + 60
    while not has_grown(path) and time.monotonic() < deadline:
        time.sleep(0.05)
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert climbs(path)[87] > 94 * MB
    with RecordingReader(path) as reader:
        hits = {row.line: row.hits for row in reader.line_profile()}
    assert hits[2] == 2


def has_grown(path):
    try:
        with RecordingReader(path) as reader:
            climbed = any(row.rss_peak - row.rss_start > 94 * MB for row in reader.unit_peaks())
            return climbed and any((row.line, row.hits) == (2, 2) for row in reader.line_profile())
    except RecordingError:
        return False


def test_memory_profiler_is_loaded_only_for_a_line_profile(tmp_path):
    code = (
        "import sys\n"
        "from diagnostics import record\n"
        "with record(sys.argv[1]): pass\n"
        "assert 'memory_profiler' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path / "a.p87"], check=True, cwd=Path.cwd())
