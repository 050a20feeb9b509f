"""The names that a program's own code uses: attributes, and texts that stand in it."""

from __future__ import annotations

import types
from collections.abc import Iterator
from functools import cached_property

from diagnostics.probes.tracked import tracked_objects

_LONGEST = 40


class ProgramNames:
    """Names in the code of all functions. Looked up when first needed; drop it after use.

    A recording contains no text of the document. So a dict's key is shown only if it is a name
    that stands in the program itself.
    """

    def __contains__(self, text: object) -> bool:
        return (
            type(text) is str
            and len(text) <= _LONGEST
            and text.isidentifier()
            and text in self._known
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    @cached_property
    def _known(self) -> frozenset[str]:
        names: set[str] = set()
        for item in tracked_objects():
            if type(item) is types.FunctionType:
                _collect(item.__code__, names)
        return frozenset(names)


def _collect(code: types.CodeType, names: set[str]) -> None:
    names.update(code.co_names)
    for constant in code.co_consts:
        if type(constant) is str:
            names.add(constant)
        elif type(constant) is types.CodeType:
            _collect(constant, names)
