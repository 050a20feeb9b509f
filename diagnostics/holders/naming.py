"""How one object refers to another, in the words of the program's code.

No code of the program runs for it: no property, no ``__getattr__``, no ``repr``; and no instance
gets a ``__dict__`` that it did not have.
"""

from __future__ import annotations

import functools
import operator
import sys
import types
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from diagnostics.holders.frames import frame_of, local_ids
from diagnostics.holders.held import mro
from diagnostics.holders.program import ProgramNames

_LARGEST_INDEX = 999_999
"""A dict's whole-number key up to here is taken for an index or a page's number, and is shown."""
_KEYS_TRIED = 8

_ORDERED = (list, tuple, deque)
_UNORDERED = (set, frozenset)

# Attributes that types of the interpreter read from their own struct, without running code.
_COMPUTED: tuple[tuple[type, tuple[str, ...]], ...] = (
    (BaseException, ("__traceback__", "__context__", "__cause__", "args")),
    (types.TracebackType, ("tb_frame", "tb_next")),
    (types.CellType, ("cell_contents",)),
    (types.FunctionType, ("__defaults__", "__kwdefaults__")),
    (types.GeneratorType, ("gi_yieldfrom",)),
    (types.CoroutineType, ("cr_await",)),
    (types.AsyncGeneratorType, ("ag_await",)),
)
_OF_FUTURES = ("_result", "_exception", "_coro")


class Namer:
    """Finds the labels of references. For one capture; it reads the program's names once."""

    def __init__(self) -> None:
        self._names = ProgramNames()
        self._likely_names: dict[type, list[str]] = {}

    def label(self, holder: Any, held: Any, *, thorough: bool = True) -> str:
        """``.pages``, ``[12]``, ``['key']``, a local's name; empty where it cannot be told.

        Where an attribute is not named in the code of its own class, a ``thorough`` search tries
        every name of the program, which takes some milliseconds.
        """
        kind = type(holder)
        found = ""
        if issubclass(kind, dict):
            found = self._key(holder, held)
        elif issubclass(kind, _ORDERED):
            found = _index(holder, held)
        elif issubclass(kind, _UNORDERED) and any(entry is held for entry in list(holder)):
            found = "{…}"
        return found or _local(holder, held) or self._attribute(holder, held, thorough)

    def is_namespace(self, holder: Any, names: Any) -> bool:
        """Whether ``names`` is the dict of the attributes of ``holder``, an instance or a class."""
        if type(names) is not dict or issubclass(type(holder), (*_ORDERED, *_UNORDERED, dict)):
            return False
        if issubclass(type(holder), type):
            return "__module__" in names
        if not names or type(holder).__dictoffset__ == 0:
            return False
        keys = list(names)
        # An entry of the same name as a descriptor of the class is a cached property's, if this is
        # the namespace; to read it would run code if it is not. So the others are compared.
        plain = [key for key in keys if type(key) is not str or not _is_computed(holder, key)]
        return all(
            type(key) is str and _read(holder, key) is names.get(key) for key in plain[:_KEYS_TRIED]
        )

    def attribute_in(self, names: dict[Any, Any], held: Any) -> str:
        """``.name`` of what a namespace refers to; empty where it is not a value there."""
        for key, value in list(names.items()):
            if value is held and type(key) is str:
                return f".{key}"
        return ""

    def _key(self, holder: dict[Any, Any], held: Any) -> str:
        try:
            for key, value in dict.items(holder):
                if value is held:
                    return self._key_in_words(key)
                if key is held:
                    return "a key"
        except RuntimeError:  # another thread changed it meanwhile
            return ""
        return ""

    def _key_in_words(self, key: object) -> str:
        if type(key) is int and 0 <= key <= _LARGEST_INDEX:
            return f"[{key}]"
        if key in self._names:
            return f"['{key}']"
        return f"[{type(key).__name__}]"

    def _attribute(self, holder: Any, held: Any, thorough: bool) -> str:
        for name, value in _struct_attributes(holder):
            if value is held:
                return f".{name}"
        if type(holder).__dictoffset__ == 0:
            return ""
        for name in self._likely(type(holder)):
            if not _is_computed(holder, name) and _read(holder, name) is held:
                return f".{name}"
        if _has_cached_property(type(holder)):
            # One that was read has made the dict already; only since 3.13 the instance refers to
            # the value itself, not to that dict.
            names = object.__getattribute__(holder, "__dict__")
            if found := self.attribute_in(names, held):
                return found
        if thorough:
            for name in self._names:
                if not _is_computed(holder, name) and _read(holder, name) is held:
                    return f".{name}"
        return ""

    def _likely(self, kind: type) -> list[str]:
        """The names that the code of a class and of its bases uses."""
        if kind not in self._likely_names:
            names: dict[str, None] = {}
            for base in mro(kind):
                for code in _codes(base):
                    names.update(dict.fromkeys(code.co_names))
                # get_annotations would make the dict where there is none.
                annotations = base.__dict__.get("__annotations__")  # noqa: RUF063
                if type(annotations) is dict:
                    names.update(dict.fromkeys(annotations))
            self._likely_names[kind] = list(names)
        return self._likely_names[kind]


def alike(holder: Any, held: Any) -> int:
    """How many objects of this type stand in the same container; 1 where it is none."""
    kind = type(holder)
    parts: Iterable[Any]
    if issubclass(kind, dict):
        parts = dict.values(holder)
    elif issubclass(kind, (*_ORDERED, *_UNORDERED)):
        parts = holder
    else:
        return 1
    return max(1, operator.countOf(map(type, parts), type(held)))


def _index(holder: Any, held: Any) -> str:
    try:
        for place, entry in enumerate(holder):
            if entry is held:
                return f"[{place}]"
    except RuntimeError:  # another thread changed it meanwhile
        return ""
    return ""


def _local(holder: Any, held: Any) -> str:
    frame = holder if type(holder) is types.FrameType else frame_of(holder)
    if frame is None:
        return ""
    return next((name for name, key in local_ids(frame).items() if key == id(held)), "")


def _struct_attributes(holder: Any) -> Iterator[tuple[str, Any]]:
    """Slots, and the members that types written in C tell; none of it runs code."""
    kind = type(holder)
    for base in mro(kind):
        for name, entry in list(base.__dict__.items()):
            if type(entry) is types.MemberDescriptorType:
                try:
                    yield name, entry.__get__(holder, kind)
                except AttributeError:  # a slot that is empty
                    continue
    for base, names in _COMPUTED:
        if issubclass(kind, base):
            for name in names:
                yield name, base.__dict__[name].__get__(holder, kind)
    asyncio = sys.modules.get("asyncio")
    if asyncio is not None and issubclass(kind, asyncio.Future):
        for name in _OF_FUTURES:
            for base in mro(kind):
                entry = base.__dict__.get(name)
                if type(entry) is types.GetSetDescriptorType:
                    yield name, entry.__get__(holder, kind)


def _codes(kind: type) -> Iterator[types.CodeType]:
    for entry in list(kind.__dict__.values()):
        for function in (entry, getattr(entry, "fget", None), getattr(entry, "__func__", None)):
            if type(function) is types.FunctionType:
                yield function.__code__


def _is_computed(holder: Any, name: str) -> bool:
    """Whether reading an attribute could run a descriptor's code."""
    for base in mro(type(holder)):
        if name in base.__dict__:
            return hasattr(type(base.__dict__[name]), "__get__")
    return False


def _has_cached_property(kind: type) -> bool:
    return any(
        type(entry) is functools.cached_property
        for base in mro(kind)
        for entry in list(base.__dict__.values())
    )


def _read(holder: Any, name: str) -> Any:
    """An instance's own attribute; None where it has none. Never makes a ``__dict__``."""
    try:
        return object.__getattribute__(holder, name)
    except AttributeError:
        return None
