"""The list of recordings: right figures, newest first, broken files with their error."""

import shutil

from hand_built import MB, META, build

from diagnostics.analysis.library import list_recordings
from diagnostics.recording.liveness import writer_identity
from diagnostics.recording.model import Outcome, UnitRow
from diagnostics.recording.writer import RecordingWriter


def test_a_recording_in_the_list(tmp_path):
    path = build(tmp_path / "run.p87")
    (entry,) = list_recordings(tmp_path)

    assert entry.path == path
    assert (entry.name, entry.document, entry.loader) == ("report", "report.pdf", "pdfplumber")
    assert (entry.units, entry.unit_kind) == (3, "page")
    assert (entry.state, entry.peak_bytes) == ("raised", 152 * MB)
    assert entry.bytes == path.stat().st_size
    assert entry.started_at == META["started_at"]
    assert entry.error is None


def test_broken_files_come_with_their_error_and_others_do_not_come(tmp_path):
    whole = build(tmp_path / "run.p87")
    (tmp_path / "cut.p87").write_bytes(whole.read_bytes()[:5000])
    (tmp_path / "empty.p87").touch()
    (tmp_path / "notes.txt").write_text("no recording")
    (tmp_path / "folder.p87").mkdir()

    entries = {entry.path.name: entry for entry in list_recordings(tmp_path)}

    assert set(entries) == {"run.p87", "cut.p87", "empty.p87"}
    assert entries["empty.p87"].error == (
        f"{tmp_path / 'empty.p87'} is empty. Its writer died before the first tick."
    )
    assert "malformed" in entries["cut.p87"].error
    assert entries["cut.p87"].state is None
    assert entries["run.p87"].error is None


def test_the_newest_comes_first_and_changes_are_seen(tmp_path):
    build(tmp_path / "old.p87")
    for name, day in (("b", "02"), ("a", "03")):
        writer = RecordingWriter(
            tmp_path / f"{name}.p87", {"name": name, "started_at": f"2026-03-{day}T10:00:00+00:00"}
        )
        writer.put_outcome(Outcome("finished", "", 1))
        writer.close()
    assert [entry.name for entry in list_recordings(tmp_path)] == ["a", "b", "report"]

    (tmp_path / "a.p87").unlink()
    shutil.copy(tmp_path / "old.p87", tmp_path / "b.p87")
    assert [entry.name for entry in list_recordings(tmp_path)] == ["report", "report"]


def test_a_growing_recording_is_read_anew(tmp_path):
    writer = RecordingWriter(tmp_path / "run.p87", {"writer": writer_identity()})
    (before,) = list_recordings(tmp_path)
    writer.put_units([UnitRow(1, "page", "page 1", 0)])
    writer.commit()
    (during,) = list_recordings(tmp_path)
    writer.put_outcome(Outcome("finished", "", 1))
    writer.close()
    (after,) = list_recordings(tmp_path)

    assert [entry.state for entry in (before, during, after)] == ["running", "running", "finished"]
    assert [entry.units for entry in (before, during, after)] == [0, 1, 1]


def test_an_empty_folder(tmp_path):
    assert list_recordings(tmp_path) == []
