"""Which blocks the lines of a source file stand in, told by how far in they are.

Works on an excerpt too, as a recording holds one, as far as it has the lines that open the blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

_CLOSING = (")", "]", "}", "#")
"""What a line begins with that opens nothing and ends no block: it may stand as far out as it likes
to."""


class Placed(NamedTuple):
    """A line, and the numbers of the lines above it that stand less far in each: the outermost
    first. They open its blocks, or are the first lines of what it goes on with."""

    number: int
    text: str
    around: tuple[int, ...]


def placed(lines: Iterable[tuple[int, str]]) -> Iterator[Placed]:
    """``lines`` in their order, by number; those that are empty or close something are in none."""
    opened: list[tuple[int, int]] = []  # how far in, number
    for number, text in lines:
        code = text.lstrip()
        if not code or code.startswith(_CLOSING):
            yield Placed(number, text, ())
            continue
        far_in = len(text) - len(code)
        while opened and opened[-1][0] >= far_in:
            opened.pop()
        yield Placed(number, text, tuple(above for _, above in opened))
        opened.append((far_in, number))
