"""A hand-built recording reads back exactly, and bad files are refused clearly."""

import os
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from diagnostics.analysis.library import list_recordings
from diagnostics.analysis.summary import summarise
from diagnostics.errors import RecordingError
from diagnostics.recording.liveness import writer_identity
from diagnostics.recording.model import (
    Frame,
    GcEvent,
    GcSummary,
    HeapTotal,
    LineRow,
    Outcome,
    ProbeStatus,
    ProcessSample,
    Site,
    UnitPeak,
    UnitRow,
)
from diagnostics.recording.places import new_path
from diagnostics.recording.reader import RecordingReader, set_outcome
from diagnostics.recording.writer import RecordingWriter

MB = 1_000_000

UNIT_1 = UnitRow(1, "page", "page 1", 10, 20, "finished", bytes=7, characters=5, thread="Main")
UNIT_2 = UnitRow(2, "page", "page 2", 20, 35, "failed", "ValueError", "no such font")
UNIT_3 = UnitRow(3, "page", "page 3", 40)
SAMPLES = [
    ProcessSample(0, 50 * MB, 40 * MB, 45 * MB, 100, 1, 3, 5_000),
    ProcessSample(30, 60 * MB, None, None, 200, 1, 3, 9_000),
]
GC_EVENTS = [GcEvent(12, 2_000_000, 2, 40, 1, 1), GcEvent(33, 1_500_000, 0, 3, 0, 2, own=True)]
GC_SUMMARIES = [GcSummary(30, 0, 7, 70, 20, 11, 0), GcSummary(30, 1, 1, 9, 9, 0, 0)]
LINES = [
    LineRow("load", "/srv/ingest.py", 3, "def load(path):\n", None, None, None),
    LineRow("load", "/srv/ingest.py", 4, "    return open(path)\n", 61 * MB, MB, 2),
]
OUTCOME = Outcome("raised", "ValueError left the loader in unit 2.", 50, 2, error_type="ValueError")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.p87"


@pytest.fixture
def writer(path):
    writer = RecordingWriter(path, {"name": "hand built", "writer": writer_identity()})
    yield writer
    writer.close()


def fill(writer):
    writer.put_meta({"document": {"name": "report.pdf", "bytes": 700}})
    writer.put_units([UnitRow(1, "page", "page 1", 10), UNIT_2, UNIT_3])
    writer.put_units([UNIT_1])  # a unit is written when it starts and again when it ends
    writer.put_unit_peaks([UnitPeak(1, 50 * MB, 55 * MB, 80 * MB, "kernel high-water mark")])
    for sample in SAMPLES:
        writer.put_process(sample)
    writer.put_heap_total(HeapTotal(30, 9 * MB, MB))
    writer.add_gc_events(GC_EVENTS)
    writer.add_gc_summaries(GC_SUMMARIES)
    writer.put_line_profile(LINES)
    writer.put_probes([ProbeStatus("gc", "on", "", 12, 0)])
    writer.add_log(31, "warning", "process", "USS is not available")
    writer.put_outcome(OUTCOME)


def test_everything_comes_back_as_it_was_written(writer, path):
    fill(writer)
    writer.close()

    with RecordingReader(path) as reader:
        assert reader.meta()["document"] == {"name": "report.pdf", "bytes": 700}
        assert reader.units() == [UNIT_1, UNIT_2, UNIT_3]
        assert reader.unit_peaks()[0].rss_peak == 80 * MB
        assert reader.process() == SAMPLES
        assert reader.heap_totals() == [HeapTotal(30, 9 * MB, MB)]
        assert reader.gc_events() == GC_EVENTS
        assert reader.gc_summaries() == GC_SUMMARIES
        assert reader.line_profile() == LINES
        assert reader.probes() == [ProbeStatus("gc", "on", "", 12, 0)]
        assert [entry.message for entry in reader.log()] == ["USS is not available"]
        assert reader.outcome() == OUTCOME
        assert reader.last_ns() == 50


def test_only_what_is_new_is_read(writer, path):
    fill(writer)
    writer.commit()
    with RecordingReader(path) as reader:
        assert reader.process(after_ns=0) == SAMPLES[1:]
        assert reader.gc_events(after_ns=12) == GC_EVENTS[1:]
        assert reader.units(changed_after_ns=20) == [UNIT_2, UNIT_3]
        assert [peak.index for peak in reader.unit_peaks(ended_after_ns=20)] == [1]
        assert reader.unit_peaks(ended_after_ns=21) == []


def test_what_is_not_committed_is_not_seen(writer, path):
    writer.put_units([UNIT_1])
    writer.commit()
    writer.put_units([UNIT_2])
    with RecordingReader(path) as reader:
        assert reader.units() == [UNIT_1]


def test_units_are_taken_back(writer, path):
    writer.put_units([UNIT_1, UNIT_3])
    writer.drop_units([3])
    writer.commit()
    with RecordingReader(path) as reader:
        assert reader.units() == [UNIT_1]


def test_sites_form_a_tree_and_are_stored_once(writer, path):
    outer, inner = Frame("/srv/a.py", 1, "load"), Frame("/srv/b.py", 9, "parse")
    first = writer.site([outer, inner])
    again = writer.site([outer, inner])
    alone = writer.site([inner])
    writer.put_source("/srv/b.py", {8: "def parse():", 9: "    return []"})
    writer.commit()

    assert first == again != alone
    with RecordingReader(path) as reader:
        sites = reader.sites()
        assert sites[first] == Site(first, 1, "/srv/b.py", 9, "parse")
        assert sites[1] == Site(1, None, "/srv/a.py", 1, "load")
        assert sites[alone].parent is None
        assert reader.source("/srv/b.py") == {8: "def parse():", 9: "    return []"}
        assert reader.source("/srv/a.py") == {}


def test_series_come_back_as_states_from_any_moment(writer, path):
    steps = {10: {1: (100, 1)}, 20: {1: (100, 1), 2: (50, 2)}, 30: {2: (50, 2)}, 40: {2: (70, 3)}}
    for t_ns, state in steps.items():
        writer.add_frame("heap", t_ns, unit=t_ns // 10, state=state)
    writer.commit()

    with RecordingReader(path) as reader:
        assert {f.t_ns: dict(f.values) for f in reader.frames("heap")} == steps
        later = [(f.t_ns, f.unit, dict(f.values)) for f in reader.frames("heap", after_ns=20)]
        assert later == [(30, 3, steps[30]), (40, 4, steps[40])]
        at_25 = reader.state_at("heap", 25)
        assert at_25 is not None
        assert (at_25.t_ns, at_25.values) == (20, steps[20])
        assert reader.state_at("heap", 9) is None
        assert list(reader.frames("types")) == []


def test_a_clean_end_leaves_one_file(writer, path):
    fill(writer)
    writer.close()
    assert [p.name for p in path.parent.iterdir()] == ["run.p87"]


def test_a_copy_of_a_growing_recording_is_one_complete_file(writer, path, tmp_path):
    writer.put_units([UNIT_1])
    writer.commit()
    copy = tmp_path / "elsewhere" / "copy.p87"
    copy.parent.mkdir()
    with RecordingReader(path) as reader:
        reader.copy_to(copy)
    assert [p.name for p in copy.parent.iterdir()] == ["copy.p87"]
    with RecordingReader(copy) as reader:
        assert reader.units() == [UNIT_1]


def test_a_living_writer_is_running_and_a_dead_one_is_lost(writer, path, tmp_path):
    writer.put_units([UNIT_3])
    writer.commit()
    with RecordingReader(path) as reader:
        assert reader.outcome().state == "running"

    dead = tmp_path / "dead.p87"
    code = (
        "import os, sys\n"
        "from diagnostics.recording.writer import RecordingWriter\n"
        "from diagnostics.recording.liveness import writer_identity\n"
        "from diagnostics.recording.model import UnitRow\n"
        "w = RecordingWriter(sys.argv[1], {'writer': writer_identity()})\n"
        "w.put_units([UnitRow(41, 'page', 'page 41', 5)])\n"
        "w.commit()\n"
        "os._exit(0)\n"
    )
    subprocess.run([sys.executable, "-c", code, dead], check=True)
    with RecordingReader(dead) as reader:
        outcome = reader.outcome()
    assert (outcome.state, outcome.last_unit) == ("lost", 41)


def test_a_supervisor_writes_the_outcome_once(writer, path):
    writer.put_units([UNIT_3])
    writer.close()
    set_outcome(path, Outcome("killed", "Killed by SIGKILL.", 90, 3, signal=9))
    set_outcome(path, Outcome("lost", "Somebody else's later guess.", 99, 3))
    with RecordingReader(path) as reader:
        assert reader.outcome() == Outcome("killed", "Killed by SIGKILL.", 90, 3, signal=9)


def test_an_existing_file_is_left_as_it_is(path):
    path.write_text("precious")
    with pytest.raises(RecordingError, match="exists already"):
        RecordingWriter(path, {})
    assert path.read_text() == "precious"


def test_a_folder_that_is_not_there_is_a_clear_error(tmp_path):
    with pytest.raises(RecordingError, match="Cannot create the recording"):
        RecordingWriter(tmp_path / "nowhere" / "run.p87", {})


# -- files that are no recordings ----------------------------------------------------------------


def refused(path):
    with pytest.raises(RecordingError) as caught, RecordingReader(path) as reader:
        for read in (reader.meta, reader.units, reader.process, reader.outcome, reader.probes):
            read()
        list(reader.frames("heap"))
    return str(caught.value)


def test_what_is_not_a_recording_is_refused_in_words(tmp_path):
    missing = tmp_path / "missing.p87"
    empty = tmp_path / "empty.p87"
    empty.touch()
    text = tmp_path / "text.p87"
    text.write_text("Dear reader, " * 100)
    foreign = tmp_path / "foreign.p87"
    with closing(sqlite3.connect(foreign)) as db:
        db.execute("CREATE TABLE songs (title)")
        db.commit()

    assert "There is no recording" in refused(missing)
    assert "is empty" in refused(empty)
    assert "is a folder" in refused(tmp_path)
    assert "is not a Page 87 recording" in refused(text)
    assert "of another program" in refused(foreign)


def test_a_newer_recording_says_which_version_it_needs(writer, path):
    writer.close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")
    assert "format is version 99" in refused(path)


def test_a_truncated_recording_is_refused_in_words(writer, path, tmp_path):
    fill(writer)
    for t_ns in range(2000):
        writer.put_process(ProcessSample(t_ns + 100, MB, None, None, 0, 0, 1, 0))
    writer.close()
    whole = path.read_bytes()
    for share in (0.02, 0.3, 0.6, 0.9):
        cut = tmp_path / f"cut-{share}.p87"
        cut.write_bytes(whole[: int(len(whole) * share)])
        assert "damaged or was cut off" in refused(cut)


def test_meta_that_is_no_json_is_refused_in_words(writer, path):
    writer.close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE meta SET value = '{' WHERE key = 'name'")
        db.commit()
    assert "damaged" in refused(path)


def test_a_payload_that_is_no_frame_is_refused_in_words(writer, path):
    writer.add_frame("heap", 1, 0, {1: (10, 1)})
    writer.close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE frames SET payload = ?", (b"cos\nsystem\n(S'true'\ntR.",))
        db.commit()
    assert "damaged" in refused(path)


def test_a_finished_recording_opens_where_nothing_may_be_written(writer, path, tmp_path):
    fill(writer)
    writer.close()
    folder = tmp_path / "read-only"
    folder.mkdir()
    shutil.copy(path, folder / "run.p87")
    (folder / "run.p87").chmod(0o400)
    folder.chmod(0o500)
    try:
        with RecordingReader(folder / "run.p87") as reader:
            assert reader.outcome() == OUTCOME
        assert [path.name for path in folder.iterdir()] == ["run.p87"]
    finally:
        folder.chmod(0o700)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE process SET rss = 'much' WHERE t_ns = 0",
        "UPDATE units SET label = x'00ff'",
        "UPDATE meta SET value = x'07' WHERE key = 'name'",
        "UPDATE frames SET payload = 'text'",
        "UPDATE sites SET line = 1.5",
        "UPDATE outcome SET t_ns = x'ff'",
        "UPDATE meta SET value = 'NaN' WHERE key = 'name'",
    ],
)
def test_a_value_of_another_type_is_damage(writer, path, change):
    fill(writer)
    writer.add_frame("heap", 20, 1, {writer.site([Frame("/srv/ingest.py", 4)]): (7, 1)})
    writer.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        assert db.execute(change).rowcount > 0
    with RecordingReader(path) as reader, pytest.raises(RecordingError, match="is damaged"):
        summarise(reader)


def test_text_that_is_no_utf_8_is_read_as_well_as_it_can_be(writer, path):
    fill(writer)
    writer.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("UPDATE units SET label = CAST(x'70ff31' AS TEXT) WHERE \"index\" = 1")
    with RecordingReader(path) as reader:
        assert reader.units()[0].label == "p\ufffd1"


@pytest.mark.parametrize("identity", [["pid"], 7, {"pid": -1}, {"pid": 1 << 40}, {"pid": "x"}])
def test_a_writer_that_makes_no_sense_is_not_taken_for_alive(writer, path, identity):
    here = {**writer_identity(), "start": None}
    nonsense = here | identity if isinstance(identity, dict) else identity
    writer.put_meta({"writer": nonsense})
    writer.close()
    os.utime(path, (0, 0))
    with RecordingReader(path) as reader:
        assert reader.outcome().state == "lost"


def test_a_name_that_is_no_utf_8_opens(writer, path, tmp_path):
    fill(writer)
    writer.close()
    odd = tmp_path / os.fsdecode(b"caf\xe9.p87")
    path.rename(odd)
    with RecordingReader(odd) as reader:
        assert reader.meta()["name"] == "hand built"
    assert [entry.error for entry in list_recordings(tmp_path)] == [None]


def test_a_pipe_is_not_a_recording(tmp_path):
    pipe = tmp_path / "pipe.p87"
    os.mkfifo(pipe)
    with pytest.raises(RecordingError, match="is not a file"):
        RecordingReader(pipe)


def test_names_of_the_same_second_differ(tmp_path):
    names = {new_path("report", tmp_path).name for _ in range(5)}
    assert len(names) > 1, "nothing exists yet, as for processes that start at once"
    assert all(re.fullmatch(r"report-\d{8}-\d{6}-[0-9a-f]{4}\.p87", name) for name in names)
