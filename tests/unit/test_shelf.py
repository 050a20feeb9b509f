"""Recordings as files: renamed, deleted, taken in and given away without losing anything."""

import io

import pytest

from diagnostics.errors import RecordingError
from diagnostics.recording import shelf
from diagnostics.recording.liveness import writer_identity
from diagnostics.recording.model import Outcome, UnitRow
from diagnostics.recording.reader import RecordingReader
from diagnostics.recording.writer import RecordingWriter


@pytest.fixture
def finished(tmp_path):
    path = tmp_path / "run.p87"
    writer = RecordingWriter(path, {"writer": writer_identity()})
    writer.put_units([UnitRow(1, "page", "page 1", 0, 5, "finished")])
    writer.put_outcome(Outcome("finished", "The run came to its end.", 9, 1))
    writer.close()
    return path


@pytest.fixture
def growing(tmp_path):
    writer = RecordingWriter(tmp_path / "growing.p87", {"writer": writer_identity()})
    writer.put_units([UnitRow(1, "page", "page 1", 0)])
    writer.commit()
    yield writer.path
    writer.close()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_recording_gets_another_name(finished):
    renamed = shelf.rename(finished, "before the fix")
    assert names(finished.parent) == ["before the fix.p87"]
    with RecordingReader(renamed) as reader:
        assert len(reader.units()) == 1


@pytest.mark.parametrize("name", ["", "  ", "../elsewhere", "a/b", "..", ".hidden", "a\\b"])
def test_a_name_that_is_a_path_is_refused(finished, name):
    with pytest.raises(RecordingError, match="cannot be the name"):
        shelf.rename(finished, name)
    assert names(finished.parent) == ["run.p87"]


def test_a_taken_name_is_refused(finished):
    (finished.parent / "other.p87").write_bytes(b"precious")
    with pytest.raises(RecordingError, match="already"):
        shelf.rename(finished, "other")
    assert (finished.parent / "other.p87").read_bytes() == b"precious"


def test_what_is_being_written_stays(growing):
    with pytest.raises(RecordingError, match="still being written"):
        shelf.delete(growing)
    with pytest.raises(RecordingError, match="still being written"):
        shelf.rename(growing, "new")
    assert growing.exists()


def test_deleting_takes_every_part_along(finished):
    for part in ("-wal", "-shm"):
        finished.with_name(finished.name + part).write_bytes(b"")
    shelf.delete(finished)
    assert names(finished.parent) == []


def test_a_broken_file_can_be_deleted(tmp_path):
    broken = tmp_path / "broken.p87"
    broken.write_text("nothing")
    shelf.delete(broken)
    assert names(tmp_path) == []


def test_an_upload_is_checked_and_keeps_its_name(finished, tmp_path):
    folder = tmp_path / "shelf"
    folder.mkdir()
    with finished.open("rb") as upload:
        first = shelf.take_in(upload, "mailed.p87", folder)
    with finished.open("rb") as upload:
        second = shelf.take_in(upload, "mailed.p87", folder)
    assert first.name == "mailed.p87"
    assert second.name.startswith("mailed-")
    with RecordingReader(second) as reader:
        assert reader.outcome().state == "finished"


def test_an_upload_cannot_choose_its_folder(finished, tmp_path):
    folder = tmp_path / "shelf"
    folder.mkdir()
    with finished.open("rb") as upload:
        assert shelf.take_in(upload, "../../evil.p87", folder).parent == folder


def test_an_upload_that_is_no_recording_leaves_nothing(tmp_path):
    with pytest.raises(RecordingError, match=r"holiday\.p87 is not a Page 87 recording"):
        shelf.take_in(io.BytesIO(b"GIF89a" * 99), "holiday.p87", tmp_path)
    assert names(tmp_path) == []


def test_a_growing_recording_is_given_away_whole(growing, tmp_path):
    copy = tmp_path / "copy.p87"
    copy.write_bytes(shelf.whole_file(growing))
    with RecordingReader(copy) as reader:
        assert [unit.index for unit in reader.units()] == [1]
