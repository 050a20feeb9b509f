"""Captures while a run goes on, because of what its units leave behind."""

import subprocess
import sys
import textwrap

import pytest

from diagnostics.analysis.suspects import best_capture
from diagnostics.recording.reader import RecordingReader

pytest.importorskip(
    "diagnostics.probes._heap", reason="the sampled engine was not built: no C compiler"
)

LOADER = textwrap.dedent(
    """
    import sys, time
    from diagnostics import record, units

    class Page:
        pass

    def load(pages, rows):
        document = []
        for number in range(pages):
            page = Page()
            page.rows = [[number, row] for row in range(rows)]
            document.append(page)
            time.sleep(0.05)
            yield number

    path, rows = sys.argv[1], int(sys.argv[2])
    with record(path, engine="sampled", types=False):
        for _ in units(load(30, rows)):
            pass
    """
)


@pytest.mark.parametrize(
    ("rows", "grown"),
    [(50_000, 1), (5_000, 0)],  # 140 MB in the end, and 14 MB
    ids=["140 MB", "14 MB"],
)
def test_a_look_at_much_that_stays_does_not_wait_for_its_budget(tmp_path, rows, grown):
    # given a loader that lasts some seconds, of which a look may take 1 %, and whose document goes
    # with it: at the end of the run nobody sees who held it
    path = tmp_path / "run.p87"
    subprocess.run([sys.executable, "-c", LOADER, str(path), str(rows)], check=True, timeout=60)

    with RecordingReader(path) as reader:
        reasons = [capture.reason for capture in reader.captures()]
        assert reasons.count("retention grew") == grown
        if grown:
            best = best_capture(reader)
            roots = {held.root for held in reader.held_objects(best.id).values()}
            assert best.reason == "retention grew"
            assert "frame" in roots
