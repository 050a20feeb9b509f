"""Captures that ran out of their time: which of several counts, and when one is told of."""

import pytest

from diagnostics.analysis.suspects import best_capture, cut_off
from diagnostics.recording.model import OUT_OF_TIME, Capture, Suspect
from diagnostics.recording.reader import RecordingReader
from diagnostics.recording.writer import RecordingWriter

WHOLE, CUT_OFF, DEEP = (True, ""), (False, OUT_OF_TIME), (False, "no root within 30 references")


@pytest.mark.parametrize(
    ("captures", "best", "told"),
    [
        # one that was due while the last one was taken comes after it
        ([("end of the run", WHOLE), ("retention grew", CUT_OFF)], 1, []),
        ([("retention grew", CUT_OFF), ("asked for", WHOLE)], 2, []),
        ([("asked for", WHOLE), ("end of the run", CUT_OFF)], 1, [2]),
        ([("retention grew", CUT_OFF), ("end of the run", CUT_OFF)], 2, [1, 2]),
        ([("retention grew", WHOLE), ("end of the run", WHOLE)], 2, []),
        ([("end of the run", DEEP)], 1, []),
    ],
)
def test_which_of_the_captures_counts_and_which_are_told_of(tmp_path, captures, best, told):
    path = tmp_path / "run.p87"
    writer = RecordingWriter(path, {})
    for number, (reason, (complete, note)) in enumerate(captures, start=1):
        suspect = Suspect(number, 1, None, "builtins.dict", 9_000_000, 100, 1, 20, 20, 1.0)
        capture = Capture(number, number * 1_000, 20, reason, 2_000, 5_000, complete, note)
        writer.put_capture(capture, [suspect], [], [], [])
    writer.close()
    with RecordingReader(path) as reader:
        assert best_capture(reader).id == best
        assert [capture.id for capture, _ in cut_off(reader)] == told
