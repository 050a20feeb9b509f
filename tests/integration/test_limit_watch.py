"""The limit in force and how near it is, from recorded control group trees and a real group."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from diagnostics.probes.cgroup import ControlGroup, MemoryLimit
from diagnostics.probes.limit_watch import LimitWatch
from diagnostics.recording.reader import RecordingReader

SECOND = 1_000_000_000
V1_ROOT = Path("/sys/fs/cgroup/memory")


def tree(root, files):
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{text}\n")


def test_the_lowest_limit_on_the_way_up_counts_in_version_1(tmp_path):
    stat = "total_inactive_file 10\ntotal_active_file 20"
    tree(
        tmp_path,
        {
            "memory.stat": stat,
            "memory.limit_in_bytes": 9223372036854771712,
            "pod/memory.stat": stat,
            "pod/memory.limit_in_bytes": 1000,
            "pod/memory.usage_in_bytes": 880,
            "pod/job/memory.stat": stat,
            "pod/job/memory.limit_in_bytes": 4000,
        },
    )
    limit = ControlGroup("/pod/job", 1, tmp_path / "pod" / "job").limit()
    assert limit == MemoryLimit(1000, 1, tmp_path / "pod")
    assert limit.used() == 880 - 10 - 20


def test_version_2_says_max_where_there_is_no_limit(tmp_path):
    stat = "inactive_file 5\nactive_file 6"
    tree(
        tmp_path,
        {
            "memory.stat": stat,
            "pod/memory.stat": stat,
            "pod/memory.max": "max",
            "pod/job/memory.stat": stat,
            "pod/job/memory.max": 500,
            "pod/job/memory.current": 411,
        },
    )
    group = ControlGroup("/pod/job", 2, tmp_path / "pod" / "job")
    assert group.limit() == MemoryLimit(500, 2, tmp_path / "pod" / "job")
    assert group.limit().used() == 400
    assert ControlGroup("/pod", 2, tmp_path / "pod").limit() is None


def test_it_tells_once_and_again_after_it_was_far(tmp_path):
    tree(tmp_path, {"memory.stat": "inactive_file 0\nactive_file 0"})
    watch = LimitWatch(MemoryLimit(100, 2, tmp_path))
    told = []
    for second, used in enumerate([50, 84, 85, 99, 80, 90, 69, 84, 86]):
        (tmp_path / "memory.current").write_text(str(used))
        told.append(watch.comes_near(second * SECOND))
    assert told == [False, False, True, False, False, False, False, False, True]
    (tmp_path / "memory.current").unlink()
    assert not watch.comes_near(99 * SECOND)


LIMIT = 300 << 20
LEAK = """
import os, sys
open(sys.argv[2] + "/cgroup.procs", "w").write(str(os.getpid()))
from diagnostics import record, units
import time
kept, size = [], 1000  # a name, or the compiler makes one constant of it
with record(sys.argv[1]):
    for page in units(range(1, 100)):
        kept.append([b"x" * size for _ in range(10_000)])
        time.sleep(0.02)
        if int(open(sys.argv[2] + "/memory.usage_in_bytes").read()) > 0.9 * int(sys.argv[3]):
            time.sleep(1.5)
            print(page)
            break
"""


@pytest.mark.skipif(
    not os.access(V1_ROOT, os.W_OK), reason="no control group of version 1 can be made here"
)
def test_a_capture_is_taken_near_the_limit_of_a_real_group(tmp_path):
    group = V1_ROOT / f"page87-test-{os.getpid()}"
    group.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text(str(LIMIT))
        done = subprocess.run(
            [sys.executable, "-c", LEAK, tmp_path / "run.p87", group, str(LIMIT)],
            check=True,
            timeout=60,
            capture_output=True,
            text=True,
        )
    finally:
        group.rmdir()
    with RecordingReader(tmp_path / "run.p87") as reader:
        near = [one for one in reader.captures() if one.reason == "near the limit"]
        suspects = reader.suspects(near[0].id)
    assert len(near) == 1
    assert 10 < near[0].unit <= int(done.stdout)
    assert suspects[0].bytes > LIMIT / 2
