"""An object's attributes, read without running code of the program.

No property is asked, no ``__getattr__`` and no ``__getattribute__``; and no instance gets a
``__dict__`` that it did not have.
"""

from __future__ import annotations

import ctypes
import types
from collections.abc import Iterator
from typing import Any

from diagnostics.probes.safe import (
    dict_offset,
    extension_type,
    has_managed_dict,
    is_descriptor,
    mro,
    namespace,
)

_MANAGED_DICT_OFFSET = -24
_IS_VALUES = 1
"""3.12 marks so what is no dict: the values of an instance that has not made its dict."""

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

# What wraps a function in the body of a class, and where it has that.
_WRAPPERS = (
    (property, property.__dict__["fget"]),
    (classmethod, classmethod.__dict__["__func__"]),
    (staticmethod, staticmethod.__dict__["__func__"]),
)


def namespace_id(item: Any) -> int:
    """The ``id()`` of the dict that an instance keeps its attributes in; 0 as long as it has none.

    It is read where the interpreter itself keeps it: an instance that is asked makes the dict.
    """
    kind = type(item)
    managed = has_managed_dict(kind)
    offset = _MANAGED_DICT_OFFSET if managed else dict_offset(kind)
    if offset == 0 or (offset < 0 and not managed):
        return 0  # counted from the end of an object of no fixed size: 3.11's tuples and numbers
    found = ctypes.c_size_t.from_address(id(item) + offset).value
    return 0 if found & _IS_VALUES else found


def existing_dict(item: Any) -> dict[Any, Any] | None:
    """The dict of an instance's attributes, where it has been made already."""
    if namespace_id(item) == 0:
        return None
    for base in mro(type(item)):
        entry = namespace(base).get("__dict__")
        if entry is not None:
            found = entry.__get__(item, type(item)) if _is_of(base, entry) else None
            return found if issubclass(type(found), dict) else None
    return None


def has_inline_values(item: Any) -> bool:
    """Whether an instance refers to the values of its attributes itself, not through a dict."""
    return has_managed_dict(type(item)) and namespace_id(item) == 0


def own_attribute(item: Any, name: str) -> Any:
    """An instance's own attribute; None where it has none, or where its class computes it."""
    of_class: Any = None
    for base in mro(type(item)):
        of_class = namespace(base).get(name)
        if of_class is not None:
            if is_descriptor(of_class):
                return None
            break
    try:
        found = object.__getattribute__(item, name)
    except AttributeError:
        return None
    return None if found is of_class else found


def struct_attributes(item: Any) -> Iterator[tuple[str, Any]]:
    """Slots, and the members that types written in C tell, with their values."""
    kind = type(item)
    for base in mro(kind):
        for name, entry in list(namespace(base).items()):
            if type(entry) is types.MemberDescriptorType and _is_of(base, entry):
                try:
                    yield name, entry.__get__(item, kind)
                except AttributeError:  # a slot that is empty
                    continue
    for base, names in _COMPUTED:
        if issubclass(kind, base):
            for name in names:
                try:
                    yield name, namespace(base)[name].__get__(item, kind)
                except ValueError:  # a cell that is empty
                    continue
    future = extension_type("_asyncio", "Future")
    if future is not None and issubclass(kind, future):
        for name in _OF_FUTURES:
            for base in mro(kind):
                entry = namespace(base).get(name)
                if type(entry) is types.GetSetDescriptorType and _is_of(base, entry):
                    yield name, entry.__get__(item, kind)


def names_in_code(kind: type) -> list[str]:
    """The names that the code of a class and of its bases uses, and those that are annotated."""
    names: dict[str, None] = {}
    for base in mro(kind):
        for code in _codes(base):
            names.update(dict.fromkeys(code.co_names))
        # get_annotations would make the dict where there is none.
        annotations = namespace(base).get("__annotations__")
        if type(annotations) is dict:
            names.update((name, None) for name in annotations if type(name) is str)
    return list(names)


def _is_of(kind: type, entry: Any) -> bool:
    """Whether a descriptor written in C was made for this class, and not borrowed from another."""
    made_in_c = type(entry) is types.MemberDescriptorType or (
        type(entry) is types.GetSetDescriptorType
    )
    return made_in_c and entry.__objclass__ is kind


def _codes(kind: type) -> Iterator[types.CodeType]:
    for entry in list(namespace(kind).values()):
        function = entry
        for wrapper, wrapped in _WRAPPERS:
            if issubclass(type(entry), wrapper):
                function = wrapped.__get__(entry, type(entry))
        if type(function) is types.FunctionType:
            yield function.__code__
