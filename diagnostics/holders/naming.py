"""How one object refers to another, in the words of the program's code.

No code of the program runs for it: no property, no ``__getattr__``, no ``repr``; and no instance
gets a ``__dict__`` that it did not have.
"""

from __future__ import annotations

import gc
import operator
import types
from collections import deque
from collections.abc import Iterable
from typing import Any

from diagnostics.holders.attributes import (
    existing_dict,
    has_inline_values,
    names_in_code,
    namespace_id,
    own_attribute,
    struct_attributes,
)
from diagnostics.holders.frames import frame_of, local_ids
from diagnostics.holders.program import ProgramNames
from diagnostics.probes.safe import namespace, short_name

_LARGEST_INDEX = 999_999
"""A dict's whole-number key up to here is taken for an index or a page's number, and is shown."""

_ORDERED = (list, tuple, deque)
_UNORDERED = (set, frozenset)


class Namer:
    """Finds the labels of references. For one capture; it reads the program's names once."""

    def __init__(self) -> None:
        self._names = ProgramNames()
        self._likely_names: dict[int, list[str]] = {}

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
        elif issubclass(kind, _UNORDERED) and id(held) in map(id, _entries(holder)):
            found = "{…}"
        return found or _local(holder, held) or self._attribute(holder, held, thorough)

    def is_namespace(self, holder: Any, names: Any) -> bool:
        """Whether ``names`` is the dict of the attributes of ``holder``, an instance or a class."""
        if not issubclass(type(names), dict):
            return False
        if issubclass(type(holder), type):
            return gc.get_referents(namespace(holder))[0] is names
        return namespace_id(holder) == id(names)

    def attribute_in(self, names: dict[Any, Any], held: Any) -> str:
        """``.name`` of what a namespace refers to; empty where it is not a value there."""
        for key, value in list(dict.items(names)):
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
        return f"[{short_name(type(key))}]"

    def _attribute(self, holder: Any, held: Any, thorough: bool) -> str:
        for name, value in struct_attributes(holder):
            if value is held:
                return f".{name}"
        names = existing_dict(holder)
        if names is not None:
            return self.attribute_in(names, held)
        if has_inline_values(holder):
            for name in self._likely(type(holder)):
                if own_attribute(holder, name) is held:
                    return f".{name}"
            for name in self._names if thorough else ():
                if own_attribute(holder, name) is held:
                    return f".{name}"
        return ""

    def _likely(self, kind: type) -> list[str]:
        """The names that are tried first for the instances of a class."""
        known = self._likely_names.get(id(kind))
        if known is None:
            known = self._likely_names[id(kind)] = names_in_code(kind)
        return known


def alike(holder: Any, held: Any) -> int:
    """How many objects of this type stand in the same container; 1 where it is none."""
    kinds = map(id, map(type, _entries(holder)))
    return max(1, operator.countOf(kinds, id(type(held))))


def _entries(holder: Any) -> Iterable[Any]:
    """What a container has in it (a dict's values), whatever its class says; nothing of others."""
    kind = type(holder)
    if issubclass(kind, dict):
        return dict.values(holder)
    for base in (*_ORDERED, *_UNORDERED):
        if issubclass(kind, base):
            return base.__iter__(holder)
    return ()


def _index(holder: Any, held: Any) -> str:
    # From end to end in C, so that no other thread changes it meanwhile.
    ids = map(id, _entries(holder))
    try:
        return f"[{operator.indexOf(ids, id(held))}]"
    except ValueError:  # it is not there
        return ""


def _local(holder: Any, held: Any) -> str:
    frame = holder if type(holder) is types.FrameType else frame_of(holder)
    if frame is None:
        return ""
    return next((name for name, key in local_ids(frame).items() if key == id(held)), "")
