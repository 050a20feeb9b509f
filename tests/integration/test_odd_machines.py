"""Machines that are not as most are: a recording goes on, and says what it could not read."""

import ctypes
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import psutil
import pytest

from diagnostics import record
from diagnostics.probes import ledger, limit_watch
from diagnostics.probes.cgroup import GroupMemory, MemoryLimit, own_group
from diagnostics.probes.limit_watch import LimitWatch
from diagnostics.probes.malloc import MallocMissingError, malloc_reader, malloc_trimmer
from diagnostics.recording.reader import RecordingReader

MOUNT = b"30 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n"
STAT = b"anon 1000\nfile 2000\ninactive_file 10\nactive_file 20\n"
GROUP = {"memory.stat": STAT, "memory.current": b"500\n", "memory.max": b"800\n"}


@pytest.fixture
def machine(tmp_path):
    """Makes a root with ``proc`` and ``sys`` where this process is in the group ``/job``."""

    def make(*, membership=b"0::/job\n", mounts=MOUNT, name=b"job", **files):
        proc = tmp_path / "proc" / "self"
        proc.mkdir(parents=True)
        (proc / "cgroup").write_bytes(membership)
        (proc / "mountinfo").write_bytes(mounts)
        folder = tmp_path / "sys" / "fs" / "cgroup" / os.fsdecode(name)
        folder.mkdir(parents=True)
        for file, text in (
            GROUP | {key.replace("_", "."): text for key, text in files.items()}
        ).items():
            (folder / file).write_bytes(text)
        return tmp_path

    return make


# -- names -------------------------------------------------------------------------------------


def test_a_mount_whose_name_is_not_utf8_hides_nothing(machine):
    root = machine(mounts=b"31 23 0:27 / /mnt/caf\xe9 rw - ext4 /dev/x rw\n" + MOUNT)
    assert own_group(root).read() == GroupMemory(1000, 2000)


def test_a_group_whose_name_is_not_utf8_is_read_by_its_bytes(machine):
    root = machine(membership=b"0::/caf\xe9\n", name=b"caf\xe9")
    group = own_group(root)
    assert group.read() == GroupMemory(1000, 2000)
    assert os.fsencode(group.name) == b"/caf\xe9"


@pytest.mark.parametrize("line", [b"\n", b"nothing known\n", b"5:cpu\n"])
def test_lines_that_say_nothing_are_passed_over(machine, line):
    root = machine(membership=line + b"0::/job\n", mounts=b"31 23 0:27 / /x rw - tmpfs\n" + MOUNT)
    assert own_group(root).read() == GroupMemory(1000, 2000)


def test_a_group_beside_all_that_is_mounted_here_is_not_mistaken_for_the_top(machine):
    root = machine(membership=b"0::/../other\n", name=b"")
    assert own_group(root) is None


# -- numbers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("stat", [b"", b"anon\n", b"anon many\nfile 1\n", b"file 5\n"])
def test_a_group_that_does_not_tell_its_memory_says_so(machine, stat):
    group = own_group(machine(memory_stat=stat))
    with pytest.raises(OSError, match=r"memory\.stat has no number for anon or file"):
        group.read()


@pytest.mark.parametrize("text", [b"", b"much\n", b"1.5\n"])
def test_a_limit_that_is_no_number_is_told(machine, monkeypatch, text):
    root = machine(memory_max=text)
    with pytest.raises(OSError, match="no number"):
        own_group(root).limit()
    monkeypatch.setattr(limit_watch, "own_group", lambda: own_group(root))
    watch = LimitWatch()
    assert watch.limit is None
    assert "memory.max" in watch.missing
    assert not watch.comes_near(0)


@pytest.mark.parametrize("text", [b"0\n", b"-1\n", b"max\n"])
def test_a_limit_that_limits_nothing_is_none(machine, text):
    assert own_group(machine(memory_max=text)).limit() is None


def test_a_usage_that_is_no_number_ends_the_watch(machine):
    root = machine(memory_current=b"")
    watch = LimitWatch(MemoryLimit(100, 2, root / "sys/fs/cgroup/job"))
    assert not watch.comes_near(0)
    assert (watch.limit, "memory.current" in watch.missing) == (None, True)


# -- whole recordings --------------------------------------------------------------------------


def recorded(path):
    """The outcome, the ledger probe's state and detail, and the log."""
    with RecordingReader(path) as reader:
        [probe] = [probe for probe in reader.probes() if probe.name == "ledger"]
        log = "\n".join(entry.message for entry in reader.log())
        return reader.outcome().state, probe.state, probe.detail, log


@pytest.mark.parametrize(
    "files",
    [{"memory_stat": b""}, {"memory_max": b"\xe9"}, {"membership": b"0::/job\xe9\n"}],
    ids=["no figures", "a limit in letters", "a group that is not there"],
)
def test_a_recording_in_an_odd_group_goes_on(machine, monkeypatch, tmp_path, files):
    root = machine(**files)
    for module in (ledger, limit_watch):
        monkeypatch.setattr(module, "own_group", lambda: own_group(root))
    path = tmp_path / "run.p87"

    with record(path, engine="none"):
        pass

    outcome, state, detail, log = recorded(path)
    assert (outcome, state) == ("finished", "on")
    if "memory_stat" in files:
        assert "control group not available" in detail
        assert "cannot be read" in log
    if "memory_max" in files:
        assert "no memory limit is watched" in log
        assert "memory.max" in log


def test_a_recording_without_access_to_its_groups_goes_on(monkeypatch, tmp_path):
    def denied():
        raise PermissionError(13, "Permission denied", "/proc/self/cgroup")

    for module in (ledger, limit_watch):
        monkeypatch.setattr(module, "own_group", denied)
    with record(tmp_path / "run.p87", engine="none"):
        pass
    outcome, state, detail, log = recorded(tmp_path / "run.p87")
    assert (outcome, state) == ("finished", "on")
    assert "control group not available: [Errno 13] Permission denied" in detail
    assert "no memory limit is watched: [Errno 13] Permission denied" in log


def test_children_that_may_not_be_looked_at_leave_the_rest_of_the_ledger(monkeypatch, tmp_path):
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)

    def denied(process, recursive=False):
        raise psutil.AccessDenied(process.pid)

    monkeypatch.setattr(psutil.Process, "children", denied)
    try:
        with record(tmp_path / "run.p87", engine="none"):
            pass
    finally:
        child.communicate(b"\n")
    outcome, state, _, log = recorded(tmp_path / "run.p87")
    assert (outcome, state) == ("finished", "on")
    assert "the memory of child processes cannot be read" in log
    with RecordingReader(tmp_path / "run.p87") as reader:
        assert [row.children for row in reader.ledger()] == [None] * len(reader.ledger())


def test_a_kernel_that_tells_no_uss_leaves_the_rest_of_the_process(monkeypatch, tmp_path):
    monkeypatch.setattr(psutil.Process, "memory_full_info", psutil.Process.memory_info)
    with record(tmp_path / "run.p87", engine="none"):
        pass
    with RecordingReader(tmp_path / "run.p87") as reader:
        samples = reader.process()
        assert [probe.state for probe in reader.probes() if probe.name == "process"] == ["on"]
    assert samples[-1].rss > 0
    assert {sample.uss for sample in samples} == {None}


def test_a_python_that_cannot_load_libraries_has_no_malloc_to_ask(monkeypatch):
    def fails(_name):
        raise OSError("dynamic loading is not supported")

    monkeypatch.setattr(ctypes, "PyDLL", fails)
    monkeypatch.setattr(ctypes, "CDLL", fails)
    for ask in (malloc_reader, malloc_trimmer):
        with pytest.raises(MallocMissingError, match="dynamic loading is not supported"):
            ask()


IN_MANY_GROUPS = """
import os, sys
os.setgroups(range(1_000_000_000, 1_000_000_000 + 800))  # a line of 8,800 characters
from diagnostics import record
with record(sys.argv[1], engine="none"):
    pass
"""


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0 or not Path("/proc/self/status").exists(),
    reason="only root may join groups",
)
def test_a_user_in_hundreds_of_groups_has_a_ledger(tmp_path):
    path = tmp_path / "run.p87"
    code = textwrap.dedent(IN_MANY_GROUPS)
    subprocess.run([sys.executable, "-c", code, path], check=True, timeout=60)
    assert recorded(path)[1] == "on"
    with RecordingReader(path) as reader:
        assert all(row.rss > 0 for row in reader.ledger())
        assert len(reader.ledger()) >= 2
