"""Lets the line profile reach functions of a script, which exist only once the script runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

Hook = Callable[[Any], Any]


class ScriptNamespace(MutableMapping[str, Any]):
    """The names that a script defines at its top level, with a hook on some of them.

    Everything lives in ``variables``, the ``__dict__`` of the script's module; to run a script,
    give both to ``exec(code, variables, namespace)``. A hook gets the value that is about to be
    stored under its name and gives the one to store instead.
    """

    def __init__(self, variables: dict[str, Any], module: str) -> None:
        self.variables = variables
        self.module_names = ("__main__", module)
        self.hooks: dict[str, Hook] = {}

    def __getitem__(self, name: str) -> Any:
        return self.variables[name]

    def __setitem__(self, name: str, value: Any) -> None:
        hook = self.hooks.get(name)
        self.variables[name] = value if hook is None else hook(value)

    def __delitem__(self, name: str) -> None:
        del self.variables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.variables)

    def __len__(self) -> int:
        return len(self.variables)


_running: ScriptNamespace | None = None


@contextmanager
def script_namespace(variables: dict[str, Any], module: str) -> Iterator[ScriptNamespace]:
    """The namespace of the script that will run inside ``with``.

    ``module`` is the script's file name without suffix: ``--lines ingest:load`` then means the
    function of the running ``ingest.py``, as ``__main__:load`` does. Enter it before the recording
    starts, so that the line profile finds it.
    """
    global _running
    _running = ScriptNamespace(variables, module)
    try:
        yield _running
    finally:
        _running = None


def running_script() -> ScriptNamespace | None:
    """The namespace of the script that runs or is about to run in this process."""
    return _running
