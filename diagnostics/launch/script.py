"""Run a script as ``python SCRIPT`` would, inside this process."""

from __future__ import annotations

import sys
import tokenize
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, ModuleType

from diagnostics.errors import UsageError
from diagnostics.probes.script_names import script_namespace


@contextmanager
def prepared_script(script: Path, arguments: Sequence[str]) -> Iterator[Callable[[], None]]:
    """What runs ``script`` as ``__main__``, with its arguments and its own folder to import from.

    Inside ``with`` the line profile knows the names of the script; everything is put back behind
    it. What the script raises, ``SystemExit`` included, goes on to the caller. Raises
    ``UsageError`` for a script that cannot be read or is no Python.
    """
    code = _compiled(script)
    module = ModuleType("__main__")
    module.__file__ = str(script)
    kept = sys.argv, sys.path[:], sys.modules["__main__"]
    with script_namespace(module.__dict__, script.stem) as namespace:
        sys.argv = [str(script), *arguments]
        sys.path.insert(0, str(script.resolve().parent))
        sys.modules["__main__"] = module
        try:
            # The namespace is slower than a dict, by far in loops at the script's top level: it
            # is taken only where the line profile waits for one of the script's functions.
            yield lambda: exec(code, module.__dict__, namespace if namespace.hooks else None)
        finally:
            sys.argv, sys.path[:], sys.modules["__main__"] = kept


def _compiled(script: Path) -> CodeType:
    try:
        with tokenize.open(script) as file:  # honours the file's own coding line
            return compile(file.read(), str(script), "exec", dont_inherit=True)
    except OSError as error:
        raise UsageError(f"Cannot read {script}: {error.strerror}.", "Check the path.") from error
    except (SyntaxError, ValueError) as error:
        raise UsageError(f"{script} is not a Python script: {error}.", "Check the file.") from error
