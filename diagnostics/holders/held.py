"""The one container in which a capture keeps objects of the program, and their blocks of memory."""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import Any, Self

from diagnostics.probes.safe import flags, is_immutable, mro, namespace


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


_HAS_GC = 1 << 14
_PRE_HEADER = 1 << 4 | 1 << 3  # a managed __dict__, a managed weak reference list (from 3.12 on)
_GC_HEADER_BYTES = 16
_PRE_HEADER_BYTES = 16

HEADERS = (_GC_HEADER_BYTES, _GC_HEADER_BYTES + _PRE_HEADER_BYTES)
"""What may stand between a block's address and the object that the collector tracks in it."""


def block_of(item: Any) -> int:
    """The address of the memory block that an object lies in: its id less its hidden header."""
    bits = flags(type(item))
    if not bits & _HAS_GC:
        return id(item)
    before = _PRE_HEADER_BYTES if bits & _PRE_HEADER else 0
    return id(item) - _GC_HEADER_BYTES - before


def shallow_size(item: Any) -> int:
    """Bytes of the object's own block and buffers, as far as its type tells without running code.

    Only what is written in C is asked; a type that computes its size in Python has that of its
    base. 0 for an object whose metaclass leaves even ``object`` out of its classes.
    """
    for kind in mro(type(item)):
        size_of = namespace(kind).get("__sizeof__")
        if is_immutable(kind) and type(size_of) is types.MethodDescriptorType:
            return int(size_of(item)) + id(item) - block_of(item)
    return 0
