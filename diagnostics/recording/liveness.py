"""Who writes a recording, and whether that process is still there.

A process id alone is not an identity: ids are reused, and mean something else after a reboot or
in another container. The start time of the process, the boot and the namespace complete it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_PROC = Path("/proc")
_LARGEST_PID = (1 << 31) - 1


def writer_identity() -> dict[str, Any]:
    """This process, in a form that ``writer_is_alive`` can judge later, elsewhere."""
    pid = os.getpid()
    return {
        "pid": pid,
        "start": _start_time(pid),
        "boot": _boot_id(),
        "namespace": _pid_namespace(),
    }


def writer_is_alive(identity: Mapping[str, Any]) -> bool | None:
    """True or False where this machine can tell, None where it cannot (another machine)."""
    if identity.get("boot") != _boot_id() or identity.get("namespace") != _pid_namespace():
        return None
    pid, start = identity.get("pid"), identity.get("start")
    if not isinstance(pid, int) or not 0 < pid <= _LARGEST_PID:
        return None
    if start is not None:
        return bool(_start_time(pid) == start)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _start_time(pid: int) -> int | None:
    """Clock ticks since boot at which ``pid`` started; None if gone, a zombie, or no procfs."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    # The command name may hold spaces and brackets, so fields are counted from its last bracket.
    fields = stat.rpartition(")")[2].split()
    state, start = fields[0], fields[19]
    return None if state in "ZX" else int(start)


def _boot_id() -> str | None:
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None


def _pid_namespace() -> str | None:
    try:
        return os.readlink(_PROC / "self/ns/pid")  # noqa: PTH115 - a link to no path
    except OSError:
        return None
