"""Chance that comes out the same everywhere: one seed for each name."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")


class Chance:
    """Draws that depend on nothing but ``name``.

    Only ``random()`` is used: it is the one method whose sequence Python promises to keep
    (https://docs.python.org/3/library/random.html#notes-on-reproducibility).
    """

    def __init__(self, *name: object) -> None:
        self._draw = random.Random("/".join(str(part) for part in name)).random

    def between(self, low: float, high: float) -> float:
        return low + self._draw() * (high - low)

    def whole(self, low: int, high: int) -> int:
        """A whole number, both ends included."""
        return low + int(self._draw() * (high - low + 1))

    def pick(self, items: Sequence[Item]) -> Item:
        return items[int(self._draw() * len(items))]

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        return [item for _, item in sorted(((self._draw(), i) for i in items), key=lambda p: p[0])]

    def split(self, total: int, weights: Sequence[float]) -> tuple[int, ...]:
        """``total`` in whole parts about as large as ``weights`` say; the parts add up to it."""
        parts: list[int] = []
        left, weight_left = total, sum(weights)
        for weight in weights:
            part = round(left * weight / weight_left) if weight_left else left
            parts.append(part)
            left, weight_left = left - part, weight_left - weight
        parts[-1] += left
        return tuple(parts)
