"""The numbers of units: each its own, the lowest that is free, and nothing kept of a long row."""

import random
import tracemalloc

import pytest

from diagnostics import units
from diagnostics.unit_numbers import UnitNumbers
from diagnostics.units import UnitBook, activate


class Remembered:
    """The same, by remembering every number."""

    def __init__(self):
        self.taken = set()

    def take(self, wished):
        free = (number for number in range(1, len(self.taken) + 2) if number not in self.taken)
        number = wished if wished is not None and wished not in self.taken else next(free)
        self.taken.add(number)
        return number

    def give_back(self, number):
        self.taken.remove(number)

    def highest(self):
        return max(self.taken, default=0)


@pytest.mark.parametrize("seed", range(20))
def test_the_numbers_are_those_of_someone_who_remembers_them_all(seed):
    rng = random.Random(seed)
    numbers, remembered = UnitNumbers(), Remembered()
    for _ in range(400):
        if remembered.taken and rng.random() < 0.4:
            newest = sorted(remembered.taken)[-3:]
            number = rng.choice(newest if rng.random() < 0.7 else sorted(remembered.taken))
            numbers.give_back(number)
            remembered.give_back(number)
        else:
            wished = rng.randrange(1, 60) if rng.random() < 0.4 else None
            assert numbers.take(wished) == remembered.take(wished)
        assert numbers.highest() == remembered.highest()


def test_nothing_is_kept_of_units_that_are_over():
    book = UnitBook(lambda: 1, lambda index: None, lambda index: None)
    activate(book)
    try:
        for _ in units(range(100)):
            pass
        book.changes()
        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        for _ in units(range(20_000)):
            book.changes()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        activate(None)

    assert book.last_index == 20_100
    assert after - before < 10_000  # half a byte a unit
