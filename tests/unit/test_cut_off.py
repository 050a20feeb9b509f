"""Which of several captures counts, and when one that ran out of its time is told of."""

import pytest
from births import MB
from kinds_runs import Holder, Link, Run, write

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


LINES = (Link("module", root="module", name="__main__"), Link("builtins.list", ".lines"))
KEYS = (Link("module", root="module", name="__main__"), Link("builtins.list", ".keys"))


@pytest.mark.parametrize(
    ("at_the_end", "reason"),
    [
        ((Holder(20 * MB, KEYS),), "end of the run"),  # 50 MB of lines went meanwhile
        ((Holder(5 * MB, KEYS),), "retention grew"),  # the result is gone, and a crumb is left
        ((Holder(5 * MB, KEYS), Holder(60 * MB, ())), "retention grew"),  # who held it is gone
        ((Holder(20 * MB, KEYS), Holder(60 * MB, ())), "retention grew"),
    ],
)
def test_what_was_seen_at_the_end_comes_before_what_went_on_the_way(tmp_path, at_the_end, reason):
    run = Run(held=(Holder(50 * MB, LINES, at_page=12), *at_the_end))
    with RecordingReader(write(tmp_path / "run.p87", run)) as reader:
        assert best_capture(reader).reason == reason
