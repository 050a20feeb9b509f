"""Which files are the workbench's own, so that what it allocates is not counted as the run's."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent
_STANDARD_LIBRARY = str(Path(os.__file__).parent) + os.sep
_INSTALLED = re.compile(r"[/\\](?:site|dist)-packages[/\\]([^/\\]+)")

# units.py is not ours in this sense: what an iterator written in C allocates, while units() waits
# for its next item, is booked on the line there that asks.
# thread_family.py stands between a thread of the run and the code that it runs.
_THE_RUNS = (
    str(_PACKAGE / "loaders") + os.sep,
    str(_PACKAGE / "units.py"),
    str(_PACKAGE / "probes" / "thread_family.py"),
)
_OURS = (
    str(_PACKAGE) + os.sep,
    _STANDARD_LIBRARY + "tracemalloc.py",
    _STANDARD_LIBRARY + "sqlite3" + os.sep,
)
_OUR_TOOLS = frozenset({"psutil", "memory_profiler.py"})
_OUR_SERVER = frozenset(
    {"streamlit", "starlette", "uvicorn", "anyio", "tornado", "watchdog", "websockets"}
)


def is_hosted() -> bool:
    """Whether a Streamlit server runs in this process: then the server is the workbench's.

    In a service that somebody records, the same libraries belong to the run.
    """
    return "streamlit.runtime" in sys.modules


@lru_cache(maxsize=4096)
def is_own_file(path: str, hosted: bool) -> bool:
    """Whether ``path``, as a code object names it, belongs to the workbench."""
    if path.startswith(_OURS):
        return not path.startswith(_THE_RUNS)
    installed = _INSTALLED.search(path)
    if installed is not None:
        name = installed[1]
        return name in _OUR_TOOLS or (hosted and name in _OUR_SERVER)
    return path.startswith(_app_files())


@lru_cache(maxsize=4096)
def is_own_frame(path: str, hosted: bool) -> bool | None:
    """Whether the workbench allocated what a frame in this file did; None where its caller decides.

    The nearest frame outside the standard library decides: a loader runs below our launcher and
    our unit marks, and we call the standard library like everybody else.
    """
    if is_own_file(path, hosted):
        return True
    return None if is_standard_library(path) else False


def is_own_stack(stack: Sequence[tuple[str, int]], hosted: bool) -> bool:
    """Whether the workbench allocated what has this stack (most recent frame first)."""
    for path, _line in stack:
        own = is_own_frame(path, hosted)
        if own is not None:
            return own
    return False


@lru_cache(maxsize=4096)
def is_standard_library(path: str) -> bool:
    """Whether ``path`` is a module of Python itself, or code made at run time.

    The latter ("<string>": the methods of a named tuple, say) belongs to whoever calls it, as a
    standard function does.
    """
    if path.startswith("<"):
        return True
    return path.startswith(_STANDARD_LIBRARY) and _INSTALLED.search(path) is None


def is_own_module(name: str) -> bool:
    """Whether the module of that name is the workbench's. A built-in loader is the run's."""
    return name.startswith(f"{_PACKAGE.name}.") and not name.startswith(f"{_PACKAGE.name}.loaders.")


@lru_cache(maxsize=1)
def _app_files() -> tuple[str, ...]:
    """The app beside the package, in a checkout; beside an installed package lie other people's."""
    root = _PACKAGE.parent
    if not (root / "pyproject.toml").exists():
        return ()
    return (str(root / "app.py"), str(root / "pages") + os.sep)
