"""Letting go at the end of a run, step by step, and what each step gives back."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from diagnostics.recording.model import SettlementName, SettlementStep

Release = Callable[[], object]
"""Lets go of the run's result."""


_NEVER = 2**31 - 88
"""A threshold that no count of objects exceeds, and no program would choose: it is ours."""


@contextmanager
def without_collections() -> Iterator[None]:
    """The collector does not run by itself inside ``with``.

    Whether it is enabled is left to the program, which may run meanwhile: what it says with
    ``gc.disable()``, ``gc.enable()`` or ``gc.set_threshold()`` holds afterwards.
    """
    before = gc.get_threshold()
    gc.set_threshold(_NEVER, *before[1:])
    try:
        yield
    finally:
        if gc.get_threshold()[0] == _NEVER:
            gc.set_threshold(*before)


class Settlement:
    """Takes the steps of letting go and measures each: the resident set, the live Python bytes.

    ``live_python`` tells the live Python bytes, or None where nobody counts them. ``say`` gets a
    sentence about what a step could not do here. ``first_position`` numbers the steps on from
    those of an earlier settlement.
    """

    def __init__(
        self,
        now_ns: Callable[[], int],
        live_python: Callable[[], int | None],
        say: Callable[[str], None],
        first_position: int = 1,
    ) -> None:
        # Imported here: code that only carries unit marks must not pay for it.
        from diagnostics.probes.resident import ResidentSet

        self._now_ns = now_ns
        self._live_python = live_python
        self._say = say
        self._position = first_position
        self._resident = ResidentSet()

    def steps(self, release: Release | None = None) -> Iterator[SettlementStep]:
        """Each step is taken when it is asked for: ``release`` where there is something to let go
        of, a full collection, and ``malloc_trim`` where the C library has it.

        What ``release`` raises goes on to the caller, and ends the settlement: whoever wants the
        other steps none the less keeps it back.
        """
        if release is not None:
            yield self._measured("result released", lambda: (_blocks_freed(release), 0))
        frozen = gc.get_freeze_count()
        if frozen:
            self._say(f"{frozen:,} objects are frozen (gc.freeze) and out of the collector's reach")
        yield self._measured("collection", _collected)
        trim = self._trimmer()
        if trim is not None:
            yield self._measured("malloc_trim", trim)

    def _measured(self, name: SettlementName, act: Callable[[], tuple[int, int]]) -> SettlementStep:
        """Take one step; ``act`` tells how many objects it freed and how many it had to leave."""
        python_before, rss_before = self._live_python(), self._resident.read()
        objects, uncollectable = act()
        rss_after, python_after = self._resident.read(), self._live_python()
        step = SettlementStep(
            position=self._position,
            step=name,
            t_ns=self._now_ns(),
            rss_before=rss_before,
            rss_after=rss_after,
            python_before=python_before,
            python_after=python_after,
            objects=objects,
            uncollectable=uncollectable,
        )
        self._position += 1
        return step

    def _trimmer(self) -> Callable[[], tuple[int, int]] | None:
        from diagnostics.probes.malloc import MallocMissingError, malloc_trimmer

        try:
            malloc_trim = malloc_trimmer()
        except (ImportError, MallocMissingError) as missing:
            self._say(f"malloc could not be asked to give back what is free: {missing}")
            return None

        def trim() -> tuple[int, int]:
            malloc_trim()
            return 0, 0

        return trim


def _blocks_freed(release: Release) -> int:
    """How many small blocks fewer there are afterwards: most objects are one or two of them.

    Counting the objects themselves would take a list of all that the collector knows.
    """
    before = sys.getallocatedblocks()
    release()
    return max(0, before - sys.getallocatedblocks())


def _collected() -> tuple[int, int]:
    before = gc.get_stats()[-1]["uncollectable"]
    found = gc.collect()
    uncollectable = gc.get_stats()[-1]["uncollectable"] - before
    return found - uncollectable, uncollectable
