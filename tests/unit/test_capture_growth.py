"""Suspects from counts of objects by type."""

import gc

import pytest

from diagnostics.holders.growth import TypeCount, find_growing, find_growing_objects, with_size
from diagnostics.holders.held import Held
from diagnostics.probes import tracked
from diagnostics.probes.safe import type_name


def test_types_that_grow_unit_after_unit():
    marks = [
        TypeCount(1, {"a.Char": 1000, "a.Font": 500, "a.Steady": 900, "builtins.function": 10}),
        TypeCount(2, {"a.Char": 2000, "a.Font": 500, "a.Steady": 950}),
        TypeCount(4, {"a.Char": 3000, "a.Font": 900, "a.Steady": 920, "builtins.function": 9999}),
    ]
    char, font = find_growing(marks, most=5)
    assert (char.type, char.blocks, char.units, char.steadiness) == ("a.Char", 2000, (2, 3, 4), 1)
    assert (font.type, font.blocks, font.units) == ("a.Font", 400, (3, 4))
    assert find_growing(marks, most=1) == [char]
    assert find_growing(marks[:1], most=5) == []


class Kept:
    __slots__ = ("number",)

    def __init__(self, number):
        self.number = number


def test_objects_are_taken_from_the_newest():
    kept = [Kept(number) for number in range(400)]
    marks = [TypeCount(1, {}), TypeCount(2, {type_name(Kept): 100})]
    leads = find_growing(marks, most=1)
    (found,) = find_growing_objects(leads, most=5)
    assert [item.number for item in found.values()] == [319, 339, 359, 379, 399]
    assert kept[0].number == 0


@pytest.mark.parametrize("is_built", [True, False])
def test_what_no_collection_has_seen_yet_is_the_newest(is_built, monkeypatch):
    # given objects that a full collection has left alive, and as many that none has looked at
    if is_built and not tracked._IS_BUILT:
        pytest.skip("the scan was not built: no C compiler")
    monkeypatch.setattr(tracked, "_IS_BUILT", is_built)
    marks = [TypeCount(1, {}), TypeCount(2, {type_name(Kept): 100})]
    old = [Kept(number) for number in range(100)]
    gc.collect()
    gc.disable()
    try:
        new = [Kept(number) for number in range(100, 200)]
        (found,) = find_growing_objects(find_growing(marks, most=1), most=5)
    finally:
        gc.enable()
    assert [item.number for item in found.values()] == [119, 139, 159, 179, 199]
    assert len(old) == len(new)


def test_bytes_are_the_growth_times_the_mean_size():
    (lead,) = find_growing([TypeCount(1, {}), TypeCount(2, {"builtins.bytes": 200})], most=1)
    assert lead.bytes == 0
    sized = with_size(lead, Held.of([bytes(67), bytes(167)]))  # 100 and 200 bytes with their heads
    assert sized.bytes == 200 * 150
    assert with_size(lead, Held()).bytes == 0
    assert sized.blocks == pytest.approx(200)
