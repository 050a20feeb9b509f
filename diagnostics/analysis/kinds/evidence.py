"""What the rules judge by: numbers, drawn from a recording once.

Sizes are bytes. A figure is None where the recording does not hold what it is made of: an engine
that was off, a probe that was missing, a run that was not settled.
"""

from __future__ import annotations

from dataclasses import dataclass

from diagnostics.analysis.shape import Shape
from diagnostics.analysis.suspects import Held

STEADY = 0.5
"""A growth goes on while its late slope is at least this part of its whole slope."""


@dataclass(frozen=True, slots=True)
class Growth:
    """How a quantity went over the run, above its value at the run's start.

    ``open`` is its value when the first unit began, ``warm`` when the warm-up was over, ``end``
    when the last unit ended, ``highest`` its highest. ``per_unit`` is the slope over the units
    after the warm-up (Theil-Sen: the median of the slopes between all pairs), ``late`` the same
    over their second half.
    """

    open: int
    warm: int
    end: int
    highest: int
    per_unit: float
    late: float

    @property
    def over_units(self) -> int:
        """What came after the warm-up and was there at the end."""
        return max(0, self.end - self.warm)

    @property
    def goes_on(self) -> bool:
        """Whether it rises with the units, and late as well as early."""
        return self.per_unit > 0 and self.late >= STEADY * self.per_unit


@dataclass(frozen=True, slots=True)
class Spike:
    """A unit whose own peak stands out from the others'."""

    label: str
    bytes: int
    usual: int
    kept: int
    method: str


@dataclass(frozen=True, slots=True)
class Retained:
    """What units left behind, from the birth units. None of it counts the newest unit.

    ``total`` was alive of ``units`` ended units when the last one ended, in ``alive_units`` of
    them; ``each`` is the median of what they left and ``peak_each`` of what they needed at most,
    both without the warm-up. ``later`` is what of ``total`` was alive in the end. ``failed`` and
    ``finished`` are the medians of what units with and without an error left, ``failed_total``
    what those with one left together, ``first`` what the very first one left. What the first one
    imported is left out of ``first`` and ``total``.

    ``tail`` is how many of the newest units were alive while all before them were gone, 0 where
    that is not the picture; ``lag`` how many units were alive at once, at most, after each quarter
    of the units (empty where the frames are too far apart). ``refilled`` is the part of a unit's
    retention that another line had made before, at the same places of a library, and that was
    freed, 0 to 1. ``survived`` is the part of what older units had left that a full collection
    left alive while units went on, 0 to 1; None where none came upon 1 MB or more. ``spike`` is the
    unit that stands out in Python memory alone.
    """

    shape: Shape
    units: int
    alive_units: int
    total: int
    each: int
    peak_each: int
    later: int
    failed_units: int
    failed_total: int
    failed: int
    finished: int
    first: int
    tail: int
    lag: tuple[int, ...]
    refilled: float
    survived: float | None
    spike: Spike | None


@dataclass(frozen=True, slots=True)
class Settled:
    """What letting go step by step gave back, in bytes of RSS and of live Python blocks."""

    result_rss: int
    result_python: int
    collection_rss: int
    collection_python: int
    objects: int
    uncollectable: int
    trim_rss: int | None
    left_rss: int
    left_python: int | None


@dataclass(frozen=True, slots=True)
class Left:
    """The ledger's last reading, above its first. ``after_settlement`` tells whether it came when
    everything had been let go."""

    after_settlement: bool
    python: int | None
    slack: int | None
    native: int | None
    native_free: int | None


@dataclass(frozen=True, slots=True)
class Follower:
    """A type whose count rises with the units: ``per_unit`` more objects a unit."""

    name: str
    per_unit: float
    growth: int


@dataclass(frozen=True, slots=True)
class Collector:
    """What the collector did while units went on, and what the drops of the heap came from.

    ``full`` counts collections of the oldest generation in the second half of the units.
    ``by_collector`` and ``by_count`` are bytes of drops. ``largest`` is the largest drop that the
    collector caused, ``after_it`` what was alive after it. ``plateau``: the heap's highest values
    do not rise any more.
    """

    full: int
    by_collector: int
    by_count: int
    largest: int
    after_it: int
    plateau: bool


@dataclass(frozen=True, slots=True)
class ReleaseCall:
    """A line of people's own code that releases something in the loop that also allocates."""

    file: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class KnownCode:
    """What stacks through the code of a known library held (an ``entry`` of ``libraries.json``, by
    its place): the most bytes at one time, and the mean size of the widest blocks of one line."""

    entry: int
    bytes: int
    widest: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything that the rules may look at.

    ``base`` is the most that the process took above its start, children's growth included: what a
    verdict has to explain. It is without what the heap engine's tables gained, as all that counts
    native memory or the resident set is; ``own_freed`` is what those tables had at most and gave up
    again. ``need`` is what the loader usually has in use at a time (three quarters of the readings
    are below), above the start, ``unit_need`` what one of the first units took at a time and let go
    of. ``slack`` is pymalloc's empty space and ``free`` what malloc had free, both before anything
    was let go. ``opened`` is what was allocated before the first unit (imports apart) and still
    there when the last one ended, in Python blocks; ``outside`` what came to that while units went
    on. ``packages`` are the libraries that stacks and mapped files tell of, those first through
    which most memory came. ``captured_at_end``: the suspects are those of after the last unit;
    ``capture_cut_off``: the capture that has them ran out of its time.
    """

    kind: str
    units: int
    state: str
    engine: str
    document_bytes: int | None
    produced: int
    base: int
    need: int | None
    unit_need: int | None
    rss: Growth | None
    python: Growth | None
    native: Growth | None
    slack: Growth | None
    free: Growth | None
    children: Growth | None
    group: Growth | None
    group_cache: Growth | None
    retained: Retained | None
    opened: int | None
    outside: int | None
    settled: Settled | None
    left: Left | None
    suspects: tuple[Held, ...]
    capture_complete: bool | None
    capture_cut_off: bool
    captured_at_end: bool
    followers: tuple[Follower, ...]
    collector: Collector
    spike: Spike | None
    own_freed: int
    releases: tuple[ReleaseCall, ...]
    known: tuple[KnownCode, ...]
    packages: tuple[str, ...]
