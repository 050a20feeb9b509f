"""Reads of a program's types and objects that run none of its code.

A metaclass may compute every attribute of its classes, and compare and hash them as it likes; a
class may do so for its instances. So types are read through the descriptors of ``type`` itself, are
compared with ``is``, and stand in a dict or set by their ``id()`` only. ``isinstance`` asks an
object for its ``__class__``: ``issubclass(type(item), some_built_in)`` asks nobody.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Mapping
from typing import Any

_namespace = type.__dict__["__dict__"].__get__
_mro = type.__dict__["__mro__"].__get__
_flags = type.__dict__["__flags__"].__get__
_dictoffset = type.__dict__["__dictoffset__"].__get__
_module = type.__dict__["__module__"].__get__
_name = type.__dict__["__name__"].__get__
_qualname = type.__dict__["__qualname__"].__get__

_IMMUTABLE = 1 << 8
_MANAGED_DICT = 1 << 4


def plain_text(text: str) -> str:
    """The same text as a ``str`` proper: a class derived from it may format and compare itself."""
    return text if type(text) is str else str.__str__(text)


def module_of(kind: type) -> str:
    """The name of the module that a type says it is from; empty where it says something else."""
    module = _module(kind)
    return module if type(module) is str else ""


def short_name(kind: type) -> str:
    """The name of a type."""
    return plain_text(_name(kind))


def type_name(kind: type) -> str:
    """``module.qualname`` of a type, as the recording's series of types has it."""
    module, name = module_of(kind), plain_text(_qualname(kind))
    return f"{module}.{name}" if module else name


def mro(kind: type) -> tuple[type, ...]:
    """The classes that a type inherits from, itself first."""
    found: tuple[type, ...] = _mro(kind)
    return found


def namespace(kind: type) -> Mapping[str, Any]:
    """The names that a class defines itself."""
    found: Mapping[str, Any] = _namespace(kind)
    return found


def flags(kind: type) -> int:
    """The flags of a type, ``Py_TPFLAGS_…``."""
    return int(_flags(kind))


def dict_offset(kind: type) -> int:
    """Where its instances point to their attributes' dict; 0 where they have none."""
    return int(_dictoffset(kind))


def has_managed_dict(kind: type) -> bool:
    """Whether its instances have their attributes' dict, or the values alone, before the object."""
    return flags(kind) & _MANAGED_DICT != 0


def is_immutable(kind: type) -> bool:
    """Whether Python code can change a type: one that it cannot is written in C."""
    return flags(kind) & _IMMUTABLE != 0


def is_descriptor(value: object) -> bool:
    """Whether reading an attribute of this value may run code, as that of a property does."""
    return any("__get__" in namespace(base) for base in mro(type(value)))


def extension_type(module: str, name: str) -> Any:
    """A type of the standard library that is written in C; None where its module is not there."""
    found = sys.modules.get(module)
    kind = found.__dict__.get(name) if type(found) is types.ModuleType else None
    return kind if type(kind) is type and is_immutable(kind) else None
