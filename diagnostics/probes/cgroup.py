"""The control group that this process's memory is charged to, in either version of the kernel's
interface."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import NamedTuple

_UNLIMITED = 1 << 62
"""Version 1 writes "no limit" as the largest whole number of pages, just below 2 to the 63."""

_OCTAL = re.compile(r"\\([0-7]{3})")


class GroupMemory(NamedTuple):
    """Bytes charged to a group and all groups below it.

    ``cache`` is the page cache, files in ``/dev/shm`` and other shared memory included.
    """

    anonymous: int
    cache: int


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """A limit that is in force: the lowest of the process's own group and those above it."""

    bytes: int
    version: int
    folder: Path

    def used(self) -> int:
        """Bytes that count and that the kernel cannot simply drop: the page cache is left out.

        Raises ``OSError`` once the group is gone.
        """
        stat = _stat(self.folder)
        if self.version == 1:
            usage = int((self.folder / "memory.usage_in_bytes").read_text())
            return usage - stat["total_inactive_file"] - stat["total_active_file"]
        usage = int((self.folder / "memory.current").read_text())
        return usage - stat["inactive_file"] - stat["active_file"]


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """A group that accounts for memory. ``name`` is its path as the kernel tells it."""

    name: str
    version: int
    folder: Path

    def read(self) -> GroupMemory:
        """What is charged to it now. Raises ``OSError`` once the group is gone."""
        stat = _stat(self.folder)
        if self.version == 1:
            return GroupMemory(stat["total_rss"], stat["total_cache"])
        return GroupMemory(stat["anon"], stat["file"])

    def limit(self) -> MemoryLimit | None:
        """The limit that this group's memory meets first, None where there is none."""
        limits = []
        folder = self.folder
        while (folder / "memory.stat").is_file():
            bytes_ = _limit_of(folder, self.version)
            if bytes_ is not None:
                limits.append(MemoryLimit(bytes_, self.version, folder))
            folder = folder.parent
        return min(limits, key=lambda limit: limit.bytes, default=None)


def _stat(folder: Path) -> dict[str, int]:
    text = (folder / "memory.stat").read_text()
    return {key: int(value) for key, value in map(str.split, text.splitlines())}


def _limit_of(folder: Path, version: int) -> int | None:
    file = folder / ("memory.limit_in_bytes" if version == 1 else "memory.max")
    if not file.is_file():  # version 2: the root group has none
        return None
    text = file.read_text().strip()
    limit = _UNLIMITED if text == "max" else int(text)
    return limit if limit < _UNLIMITED else None


class _Mount(NamedTuple):
    root: str
    point: str
    kind: str
    options: list[str]


def own_group(root: Path = Path("/")) -> ControlGroup | None:
    """The group of this process, None where it has none of its own.

    The machine's root group is nobody's own: it counts every process. ``root`` is where ``/proc``
    and ``/sys`` are.
    """
    try:
        memberships = (root / "proc/self/cgroup").read_text().splitlines()
        mounts = list(_mounts((root / "proc/self/mountinfo").read_text()))
    except OSError:
        return None
    for line in sorted(memberships, key=lambda line: line.startswith("0::")):  # version 1 first
        _, controllers, name = line.split(":", 2)
        if "memory" in controllers.split(","):
            version = 1
        elif not controllers:
            version = 2
        else:
            continue
        for mount in mounts:
            if _carries_memory(mount, version):
                found = _accounting(root, mount, name, version)
                if found is not None:
                    return found
    return None


def _mounts(mountinfo: str) -> Iterator[_Mount]:
    """The mounts of ``/proc/self/mountinfo``, see proc_pid_mountinfo(5)."""
    for line in mountinfo.splitlines():
        place, _, source = line.partition(" - ")
        *_, mount_root, point, _options = place.split(" ")[:6]
        kind, _device, options = source.split(" ", 2)
        yield _Mount(_plain(mount_root), _plain(point), kind, options.split(","))


def _plain(path: str) -> str:
    """Undo the escapes of blanks and the like: ``\\040``."""
    return _OCTAL.sub(lambda found: chr(int(found[1], 8)), path)


def _carries_memory(mount: _Mount, version: int) -> bool:
    if version == 1:
        return mount.kind == "cgroup" and "memory" in mount.options
    return mount.kind == "cgroup2"


def _accounting(root: Path, mount: _Mount, name: str, version: int) -> ControlGroup | None:
    """The nearest group from ``name`` up that accounts for memory, in what is mounted."""
    top = root / mount.point.lstrip("/")
    try:
        below = PurePosixPath(name).relative_to(mount.root)
    except ValueError:  # a container sees its own group mounted, whatever the host calls it
        below = PurePosixPath()
    for inner in (below, *below.parents):
        folder = top / inner
        if (folder / "memory.stat").is_file() and _is_own(folder, version):
            return ControlGroup(str(PurePosixPath("/") / inner), version, folder)
    return None


def _is_own(folder: Path, version: int) -> bool:
    """Whether this is another group than the machine's root."""
    if version == 2:
        return (folder / "memory.current").is_file()  # the root group lacks it
    if (folder.parent / "memory.stat").is_file():
        return True
    # What is mounted may be a container's own group: then it has a limit.
    return int((folder / "memory.limit_in_bytes").read_text()) < _UNLIMITED
