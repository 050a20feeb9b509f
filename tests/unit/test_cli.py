"""Replacing a recording loses nothing, however the run ends."""

import pytest

from diagnostics.commands.replacing import replaced
from diagnostics.errors import RecordingError, UsageError
from diagnostics.recording.liveness import writer_identity
from diagnostics.recording.model import Outcome
from diagnostics.recording.reader import RecordingReader
from diagnostics.recording.writer import RecordingWriter


def make(path, name, outcome=True):
    writer = RecordingWriter(path, {"name": name, "writer": writer_identity()})
    if outcome:
        writer.put_outcome(Outcome("finished", "The run came to its end.", 1))
        writer.close()
    return writer


def names_in(folder):
    return [path.name for path in folder.iterdir()]


def name_of(path):
    with RecordingReader(path) as reader:
        return reader.meta()["name"]


@pytest.fixture
def old(tmp_path):
    path = tmp_path / "r.p87"
    make(path, "old")
    return path


def test_a_new_recording_takes_the_place_of_the_old(old):
    with replaced(old):
        assert not old.exists()
        make(old, "new")
    assert name_of(old) == "new"
    assert names_in(old.parent) == ["r.p87"]


@pytest.mark.parametrize("error", [UsageError("no such loader"), KeyboardInterrupt()])
def test_without_a_new_recording_the_old_one_comes_back(old, error):
    before = old.read_bytes()
    with pytest.raises(type(error)), replaced(old):
        raise error
    assert old.read_bytes() == before
    assert names_in(old.parent) == ["r.p87"]


def test_the_log_of_a_killed_run_goes_with_it(old):
    log = old.with_name("r.p87-wal")
    log.write_bytes(b"")
    with pytest.raises(UsageError), replaced(old):
        assert names_in(old.parent) != ["r.p87"]
        assert not log.exists()
        raise UsageError("x")
    assert log.exists()


def test_what_is_no_recording_is_never_replaced(tmp_path):
    thesis = tmp_path / "thesis.docx"
    thesis.write_text("years of work")
    with pytest.raises(UsageError, match="not a Page 87 recording"), replaced(thesis):
        pytest.fail("the run must not begin")
    assert thesis.read_text() == "years of work"


def test_a_recording_that_is_being_written_is_not_replaced(tmp_path):
    path = tmp_path / "r.p87"
    writer = make(path, "live", outcome=False)
    with pytest.raises(RecordingError, match="still being written"), replaced(path):
        pytest.fail("the run must not begin")
    assert name_of(path) == "live"
    writer.close()


def test_where_nothing_is_there_is_nothing_to_do(tmp_path):
    with replaced(tmp_path / "r.p87"):
        assert names_in(tmp_path) == []
