"""What of a process is the workbench's own: it observes the run, and is no holder of what it reads.

All of the package observes, but for the loaders: a built-in loader stands in for people's own code
where it runs. Some functions that observe have the program's objects in hand: the launcher the
document and the result of a run, ``units()`` the pages of a loop. Where nobody else has these, a
chain begins there, with one name for each: ``RUN`` and ``UNITS``.
"""

from __future__ import annotations

import os
import types
from functools import lru_cache
from pathlib import Path
from typing import Any

from diagnostics.holders.frames import frame_of, place_in
from diagnostics.probes.safe import module_of, mro, namespace, type_name

RUN = "page87 run"
"""What a chain calls the launcher's functions."""
UNITS = "units()"
"""What it calls the loop around somebody's pages."""

_NAME = __name__.partition(".")[0]
_FOLDER = Path(__file__).resolve().parent.parent
_LOADERS = "loaders"
_UNITS_FILE = str(_FOLDER / "units.py")
_LAUNCHER_FILES = f"{_FOLDER / 'launch'}{os.sep}"
_LOADER_FILES = f"{_FOLDER / _LOADERS}{os.sep}"
_BESIDE_LOADERS = (f"{_LOADER_FILES}base.py", f"{_LOADER_FILES}callables.py")
"""They stand between a run and the code that reads a document."""


def is_our_name(name: str) -> bool:
    """Whether a module, or a type by its full name, is one of those that observe."""
    package, _, rest = name.partition(".")
    return package == _NAME and rest.partition(".")[0] != _LOADERS


@lru_cache(maxsize=4096)
def is_our_file(path: str) -> bool:
    """Whether a code object with this file belongs to what observes."""
    inside = path.startswith(f"{_FOLDER}{os.sep}")
    return inside and (path in _BESIDE_LOADERS or not is_loader_file(path))


def is_launcher_file(path: str) -> bool:
    """Whether a code object with this file belongs to the launcher."""
    return path.startswith(_LAUNCHER_FILES)


def is_loader_file(path: str) -> bool:
    """Whether a code object with this file belongs to the loaders."""
    return path.startswith(_LOADER_FILES)


def name_in_chains(path: str) -> str:
    """What a chain calls a function of ours that has objects of the program in hand, by the file of
    its code object; empty for those that have none."""
    if path == _UNITS_FILE:
        return UNITS
    return RUN if is_launcher_file(path) or path in _BESIDE_LOADERS else ""


def is_our_module(name: str, module: types.ModuleType) -> bool:
    """Whether a module observes; one of ours that is run by ``python -m`` has another name."""
    file = module.__dict__.get("__file__")
    return is_our_name(name) or (type(file) is str and is_our_file(file))


def is_our_type(kind: type) -> bool:
    """Whether instances of a type observe."""
    return is_our_name(type_name(kind))


def is_our_frame(item: Any) -> bool:
    """Whether an object is a function of ours that runs or waits, as ``units()`` in a loop does."""
    frame = item if type(item) is types.FrameType else frame_of(item)
    return frame is not None and is_our_file(place_in(frame)[1])


def is_open_document(kind: type) -> bool:
    """Whether instances of a type are documents that a loader of the package has opened."""
    bases = mro(kind)
    return any(module_of(base).startswith(f"{_NAME}.{_LOADERS}.") for base in bases) and all(
        any(name in namespace(base) for base in bases) for name in ("pages", "__exit__")
    )
