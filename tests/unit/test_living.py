"""Which type stands for a suspect, and which objects of it are asked about."""

import pytest

pytest.importorskip("diagnostics.probes._scan", reason="not built here: no C compiler")

from diagnostics.holders.heap import Deadline
from diagnostics.holders.held import block_of
from diagnostics.holders.living import find_living
from diagnostics.holders.samples import Sample
from diagnostics.holders.suspects import Lead


class Letter:
    """A small object that somebody kept, whose values weigh more than itself."""


def suspect(objects):
    """A suspect whose every sample stands for as many bytes, born in unit after unit."""
    samples = [
        Sample(block_of(item), 100, 8192, number % 5 + 1, 1, 0, 0)
        for number, item in enumerate(objects)
    ]
    weight = sum(sample.weight for sample in samples)
    return Lead(1, weight, len(samples), (1, 2, 3, 4, 5), tuple(samples))


def type_of(objects):
    return find_living([suspect(objects)], Deadline(60), 3).types


@pytest.mark.parametrize(("letters", "told"), [(5, f"{__name__}.Letter"), (1, "builtins.dict")])
def test_a_class_stands_for_its_values_unless_it_is_among_them_by_chance(letters, told):
    # given 300 samples of a leak: 3 % are expected to be the objects, and a draw may have 5 of them
    kept = [Letter() for _ in range(letters)]
    values = [{"x": [number]} for number in range(300 - letters)]
    assert type_of([*kept, *values]) == [told]
