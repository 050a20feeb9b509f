"""Finding objects by address and holders by reference, in this very process."""

import gc
import time
from array import array
from contextlib import nullcontext

import pytest

from diagnostics.holders.heap import (
    Deadline,
    OutOfTimeError,
    buffer_owners,
    held_by,
    holders,
    holders_by_id,
    meeting,
    objects_at,
    referents,
)
from diagnostics.holders.held import Held, block_of, shallow_size
from diagnostics.probes.safe import type_name

SOON = Deadline(3600)  # from when the tests are collected


class Plain:
    pass


class Slotted:
    __slots__ = ("__weakref__", "value")


class Bare:
    __slots__ = ()


def allocated_at(make):
    """The addresses of the blocks that making an object asked the allocator for, and the object."""
    heap = pytest.importorskip(
        "diagnostics.probes._heap", reason="the sampled engine was not built: no C compiler"
    )
    from contextvars import ContextVar

    make()  # whatever is made once only
    heap.start(ContextVar("unit", default=0), 1.0, 1 << 16, 8, False, 1)
    try:
        made = make()
        rows = memoryview(heap.samples()).cast("q")
    finally:
        heap.stop()
    return {rows[start] for start in range(0, len(rows), 7)}, made


@pytest.mark.parametrize(
    "make",
    [
        Plain,
        Slotted,
        Bare,
        list,
        dict,
        set,
        lambda: chr(99) * 600,
        lambda: 10 ** ord("c"),
        lambda: (*range(30), []),
    ],
)
def test_the_block_of_an_object_is_the_one_that_was_allocated(make):
    blocks, made = allocated_at(make)
    assert block_of(made) in blocks


def test_objects_by_the_addresses_of_their_blocks():
    made = [Plain(), [], Slotted()]
    made[2].value = []
    found = objects_at({block_of(item) for item in made} | {id(made) + 8}, SOON)
    assert {id(item) for item in made} == set(found)


def test_holders_of_what_the_collector_tracks():
    item = Plain()
    first, second = [item, item], {"x": item}
    found, edges = holders(Held.of([item]), SOON)
    assert {(id(first), id(item)), (id(second), id(item))} <= set(edges)
    assert all(type(holder) is not Held for holder in found.values())


def test_holders_that_the_collector_does_not_track():
    text = "".join(["a text that ", "nothing else has"])
    record = {"text": text, "page": 87}
    records = [record]
    gc.collect()
    assert not gc.is_tracked(record)
    _found, edges = holders(Held.of([text]), SOON)
    assert (id(record), id(text)) in edges
    _found, edges = holders(Held.of([record]), SOON)
    assert (id(records), id(record)) in edges


@pytest.mark.parametrize(
    "wrap",
    [
        lambda item: (item,),
        lambda item: ((1, (2, item)),),
        lambda item: (frozenset([item]), "x"),
        lambda item: (x for x in (item,)),
    ],
)
def test_tracked_things_inside_tuples_are_found_both_ways(wrap):
    item = Plain()
    outermost = wrap(item)
    kept = [outermost]
    ids = frozenset([id(item)])
    quick, thorough = (
        meeting(holders_by_id(ids, SOON, tracked=tracked), ids)[1] for tracked in (True, False)
    )
    # Whoever refers to the item, as the collector sees it; this very frame may come and go.
    expected = {id(one) for one in gc.get_referrers(item) if type(one) in (tuple, frozenset)}
    assert expected
    assert expected <= {holder for holder, _held in quick}
    assert expected <= {holder for holder, _held in thorough}
    assert kept[0] is outermost


def test_values_by_id():
    text = "".join(["another text ", "of its own"])
    keeper = [text]
    ids = frozenset([id(text)])
    found = held_by(holders_by_id(ids, SOON), ids)
    assert list(found) == [id(text)]
    assert meeting(Held.of([keeper, []]), ids)[1] == [(id(keeper), id(text))]


@pytest.mark.parametrize(
    "make",
    [
        lambda: [None] * 5000,
        lambda: dict.fromkeys(range(5000)),
        lambda: set(range(5000)),
        lambda: bytearray(50_000),
        lambda: array("d", bytes(40_000)),
    ],
)
def test_the_owner_of_a_buffer(make):
    blocks, owner = allocated_at(make)
    kept = [owner]
    found, owners = buffer_owners(dict.fromkeys(blocks, 1000), SOON)
    assert id(owner) in found
    assert id(owner) in owners.values()
    assert kept[0] is owner


@pytest.mark.parametrize(
    "hide",
    [
        lambda owner: {1: owner},  # a dict of what is untracked is untracked itself
        lambda owner: (owner,),
        lambda owner: (1, {2: owner}),
    ],
    ids=["dict", "tuple", "dict in a tuple"],
)
def test_the_owner_of_a_buffer_that_only_untracked_containers_hold(hide):
    blocks, owner = allocated_at(lambda: bytearray(50_000))
    kept = [hide(owner)]
    _found, owners = buffer_owners(dict.fromkeys(blocks, 1000), SOON)
    assert id(owner) in owners.values()
    assert len(kept) == 1


def test_modules_are_never_asked():
    # To ask some of them breaks their free lists (_asyncio in 3.12); their dicts tell the same.
    assert list(referents(gc)) == []
    found = holders_by_id(frozenset([id(gc.collect)]), SOON)
    assert id(gc.__dict__) in found
    assert id(gc) not in found


def test_no_time_left():
    with pytest.raises(OutOfTimeError):
        holders(Held.of([Plain()]), Deadline(-1))
    now = iter([10.0, 14.9, 15.1])
    deadline = Deadline(5, clock=lambda: next(now))
    deadline.check()
    with pytest.raises(OutOfTimeError):
        deadline.check()


@pytest.mark.parametrize(("lasted", "in_time"), [(14.9, True), (15.1, False)])
def test_a_busy_machine_takes_no_time_away_up_to_three_times_of_it(lasted, in_time):
    now = iter([100.0, 100.0 + lasted])
    deadline = Deadline(5, clock=lambda: 1.0, wall=lambda: next(now))
    with nullcontext() if in_time else pytest.raises(OutOfTimeError):
        deadline.check()


def test_the_time_of_other_threads_is_not_the_captures():
    deadline = Deadline(0.05)
    time.sleep(0.1)
    deadline.check()
    begun = time.thread_time()
    while time.thread_time() - begun < 0.06:
        pass
    with pytest.raises(OutOfTimeError):
        deadline.check()


def test_sizes_and_names():
    class Liar:
        def __sizeof__(self):
            raise AssertionError("the program's code was run")

    assert shallow_size(b"x" * 1000) == (b"x" * 1000).__sizeof__()
    assert shallow_size([0] * 10) == [0].__sizeof__() + 9 * 8 + 16  # with the collector's header
    assert shallow_size(Liar()) >= object.__basicsize__ + 16
    assert type_name(dict) == "builtins.dict"
    assert type_name(Plain) == f"{__name__}.Plain"
