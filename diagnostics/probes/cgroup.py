"""The control group that this process's memory is charged to, in either version of the kernel's
interface.

Whatever is odd about a group's files (empty, not a number, a value missing) is an ``OSError`` that
says so: to whoever reads them it is the same as a file that cannot be read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import NamedTuple

_UNLIMITED = 1 << 62
"""Version 1 writes "no limit" as the largest whole number of pages, just below 2 to the 63."""

_BEFORE, _AFTER = 6, 3
"""The fields before the dash of a mount's line, the optional ones left out, and after it."""

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
        if self.version == 1:
            usage, prefix = "memory.usage_in_bytes", "total_"
        else:
            usage, prefix = "memory.current", ""
        inactive, active = _stat(self.folder, f"{prefix}inactive_file", f"{prefix}active_file")
        return _number(self.folder / usage) - inactive - active


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """A group that accounts for memory. ``name`` is its path as the kernel tells it."""

    name: str
    version: int
    folder: Path

    def read(self) -> GroupMemory:
        """What is charged to it now. Raises ``OSError`` once the group is gone."""
        names = ("total_rss", "total_cache") if self.version == 1 else ("anon", "file")
        return GroupMemory(*_stat(self.folder, *names))

    def limit(self) -> MemoryLimit | None:
        """The limit that this group's memory meets first, None where there is none.

        Raises ``OSError`` where one cannot be read.
        """
        limits = []
        for folder in (self.folder, *self.folder.parents):
            if not (folder / "memory.stat").is_file():
                break
            bytes_ = _limit_of(folder, self.version)
            if bytes_ is not None:
                limits.append(MemoryLimit(bytes_, self.version, folder))
        return min(limits, key=lambda limit: limit.bytes, default=None)


def _text(file: Path) -> str:
    """What the kernel says. Names in it are bytes, and need not be UTF-8."""
    return os.fsdecode(file.read_bytes())


def _number(file: Path) -> int:
    text = _text(file).strip()
    try:
        return int(text)
    except ValueError:
        raise OSError(f"{file} says {text!r}, which is no number") from None


def _stat(folder: Path, *names: str) -> list[int]:
    """Values of the group's ``memory.stat``, in the order of ``names``."""
    file = folder / "memory.stat"
    values = dict(line.partition(" ")[::2] for line in _text(file).splitlines())
    try:
        return [int(values[name]) for name in names]
    except (KeyError, ValueError):
        raise OSError(f"{file} has no number for {' or '.join(names)}") from None


def _limit_of(folder: Path, version: int) -> int | None:
    file = folder / ("memory.limit_in_bytes" if version == 1 else "memory.max")
    if not file.is_file():  # version 2: the root group has none
        return None
    if _text(file).strip() == "max":
        return None
    limit = _number(file)
    # Nothing runs within no bytes at all: what is not above 0 is no limit but an odd file.
    return limit if 0 < limit < _UNLIMITED else None


class _Mount(NamedTuple):
    root: str
    point: str
    kind: str
    options: list[str]


def own_group(root: Path = Path("/")) -> ControlGroup | None:
    """The group of this process, None where it has none of its own.

    The machine's root group is nobody's own: it counts every process. ``root`` is where ``/proc``
    and ``/sys`` are. Raises ``OSError`` where the group's files cannot be read.
    """
    try:
        memberships = _text(root / "proc/self/cgroup").split("\n")
        mounts = list(_mounts(_text(root / "proc/self/mountinfo")))
    except FileNotFoundError:  # another system than Linux
        return None
    for line in sorted(memberships, key=lambda line: line.startswith("0::")):  # version 1 first
        _, controllers, name = [*line.split(":", 2), "", ""][:3]
        if not name:
            continue
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
    for line in mountinfo.split("\n"):  # a name may hold what else ends a line of text
        place, _, source = line.partition(" - ")
        before, after = place.split(" "), source.split(" ", 2)
        if len(before) >= _BEFORE and len(after) == _AFTER:
            kind, _device, options = after
            yield _Mount(_plain(before[3]), _plain(before[4]), kind, options.split(","))


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
    if ".." in below.parts:  # a group beside or above all that is mounted here
        return None
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
    return _limit_of(folder, version) is not None
