"""The one container in which a capture keeps objects of the program."""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import Any, Self


class Held(dict[int, Any]):
    """Objects of the program by their ``id()``.

    While a capture looks for references it holds some itself. It holds them here and nowhere else,
    so that this type is all it has to pass over; everything else it keeps are numbers and names.
    """

    __slots__ = ()

    @classmethod
    def of(cls, objects: Iterable[Any]) -> Self:
        held = cls()
        for item in objects:
            held[id(item)] = item
        return held


# The descriptors themselves, since a metaclass may have its own idea of these attributes.
_module = type.__dict__["__module__"].__get__
_qualname = type.__dict__["__qualname__"].__get__
_flags = type.__dict__["__flags__"].__get__
_mro = type.__dict__["__mro__"].__get__

_HAS_GC = 1 << 14
_PRE_HEADER = 1 << 4 | 1 << 3  # a managed __dict__, a managed weak reference list (from 3.12 on)
_GC_HEADER_BYTES = 16
_PRE_HEADER_BYTES = 16

HEADERS = (_GC_HEADER_BYTES, _GC_HEADER_BYTES + _PRE_HEADER_BYTES)
"""What may stand between a block's address and the object that the collector tracks in it."""


def module_of(kind: type) -> object:
    """The name of the module that a type says it is from; seldom something else than a text."""
    return _module(kind)


def type_name(kind: type) -> str:
    """``module.qualname`` of a type, as the recording's series of types has it."""
    module = _module(kind)
    return f"{module}.{_qualname(kind)}" if isinstance(module, str) else str(_qualname(kind))


def mro(kind: type) -> tuple[type, ...]:
    """The classes that a type inherits from, itself first."""
    found: tuple[type, ...] = _mro(kind)
    return found


def block_of(item: Any) -> int:
    """The address of the memory block that an object lies in: its id less its hidden header."""
    flags = _flags(type(item))
    if not flags & _HAS_GC:
        return id(item)
    before = _PRE_HEADER_BYTES if flags & _PRE_HEADER else 0
    return id(item) - _GC_HEADER_BYTES - before


def shallow_size(item: Any) -> int:
    """Bytes of the object's own block and buffers, as far as its type tells without running code.

    A type that computes its size in Python is not asked.
    """
    for kind in mro(type(item)):
        size_of = kind.__dict__.get("__sizeof__")
        if isinstance(size_of, types.MethodDescriptorType):
            return int(size_of(item)) + id(item) - block_of(item)
    return 0
