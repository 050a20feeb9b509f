"""Printing a recording: what it does to the process that prints it."""

import gc
import io

import pytest
from births import leak, write_run

from diagnostics.commands.show import report
from diagnostics.errors import RecordingError

MB = 1_000_000


@pytest.fixture
def collections(monkeypatch):
    """The collections that begin, of a collector that is as busy as it can be."""
    begun = []
    threshold = gc.get_threshold()

    def note(phase, info):
        if phase == "start":
            begun.append(info["generation"])

    gc.callbacks.append(note)
    gc.set_threshold(1, 1, 1)
    yield begun
    gc.set_threshold(*threshold)
    gc.callbacks.remove(note)


@pytest.mark.parametrize("as_json", [False, True])
def test_the_collector_rests_while_a_recording_is_summed_up(tmp_path, collections, as_json):
    path = write_run(tmp_path / "run.p87", 20, leak(1 * MB))
    report(path, io.StringIO(), as_json=as_json, details=True)  # imports what it needs
    collections.clear()

    report(path, io.StringIO(), as_json=as_json, details=True)
    during = len(collections)

    assert gc.isenabled()
    assert during < 20  # before and after, where thousands would come in between


def test_the_collector_goes_on_after_a_damaged_recording(tmp_path):
    path = tmp_path / "run.p87"
    path.write_bytes(b"no recording")
    with pytest.raises(RecordingError):
        report(path, io.StringIO(), as_json=True, details=True)
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off(tmp_path):
    path = write_run(tmp_path / "run.p87", 3, leak(1 * MB))
    gc.disable()
    try:
        report(path, io.StringIO(), as_json=True, details=True)
        assert not gc.isenabled()
    finally:
        gc.enable()
