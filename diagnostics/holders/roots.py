"""What keeps objects without being kept itself: modules, running functions, threads, tasks."""

from __future__ import annotations

import sys
import threading
import types
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from diagnostics.holders import ours
from diagnostics.holders.attributes import own_attribute
from diagnostics.holders.frames import (
    frame_of,
    has_own_namespace,
    local_ids,
    namespace_of,
    place_in,
    running_frames,
)
from diagnostics.probes.safe import extension_type, module_of, type_name
from diagnostics.recording.model import RootKind


@dataclass(frozen=True, slots=True)
class Root:
    """Why a chain's first object lives.

    ``label`` is how a root that is no object of the graph (a running function, the exception
    handling) refers to that first object; None where the first object is the root itself. ``weak``
    is a root that is told of where no other is found.
    """

    kind: RootKind
    type: str
    name: str
    file: str = ""
    line: int = 0
    label: str | None = None
    weak: bool = False


_ITERATOR = ".0"
"""What Python calls the local of a generator expression that it iterates."""

UNKNOWN = Root("unknown", "", "", label="", weak=True)


class Roots:
    """The roots of the process at one moment. It keeps ids and names, no object.

    What observes the program is no root of it: our own threads, frames and modules.
    """

    def __init__(self, is_own_thread: Callable[[int], bool]) -> None:
        self._roots: dict[int, Root] = {}
        self._in_hand: dict[int, Root] = {}
        self._observers: set[int] = set()
        self._our_types: dict[int, bool] = {}
        self._documents: dict[int, bool] = {}
        self._is_launched = False
        # The order matters. A caller's name replaces that of the function that it has called, and a
        # thread the name that its own function has for it; modules and the launcher stand only
        # for what has no root yet.
        self._survey_handled(is_own_thread)
        threads = [thread for thread in sys._current_frames() if not is_own_thread(thread)]
        for thread in threads:
            self._survey_frames(thread)
        self._survey_threads(is_own_thread)
        self._survey_modules()
        for thread in threads:
            self._survey_launcher(thread)

    def of(self, item: Any) -> Root | None:
        """The root that an object is, or that refers to it from outside the graph."""
        kind = type(item)
        if issubclass(kind, type):
            return Root("class", type_name(kind), type_name(item), _file_of(module_of(item)))
        root = _pending_task(item) or self._roots.get(id(item))
        if root is None and self._is_launched and self._is_open_document(kind):
            return Root("frame", "frame", ours.RUN, label="document")
        return root

    def without_holder(self, item: Any) -> Root:
        """The root of an object that no object in the graph refers to."""
        frame = frame_of(item)
        if frame is not None:
            # What iterates a suspended generator has it on its evaluation stack, where nobody can
            # look; but it is there, and the generator's function is half way through.
            return Root("frame", type_name(type(item)), *place_in(frame))
        if type(item) is dict and any(map(_is_thread_local, list(item))):
            return Root("thread", type_name(dict), "threading.local()")
        return self._in_hand.get(id(item)) or UNKNOWN

    def note_in_hand(self, holder: Any, held: int) -> None:
        """Say that a function of ours that waits refers to an object, by a local name or without.

        That is the root of what nobody else has: ``units([load(page) for page in pages])``.
        """
        frame = holder if type(holder) is types.FrameType else frame_of(holder)
        if frame is not None and ours.name_in_chains(place_in(frame)[1]):
            self._survey_hands(frame)
            self._in_hand.setdefault(held, _in_hand_of(frame, "", weak=True))

    def is_in_hand(self, key: int) -> bool:
        """Whether a function of ours is known to refer to an object."""
        return key in self._in_hand

    def is_observer(self, item: Any) -> bool:
        """Whether an object belongs to what observes the program."""
        known = _remembered(self._our_types, type(item), ours.is_our_type)
        return known or id(item) in self._observers or ours.is_our_frame(item)

    def _is_open_document(self, kind: type) -> bool:
        return _remembered(self._documents, kind, ours.is_open_document)

    def _survey_modules(self) -> None:
        for name, module in list(dict.items(sys.modules)):
            if type(name) is not str or type(module) is not types.ModuleType:
                continue
            names = module.__dict__
            if ours.is_our_module(name, module):
                self._observers |= {id(module), id(names)}
                continue
            root = Root("module", type_name(types.ModuleType), name, _file_of(name))
            for key in (id(module), id(names)):
                self._roots.setdefault(key, root)  # its first name, where it has several

    def _survey_frames(self, thread: int) -> None:
        callee_locals: Collection[int] = ()
        for frame in running_frames(thread):
            function, file, line = place_in(frame)
            waited_for, callee_locals = callee_locals, ()
            if ours.is_our_file(file):
                if ours.name_in_chains(file):
                    self._survey_hands(frame)
                continue
            names = namespace_of(frame)
            module = _text_in(names, "__name__") or function
            self._roots[id(names)] = Root("module", "module", module, file)
            if not has_own_namespace(frame):
                locals_here = local_ids(frame, waited_for)
                for local, key in locals_here.items():
                    # What a loader itself is called by its own code is the document of the run.
                    if local != "self" or not ours.is_loader_file(file):
                        self._roots[key] = Root("frame", "frame", function, file, line, local)
                callee_locals = frozenset(locals_here.values())

    def _survey_hands(self, frame: types.FrameType) -> None:
        for local, key in local_ids(frame).items():
            self._in_hand.setdefault(key, _in_hand_of(frame, local, weak=True))

    def _survey_launcher(self, thread: int) -> None:
        """The root of a run's document, its result and its error, where they have no other."""
        for frame in running_frames(thread):
            if ours.is_launcher_file(place_in(frame)[1]):
                self._is_launched = True
                for local, key in local_ids(frame).items():
                    self._roots.setdefault(key, _in_hand_of(frame, local))

    def _survey_handled(self, is_own_thread: Callable[[int], bool]) -> None:
        for thread, handled in sys._current_exceptions().items():
            # 3.11 gives what sys.exc_info() gives, later versions the exception alone.
            error = handled[1] if type(handled) is tuple else handled
            if error is not None and not is_own_thread(thread):
                name = type_name(type(error))
                self._roots[id(error)] = Root("exception", name, "")

    def _survey_threads(self, is_own_thread: Callable[[int], bool]) -> None:
        for thread in threading.enumerate():
            ident, name = own_attribute(thread, "_ident"), own_attribute(thread, "_name")
            if type(ident) is int and not is_own_thread(ident):
                label = name if type(name) is str else ""
                self._roots[id(thread)] = Root("thread", type_name(type(thread)), label)


def _in_hand_of(frame: types.FrameType, local: str, *, weak: bool = False) -> Root:
    """The root of what a function of ours has in hand."""
    name = ours.name_in_chains(place_in(frame)[1])
    label = "iterator" if local == _ITERATOR else local
    return Root("frame", "frame", name, label=label, weak=weak)


def _remembered(answers: dict[int, bool], kind: type, ask: Callable[[type], bool]) -> bool:
    """The answer to a question about a type, which is asked once."""
    known = answers.get(id(kind))
    if known is None:
        known = answers[id(kind)] = ask(kind)
    return known


def _pending_task(item: Any) -> Root | None:
    """The root that a task is while it is not done: the event loop will go on with it."""
    task = extension_type("_asyncio", "Task")
    if task is None or not issubclass(type(item), task):
        return None
    if task.done(item):
        return None
    frame = frame_of(task.get_coro(item))
    place = place_in(frame) if frame is not None else ("", "", 0)
    return Root("task", type_name(type(item)), *place)


def _is_thread_local(key: object) -> bool:
    return type(key) is str and key.startswith("thread.local.")


def _text_in(names: dict[str, Any], name: str) -> str:
    """A text that a module's namespace has under this name; empty where there is none."""
    found = dict.get(names, name)
    return found if type(found) is str else ""


def _file_of(name: str) -> str:
    """The file of a module by its name; empty where it has none."""
    module = sys.modules.get(name)
    # Not through attributes: a module may compute them.
    return _text_in(module.__dict__, "__file__") if type(module) is types.ModuleType else ""
