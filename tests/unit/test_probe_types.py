"""Objects per type are counted exactly, without a collection and without keeping them."""

import gc
import time
import weakref

import pytest

from diagnostics.probes.base import Budget, Session
from diagnostics.probes.object_types import TypeProbe, count_types
from diagnostics.recording.reader import RecordingReader
from diagnostics.recording.writer import RecordingWriter


class Page:
    pass


class Rare:
    pass


class Mapped:
    __module__ = "diagnostics.probes.mappings"


class Item:
    __module__ = "diagnostics.loaders.made_up"


class Strange(type):
    """A metaclass that answers for its classes what it likes."""

    __qualname__ = "Odd"

    def __getattribute__(cls, name):
        raise RuntimeError("nobody asks a class of the program")


class Odd(metaclass=Strange):
    pass


def test_counts_are_exact():
    before = count_types()
    pages = [Page() for _ in range(1_234)]
    after = count_types()
    name = f"{__name__}.Page"
    assert after[name] - before.get(name, 0) == len(pages)


def test_few_objects_are_added_up_as_other():
    rare = [Rare() for _ in range(3)]
    counts = count_types(least=50)
    exact = count_types()
    assert f"{__name__}.Rare" not in counts
    assert min(count for name, count in counts.items() if name != "other") >= 50
    assert counts["other"] >= len(rare)
    assert abs(sum(counts.values()) - sum(exact.values())) < 20


def test_the_workbench_s_own_objects_are_not_counted_and_its_loaders_are():
    own = [Mapped() for _ in range(60)]
    of_loader = [Item() for _ in range(60)]
    counts = count_types()
    assert len(own) == 60
    assert not [name for name in counts if name.startswith("diagnostics.probes.")]
    assert counts["diagnostics.loaders.made_up.Item"] == len(of_loader)


def test_counting_runs_no_code_of_a_metaclass():
    odd = [object.__new__(Odd) for _ in range(60)]
    assert count_types(least=50)[f"{__name__}.Odd"] == len(odd)


def test_nothing_is_collected_and_nothing_is_kept():
    page = Page()
    page.me = page
    alive = weakref.ref(page)
    gc.disable()
    try:
        del page
        count_types()
        assert alive() is not None
        gc.collect()
        assert alive() is None
    finally:
        gc.enable()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "types.p87"


def test_the_series_follows_the_units(path):
    probe = TypeProbe(Budget(1.0))
    probe.start(Session(time.monotonic_ns, lambda: 0, lambda thread: False, lambda *line: None))
    writer = RecordingWriter(path, {})
    pages = [Page() for _ in range(100)]
    probe.unit_ended(1)
    probe.tick(writer, 1)
    pages.extend(Page() for _ in range(50))
    probe.stop()
    probe.tick(writer, 2)
    writer.close()
    with RecordingReader(path) as reader:
        ids = {name: number for number, name in reader.types().items()}
        page = ids[f"{__name__}.Page"]
        states = [(state.unit, state.values[page]) for state in reader.frames("types")]
    assert states == [(1, (100,)), (0, (150,))]
    assert probe.cost_ns > 0


def test_a_unit_end_outside_the_budget_costs_nothing():
    now = [0]
    budget = Budget(0.05, lambda: now[0])
    probe = TypeProbe(budget)
    probe.start(Session(time.monotonic_ns, lambda: 0, lambda thread: False, lambda *line: None))
    with budget.measured():
        now[0] += 1_000  # somebody else used the budget up
    probe.unit_ended(1)
    assert probe.cost_ns == 0
