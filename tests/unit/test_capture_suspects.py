"""Suspects from samples written by hand: what counts, what belongs together, who comes first."""

import math

import pytest

from diagnostics.holders.samples import Place, Sample, SampledHeap
from diagnostics.holders.suspects import find_leads

APP = "/srv/app/ingest.py"
LIBRARY = "/srv/venv/lib/python3.11/site-packages/pdfplumber/page.py"

PLACES = [
    Place(0, "", "", 0),
    Place(0, APP, "main", 5),  # 1
    Place(1, APP, "load", 12),  # 2
    Place(2, LIBRARY, "Page.chars", 90),  # 3
    Place(3, LIBRARY, "Page.layout", 70),  # 4
    Place(3, LIBRARY, "Page.objects", 80),  # 5
    Place(1, APP, "log", 30),  # 6
    Place(2, APP, "Record.__init__", 40),  # 7
    Place(0, LIBRARY, "Worker.run", 8),  # 8: a thread of the library's own
]


def sample(unit, site, weight=1000, size=100):
    return Sample(4096, size, weight, unit, site, 0, 1)


def leads(samples, unit=9, ended=False, most=10):
    return find_leads(samples, PLACES, unit=unit, ended=ended, most=most)


def test_only_what_was_born_well_behind_counts():
    samples = [sample(unit, 2) for unit in range(12)]
    (running,) = leads(samples, unit=9)
    assert running.units == (1, 2, 3, 4, 5, 6, 7)  # 8 and 9 are young, 0 is outside any unit
    (ended,) = leads(samples, unit=9, ended=True)
    assert ended.units == tuple(range(1, 10))
    assert leads([sample(0, 2)], ended=True) == []


def test_what_lies_below_one_line_of_the_user_is_one_suspect():
    (lead,) = leads([sample(1, 3, 100), sample(2, 4, 4500), sample(3, 5, 5400)])
    assert (lead.bytes, lead.units) == (10_000, (1, 2, 3))
    # 99 % lie below the two branches of Page.chars: 3 is the deepest with 80 % of the bytes.
    assert lead.site == 3
    (lead,) = leads([sample(1, 4, 9000), sample(2, 5, 1000)])
    assert lead.site == 4


def test_a_constructor_belongs_to_the_line_that_makes_the_object():
    (lead,) = leads([sample(1, 2), sample(1, 7, 3000)])
    assert lead.bytes == 4000


def test_lines_of_the_user_are_told_apart():
    assert [(lead.site, lead.bytes) for lead in leads([sample(1, 6, 10), sample(1, 2, 20)])] == [
        (2, 20),
        (6, 10),
    ]


def test_a_stack_without_the_users_code_stands_for_itself():
    (lead,) = leads([sample(1, 8)])
    assert lead.site == 8


def test_blocks_and_steadiness():
    # Four of the units from 1 to 7; each sample stands for ten blocks of its size.
    (lead,) = leads([sample(unit, 2, weight=1000, size=100) for unit in (1, 2, 5, 7)])
    assert lead.blocks == 40
    assert lead.steadiness == pytest.approx(4 / 7)
    assert lead.weight == pytest.approx(4000 * 4 / 7 * math.log2(5))


def test_a_leak_goes_before_the_same_bytes_from_one_unit():
    once = [sample(1, 6, weight=8000)]
    steady = [sample(unit, 2, weight=1000) for unit in range(1, 8)]
    assert [lead.site for lead in leads(once + steady)] == [2, 6]
    assert [lead.site for lead in leads(once + steady, most=1)] == [2]


def test_the_workbench_s_own_blocks_are_left_out():
    from diagnostics.probes import process

    rows = [sample(1, 1), sample(1, 2)]
    packed = b"".join(number.to_bytes(8, "little") for row in rows for number in row)
    heap = SampledHeap(
        lambda: packed,
        lambda _first: [(0, APP, "main", 5), (1, process.__file__, "ProcessProbe.tick", 60)],
        hosted=False,
    )
    assert [row.site for row in heap] == [1]
    assert heap.places[2] == Place(1, process.__file__, "ProcessProbe.tick", 60)


def test_of_very_many_samples_some_stand_for_all():
    rows = [
        Sample(address=n * 16, size=64, weight=100, unit=1 + n % 7, site=1, birth_ns=0, thread=0)
        for n in range(50_000)
    ]
    packed = b"".join(number.to_bytes(8, "little") for row in rows for number in row)
    heap = SampledHeap(lambda: packed, lambda _first: [(0, APP, "main", 5)], hosted=False)
    read = list(heap)
    assert len(read) == 16_667  # every third
    assert sum(row.weight for row in read) == 16_667 * 300
    assert {row.unit for row in read} == {1, 2, 3, 4, 5, 6, 7}
    # What is asked for by its address is found among all.
    assert heap.births({16, 32, 49_999 * 16, 7}) == {16: (2, 1), 32: (3, 1), 799_984: (6, 1)}
