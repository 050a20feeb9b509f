"""Functions that a user names as ``module:function`` or ``module:Class.method``; the module may be
written as its file, ``ingest.py:load``."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath
from types import CodeType, FunctionType, ModuleType
from typing import Any

from diagnostics.errors import UsageError

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Name:
    """A function's name in parts: its module, the classes around it, its own name.

    ``stem`` is the last part of the module's name where it was written as a file, "" otherwise: a
    script may lie in a folder that is no package.
    """

    text: str
    module: str
    path: tuple[str, ...]
    stem: str = ""


def parse(text: str) -> Name:
    """Raises ``UsageError`` when ``text`` is no such name."""
    module, colon, path = text.partition(":")
    parts = tuple(path.split("."))
    if not colon or not module or not all(part.isidentifier() for part in parts):
        raise UsageError(
            f"{text!r} does not name a function.",
            "Write module:function, script.py:function or module:Class.method.",
        )
    if not module.endswith(".py"):
        return Name(text, module, parts)
    file = PurePath(module).with_suffix("")
    # A path from elsewhere is no package's: then the file's own folder must be on the path.
    packaged = all(part.isidentifier() for part in file.parts)
    dotted = ".".join(file.parts) if packaged else file.name
    return Name(text, dotted, parts, file.name)


@dataclass(frozen=True, slots=True)
class Target:
    """A function that was found: where it is kept, and the code that does its work.

    ``function`` is what people call, decorators included; ``code`` is the innermost function's.
    ``owner`` is its class, None for a function of a module.
    """

    name: str
    owner: type | None
    attribute: str
    kept: Any
    function: FunctionType
    code: CodeType
    source: list[str]
    first_line: int

    def replace(self, wrapper: Function) -> None:
        """Put ``wrapper`` in the function's place, in every module that knows it by a name."""
        if self.owner is None:
            swap_everywhere(self.function, wrapper)
        elif isinstance(self.kept, (staticmethod, classmethod)):
            setattr(self.owner, self.attribute, type(self.kept)(wrapper))
        else:
            setattr(self.owner, self.attribute, wrapper)

    def restore(self, wrapper: Function) -> None:
        """Undo ``replace``, also in modules that imported the wrapper meanwhile."""
        if self.owner is None:
            swap_everywhere(wrapper, self.function)
        else:
            setattr(self.owner, self.attribute, self.kept)


def find(name: Name) -> Target:
    """Import the module and find the function.

    Raises ``UsageError`` when there is none, or none whose lines can be followed.
    """
    try:
        module = importlib.import_module(name.module)
    except Exception as error:
        raise UsageError(
            f"Cannot profile {name.text}: importing {name.module} failed"
            f" ({type(error).__name__}: {error}).",
            "Check the name; its folder must be on the path (PYTHONPATH, or run it from there).",
        ) from error
    first, *rest = name.path
    try:
        return target_of(name, getattr(module, first), rest)
    except AttributeError:
        raise _missing(name) from None


def target_of(name: Name, value: Any, rest: list[str] | tuple[str, ...]) -> Target:
    """The target at the end of ``rest``, the attributes that lead on from ``value``.

    Raises ``UsageError`` as ``find`` does.
    """
    owner: type | None = None
    attribute = name.path[0]
    kept = value
    for attribute in rest:
        if not isinstance(kept, type):
            raise _missing(name)
        owner = next((base for base in kept.__mro__ if attribute in vars(base)), None)
        if owner is None:
            raise _missing(name)
        kept = vars(owner)[attribute]
    function = kept.__func__ if isinstance(kept, (staticmethod, classmethod)) else kept
    if not isinstance(function, FunctionType):
        raise UsageError(
            f"Cannot profile {name.text}: a {type(function).__name__} is not a Python function.",
            "Name a function or a method written in Python.",
        )
    inner = inspect.unwrap(function)
    _check_kind(name, function, inner)
    code = inner.__code__
    try:
        source, first_line = inspect.getsourcelines(code)
    except (OSError, TypeError) as error:
        raise UsageError(
            f"Cannot profile {name.text}: its source is not there ({error}).",
            "Line profiles need the .py file.",
        ) from error
    return Target(name.text, owner, attribute, kept, function, code, source, first_line)


def _check_kind(name: Name, function: FunctionType, inner: Any) -> None:
    if not isinstance(inner, FunctionType):
        raise UsageError(
            f"Cannot profile {name.text}: it wraps a {type(inner).__name__}.",
            "Name the function that does the work.",
        )
    if inspect.isasyncgenfunction(inner):
        raise UsageError(
            f"Cannot profile {name.text}: it is an asynchronous generator.",
            "Name the coroutine that uses it, or a function that it calls.",
        )
    for is_kind in (inspect.isgeneratorfunction, inspect.iscoroutinefunction):
        if is_kind(inner) != is_kind(function):
            raise UsageError(
                f"Cannot profile {name.text}: its decorator runs it later, piece by piece.",
                "Name a function that it calls.",
            )


def _missing(name: Name) -> UsageError:
    return UsageError(
        f"Cannot profile {name.text}: {name.module} has no {'.'.join(name.path)}.",
        "Check the spelling; nested functions cannot be named.",
    )


def swap_everywhere(old: Function, new: Function) -> None:
    """Let every global name in every loaded module that means ``old`` mean ``new``."""
    modules: list[object] = list(sys.modules.values())  # some programs put other things there
    for module in modules:
        if not isinstance(module, ModuleType):
            continue
        try:
            # Past the module's own __getattribute__, which in a lazy module would import it.
            names: dict[str, Any] = object.__getattribute__(module, "__dict__")
        except AttributeError:
            continue  # cffi puts modules there that have no names of the ordinary kind
        for name, value in list(names.items()):
            if value is old:
                names[name] = new
