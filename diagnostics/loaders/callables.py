"""People's own code as a loader: a function of the path that returns something to iterate."""

from __future__ import annotations

import difflib
import importlib
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from diagnostics.errors import LoaderError
from diagnostics.loaders.base import Loader, LoadOptions, Page
from diagnostics.loaders.files import describe, require_path

LoadFunction = Callable[..., Any]
"""Called with the path as a string, and with ``password`` if it takes one and one was given."""


class CallableDocument:
    """A call of somebody's function; it happens in ``pages()``, outside of any unit.

    Each item is a unit. A string, or what has a string as its ``.text``, counts its characters. A
    result that cannot be iterated is one item; None is none. What the function raises goes on
    untouched.

    What the function returns is held until the document is closed, as a caller would hold it; of
    an iterator nobody has more than the item in hand.
    """

    unit_kind = "page"
    unit_count: int | None = None

    def __init__(self, name: str, function: LoadFunction, path: Path, options: LoadOptions) -> None:
        require_path(path)  # a folder is fine: the function may know what to do with it
        self.split = f"items of {name}"
        # A generator function leaves the marking to whoever iterates it; any other function may
        # have done all its work, and marked it with units(), by the time it returns.
        self.marks_own_units = not inspect.isgeneratorfunction(function)
        self._function = function
        self._path = str(path)
        self._result: Any = None
        self._keywords = (
            {"password": options.password}
            if options.password is not None and _takes(function, "password")
            else {}
        )

    def pages(self) -> Iterator[Page]:
        result = self._function(self._path, **self._keywords)
        # An iterator has its work still ahead: its items are units as a generator's are.
        if isinstance(result, Iterator):
            self.marks_own_units = False
        else:
            self._result = result
        return (Page(_text(item)) for item in _items(result))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Let go of the result; nothing of ours is open."""
        self._result = None


def wrap(name: str, function: LoadFunction, library: str | None = None) -> Loader:
    """A loader that calls ``function``. Raises LoaderError where it cannot be one."""
    if not callable(function):
        raise LoaderError(
            f"{name} is not callable: it is {type(function).__name__}.",
            "Name a function that takes the path and returns an iterable of pages.",
        )
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise LoaderError(
            f"{name} is asynchronous.",
            "Run it from a script: asyncio.run() around `async for page in units(...)`.",
        )
    return Loader(
        name=name,
        title=name,
        formats=(),
        note="Your own code: what it keeps is what there is to find out.",
        open=lambda path, options: CallableDocument(name, function, path, options),
        library=library,
    )


def import_loader(name: str) -> Loader:
    """The loader that ``module:function`` names; modules in the current directory are found too.

    Raises LoaderError, chained from the original error, where the import fails.
    """
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        raise LoaderError(f"{name!r} names no function.", "Write it as module:function.")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module_name)
    except Exception as error:
        raise LoaderError(
            f"The module {module_name} cannot be imported: {describe(error)}.",
            f"Try: {Path(sys.executable).name} -c 'import {module_name}' in {here}",
        ) from error
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise LoaderError(
                f"{module_name} has no {attribute}.",
                _did_you_mean(part, [known for known in vars(found) if not known.startswith("_")]),
            )
        found = getattr(found, part)
    return found if isinstance(found, Loader) else wrap(name, found)


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    return f"Did you mean {' or '.join(near)}?" if near else "Check the spelling."


def _takes(function: LoadFunction, keyword: str) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # written in C, without a signature
        return False
    return any(
        parameter.kind is parameter.VAR_KEYWORD
        or (parameter.name == keyword and parameter.kind is not parameter.POSITIONAL_ONLY)
        for parameter in parameters
    )


def _items(result: Any) -> Iterator[Any]:
    if result is None:
        return iter(())
    if isinstance(result, (str, bytes)) or not isinstance(result, Iterable):
        return iter((result,))
    return iter(result)


def _text(item: Any) -> str:
    text = item if isinstance(item, str) else getattr(item, "text", None)
    return text if isinstance(text, str) else ""
