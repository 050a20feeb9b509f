"""Two probes at one budget take turns, and together stay within it."""

from diagnostics.probes.base import Budget
from diagnostics.probes.turns import Turn


class Clock:
    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


class Measurer:
    def __init__(self, name, budget, clock, cost) -> None:
        self.turn = Turn(budget)
        self.name, self.budget, self.clock, self.cost = name, budget, clock, cost

    def opportunity(self, log) -> None:
        if self.turn.has_come():
            with self.budget.measured():
                self.clock.now += self.cost
            self.turn.taken()
            log.append(self.name)


def run(clock, measurers, seconds):
    """One unit a second; every probe gets its hook at each unit's end, always in this order."""
    log = []
    while clock.now < seconds * 1_000_000_000:
        clock.now += 1_000_000_000
        for measurer in measurers:
            measurer.opportunity(log)
    return log


def test_two_probes_alternate_although_one_is_always_asked_first():
    clock = Clock()
    budget = Budget(0.05, clock)
    first = Measurer("types", budget, clock, 50_000_000)
    second = Measurer("heap", budget, clock, 400_000_000)
    log = run(clock, [first, second], 600)
    assert log[:6] == ["types", "heap", "types", "heap", "types", "heap"]
    # A pair costs 0.45 s and so comes once in 9 s and a little more, as units end once a second.
    assert 55 <= log.count("heap") <= 67
    assert budget.spent_ns <= 0.05 * clock.now + 400_000_000


def test_a_probe_that_is_alone_is_not_kept_waiting():
    clock = Clock()
    budget = Budget(0.5, clock)
    log = run(clock, [Measurer("types", budget, clock, 1_000_000_000)], 100)
    # 1 s of measuring, 2 s until due, at most 1 s of giving way, one unit's rounding.
    assert len(log) >= 100 / 5


def test_nobody_measures_before_the_budget_allows():
    clock = Clock()
    budget = Budget(0.05, clock)
    measurer = Measurer("heap", budget, clock, 1_000_000_000)
    log = []
    measurer.opportunity(log)
    clock.now += 48_900_000_000  # at 49.9 s: 1 s spent and 1.5 s to come are over 5 %
    measurer.opportunity(log)
    assert log == ["heap"]
    clock.now += 200_000_000
    measurer.opportunity(log)  # lets one pass, since it was the last
    measurer.opportunity(log)
    assert log == ["heap", "heap"]


def test_measurements_that_grow_dearer_stay_within_the_share():
    clock = Clock()
    budget = Budget(0.05, clock)
    cost_ns = 1_000_000
    taken = 0
    while clock.now < 600_000_000_000:
        if budget.is_due():
            with budget.measured():
                clock.now += cost_ns
            cost_ns = int(cost_ns * 1.4)
            taken += 1
        clock.now += 10_000_000
    assert budget.spent_ns <= 0.05 * clock.now
    assert taken > 10
