"""What was committed survives: SIGKILL of the writer, a fork, a disk that fills up."""

import os
import random
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from diagnostics.errors import RecordingError
from diagnostics.recording.reader import RecordingReader

KILLS = 50

# Tick n writes one row of each kind and a state in which every id has the value n. The number is
# announced only after its commit.
WRITER = """
import os, sys
from diagnostics.recording.liveness import writer_identity
from diagnostics.recording.model import ProcessSample, UnitRow
from diagnostics.recording.writer import RecordingWriter

writer = RecordingWriter(sys.argv[1], {"writer": writer_identity()})
for n in range(1, 1_000_000):
    writer.put_process(ProcessSample(n, n, None, None, 0, 0, 1, 0))
    writer.put_units([UnitRow(n, "page", f"page {n}", n)])
    writer.add_frame("heap", n, n, {site: (n, site) for site in range(1, 40)})
    writer.commit()
    os.write(1, b"%d\\n" % n)
"""


def committed_before_the_kill(path: Path, delay_s: float) -> int:
    process = subprocess.Popen([sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE)
    assert process.stdout is not None
    first = process.stdout.readline()
    time.sleep(delay_s)
    process.kill()
    announced = first + process.stdout.read()
    process.wait()
    complete_lines = announced.rpartition(b"\n")[0].split(b"\n")
    return int(complete_lines[-1])


def test_every_committed_tick_is_readable_after_sigkill(tmp_path):
    delays = random.Random(87)
    reached = []
    for attempt in range(KILLS):
        path = tmp_path / f"{attempt}.p87"
        announced = committed_before_the_kill(path, delays.uniform(0, 0.12))
        with RecordingReader(path) as reader:
            ticks = [sample.t_ns for sample in reader.process()]
            assert ticks == list(range(1, len(ticks) + 1))
            assert len(ticks) >= announced, "a committed tick is missing"
            assert [row.index for row in reader.units()] == ticks, "a tick is there in part"
            for frame in reader.frames("heap"):
                assert set(frame.values.values()) == {(frame.t_ns, s) for s in range(1, 40)}
            assert frame.t_ns == ticks[-1]
            outcome = reader.outcome()
            assert (outcome.state, outcome.last_unit) == ("lost", ticks[-1])
        reached.append(len(ticks))
    # The kills fell at different moments, and not all at the very beginning.
    assert len(set(reached)) > KILLS / 2
    assert max(reached) > 20


def test_a_writer_killed_before_its_first_commit_leaves_a_clear_message(tmp_path):
    found = []
    delays = random.Random(5)
    for attempt in range(12):
        path = tmp_path / f"{attempt}.p87"
        process = subprocess.Popen([sys.executable, "-c", WRITER, path], stdout=subprocess.DEVNULL)
        while not path.exists():
            time.sleep(0.0005)
        time.sleep(delays.uniform(0, 0.004))
        process.kill()
        process.wait()
        state = "refused"
        with suppress(RecordingError), RecordingReader(path) as reader:
            state = reader.outcome().state
        found.append(state)
    assert set(found) <= {"refused", "lost"}, "neither a traceback nor a wrong claim"


@pytest.fixture
def small_disk(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("a small disk needs root: it is a tmpfs of 2 MB")
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", folder], capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    yield folder
    with suppress(subprocess.CalledProcessError):
        subprocess.run(["umount", folder], check=True)


def test_a_full_disk_ends_the_recording_and_not_the_run(small_disk):
    code = """
import os, sys, time
from diagnostics import record, units
with record(sys.argv[1], engine="none", tick_s=0.01) as recorder:
    for page in units(range(400)):
        if page == 40:
            hog = os.open(sys.argv[2], os.O_CREAT | os.O_WRONLY)
            try:
                while True:
                    os.write(hog, os.urandom(4096))
            except OSError:
                os.close(hog)
        time.sleep(0.005)
        if page > 40:  # something to write, so that the log has to grow
            recorder.log("info", "loader", "x" * 4000)
print("the run went on to its end")
"""
    path = small_disk / "run.p87"
    done = subprocess.run(
        [sys.executable, "-c", code, path, small_disk / "hog"], capture_output=True, text=True
    )
    assert done.stdout == "the run went on to its end\n", done.stderr
    assert done.returncode == 0
    (small_disk / "hog").unlink()
    with RecordingReader(path) as reader:
        units = reader.units()
        assert 20 <= len(units) < 400
        assert "full" in reader.meta()["cut_off"]["reason"]
        assert any("The recording ends here" in entry.message for entry in reader.log())
