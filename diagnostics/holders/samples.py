"""Samples of the sampled heap engine, as a capture reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from diagnostics.probes.own import is_own_file, is_standard_library


class Sample(NamedTuple):
    """One live block; ``weight`` is what it stands for in bytes, ``site`` its allocation stack."""

    address: int
    size: int
    weight: int
    unit: int
    site: int
    birth_ns: int
    thread: int


class Place(NamedTuple):
    """A node in the tree of allocation stacks; ``parent`` is the site of the caller, 0 for none."""

    parent: int
    file: str
    function: str
    line: int


_WIDTH = len(Sample._fields)


def read_samples(rows: bytes) -> Iterator[Sample]:
    """The samples in rows of 64-bit integers, one at a time: there may be hundreds of thousands."""
    numbers = memoryview(rows).cast("q")
    for start in range(0, len(numbers), _WIDTH):
        yield Sample._make(numbers[start : start + _WIDTH])


class SampledHeap:
    """What the engine's core tells: the live samples, and the stacks behind their sites.

    ``samples`` and ``nodes`` are the core's functions of these names.
    """

    def __init__(
        self,
        samples: Callable[[], bytes],
        nodes: Callable[[int], Sequence[tuple[int, str, str, int]]],
        *,
        hosted: bool,
    ) -> None:
        self._rows = samples()
        self.places = [Place(0, "", "", 0), *(Place(*node) for node in nodes(1))]
        self._own = [False]
        for place in self.places[1:]:
            # The nearest frame outside the standard library decides, as in own.is_own_stack.
            self._own.append(
                is_own_file(place.file, hosted)
                or (is_standard_library(place.file) and self._own[place.parent])
            )

    def __iter__(self) -> Iterator[Sample]:
        """Every live sample that is the program's and not the workbench's."""
        for sample in read_samples(self._rows):
            if not self._own[sample.site]:
                yield sample
