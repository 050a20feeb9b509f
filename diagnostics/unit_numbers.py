"""Which numbers the units of a recording have, and which one is next."""

from __future__ import annotations


class UnitNumbers:
    """Gives every unit a number of its own, from 1 on.

    It runs in people's processes, for as long as they do: numbers that are given one after the
    other are not remembered singly, only what is out of order.
    """

    def __init__(self) -> None:
        self._next = 1  # all below it are taken, but for those given back
        self._ahead: set[int] = set()  # taken, and above it
        self._given_back: set[int] = set()  # free, and more than one below it

    def take(self, wished: int | None) -> int:
        """The number of a new unit: ``wished`` (from 1 on) while it is free, else the lowest."""
        if wished is not None and self._is_free(wished):
            number = wished
        else:
            number = min(self._given_back, default=self._next)
        if number > self._next:
            self._ahead.add(number)
        elif number < self._next:
            self._given_back.remove(number)
        else:
            self._next += 1
            while self._next in self._ahead:
                self._ahead.remove(self._next)
                self._next += 1
        return number

    def give_back(self, number: int) -> None:
        """Free a number that was taken."""
        if number in self._ahead:
            self._ahead.remove(number)
            return
        self._given_back.add(number)
        while self._next - 1 in self._given_back:
            self._next -= 1
            self._given_back.remove(self._next)

    def highest(self) -> int:
        """The highest number that is taken; 0 without any."""
        return max(self._ahead, default=self._next - 1)

    def _is_free(self, number: int) -> bool:
        if number < self._next:
            return number in self._given_back
        return number not in self._ahead
