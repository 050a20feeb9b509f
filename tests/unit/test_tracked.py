"""What the collector tracks, told with the scan in C and without it."""

import gc

import pytest

from diagnostics.probes import tracked


class Unhashable(type):
    __hash__ = None

    def __eq__(cls, other):
        raise AssertionError("the program's code was run")


class Page(metaclass=Unhashable):
    pass


class Plain:
    pass


@pytest.fixture(params=["in C", "in Python"])
def _way(request, monkeypatch):
    if request.param == "in Python":
        monkeypatch.setattr(tracked, "_IS_BUILT", False)
    elif not tracked._IS_BUILT:
        pytest.skip("the scan was not built: no C compiler")


@pytest.mark.usefixtures("_way")
def test_types_are_counted_that_cannot_be_hashed():
    kept = [*(Page() for _ in range(123)), *(Plain() for _ in range(45))]
    counts = tracked.count_by_type()
    assert [count for kind, count in counts if kind is Page] == [123]
    assert [count for kind, count in counts if kind is Plain] == [45]
    assert len(kept) == 123 + 45


@pytest.mark.usefixtures("_way")
def test_all_objects_but_what_may_be_unfinished():
    kept = [Page(), Plain(), (Plain(), []), frozenset([Plain()])]
    assert all(map(gc.is_tracked, kept))
    found = tracked.tracked_objects()
    assert [any(item is one for item in found) for one in kept] == [True, True, False, False]


@pytest.mark.usefixtures("_way")
def test_any_number_of_types():
    kinds = [type(f"Kind{number}", (), {}) for number in range(40_000)]
    kept = [kind() for kind in kinds for _ in range(2)]
    named = {id(kind) for kind in kinds}
    counts = [count for kind, count in tracked.count_by_type() if id(kind) in named]
    assert counts == [2] * len(kinds)
    assert len(kept) == 2 * len(kinds)
