"""What keeps objects without being kept itself: modules, running functions, threads, tasks."""

from __future__ import annotations

import os
import sys
import threading
import types
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diagnostics.holders.frames import frame_of, has_own_namespace, local_ids, running_frames
from diagnostics.holders.held import module_of, type_name
from diagnostics.recording.model import RootKind

_PACKAGE = Path(__file__).resolve().parent.parent
OBSERVERS = (
    "diagnostics.holders",
    "diagnostics.probes",
    "diagnostics.recording",
    "diagnostics.recorder",
)
_OBSERVER_FILES = (
    str(_PACKAGE / "capture") + os.sep,
    str(_PACKAGE / "probes") + os.sep,
    str(_PACKAGE / "recording") + os.sep,
    str(_PACKAGE / "recorder.py"),
)


@dataclass(frozen=True, slots=True)
class Root:
    """Why a chain's first object lives.

    ``label`` is how a root that is no object of the graph (a running function, the exception
    handling) refers to that first object; None where the first object is the root itself.
    """

    kind: RootKind
    type: str
    name: str
    file: str = ""
    line: int = 0
    label: str | None = None


class Roots:
    """The roots of the process at one moment. It keeps ids and names, no object.

    What observes the program is no root of it: our own threads, frames and modules.
    """

    def __init__(self, is_own_thread: Callable[[int], bool]) -> None:
        self._roots: dict[int, Root] = {}
        self._observers: set[int] = set()
        self._observers_types: dict[int, bool] = {}
        # What comes later replaces what came before: a thread is a better answer than the name
        # that its own function has for it.
        self._survey_handled(is_own_thread)
        for thread in list(sys._current_frames()):
            if not is_own_thread(thread):
                self._survey_frames(thread)
        self._survey_threads(is_own_thread)
        self._survey_modules()

    def of(self, item: Any) -> Root | None:
        """The root that an object is, or that refers to it from outside the graph."""
        kind = type(item)
        if issubclass(kind, type):
            return Root("class", type_name(kind), type_name(item), _file_of(module_of(item)))
        return _pending_task(item) or self._roots.get(id(item))

    def without_holder(self, item: Any) -> Root:
        """The root of an object that no object in the graph refers to."""
        frame = frame_of(item)
        if frame is not None:
            # What iterates a suspended generator has it on its evaluation stack, where nobody can
            # look; but it is there, and the generator's function is half way through.
            code = frame.f_code
            return Root(
                "frame", type_name(type(item)), code.co_qualname, code.co_filename, frame.f_lineno
            )
        if type(item) is dict and any(map(_is_thread_local, list(item))):
            return Root("thread", type_name(dict), "threading.local()")
        return Root("unknown", "", "", label="")

    def is_observer(self, item: Any) -> bool:
        """Whether an object belongs to what observes the program."""
        kind = type(item)
        known = self._observers_types.get(id(kind))
        if known is None:
            known = type_name(kind).startswith(OBSERVERS)
            self._observers_types[id(kind)] = known
        return known or id(item) in self._observers

    def _survey_modules(self) -> None:
        for name, module in list(sys.modules.items()):
            if type(module) is not types.ModuleType:
                continue
            names = module.__dict__
            if name.startswith(OBSERVERS):
                self._observers |= {id(module), id(names)}
                continue
            root = Root("module", type_name(types.ModuleType), name, _file_of(name))
            for key in (id(module), id(names)):
                self._roots.setdefault(key, root)  # its first name, where it has several

    def _survey_frames(self, thread: int) -> None:
        callee_locals: Collection[int] = ()
        for frame in running_frames(thread):
            code = frame.f_code
            namespace = frame.f_locals if has_own_namespace(frame) else frame.f_globals
            if code.co_filename.startswith(_OBSERVER_FILES):
                callee_locals = ()
                continue
            name = namespace.get("__name__")
            module = name if isinstance(name, str) else code.co_name
            self._roots[id(namespace)] = Root("module", "module", module, code.co_filename)
            if has_own_namespace(frame):
                callee_locals = ()
                continue
            names = local_ids(frame, callee_locals)
            for local, key in names.items():
                self._roots[key] = Root(
                    "frame", "frame", code.co_qualname, code.co_filename, frame.f_lineno, local
                )
            callee_locals = set(names.values())

    def _survey_handled(self, is_own_thread: Callable[[int], bool]) -> None:
        for thread, handled in sys._current_exceptions().items():
            # 3.11 gives what sys.exc_info() gives, later versions the exception alone.
            error = handled[1] if isinstance(handled, tuple) else handled
            if error is not None and not is_own_thread(thread):
                name = type_name(type(error))
                self._roots[id(error)] = Root("exception", name, "")

    def _survey_threads(self, is_own_thread: Callable[[int], bool]) -> None:
        for thread in threading.enumerate():
            ident = thread.ident
            if ident is not None and not is_own_thread(ident):
                self._roots[id(thread)] = Root("thread", type_name(type(thread)), thread.name)


def _pending_task(item: Any) -> Root | None:
    """The root that a task is while it is not done: the event loop will go on with it."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None or not issubclass(type(item), asyncio.Task):
        return None
    if asyncio.Task.done(item):
        return None
    coroutine = asyncio.Task.get_coro(item)
    frame = frame_of(coroutine)
    if frame is None:
        return Root("task", type_name(type(item)), "")
    code = frame.f_code
    return Root("task", type_name(type(item)), code.co_qualname, code.co_filename, frame.f_lineno)


def _is_thread_local(key: object) -> bool:
    return type(key) is str and key.startswith("thread.local.")


def _file_of(name: object) -> str:
    """The file of a module by its name; empty where it has none."""
    module = sys.modules.get(name) if isinstance(name, str) else None
    # Not through attributes: a module may compute them.
    file = module.__dict__.get("__file__") if type(module) is types.ModuleType else None
    return file if isinstance(file, str) else ""
