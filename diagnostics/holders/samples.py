"""Samples of the sampled heap engine, as a capture reads them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from diagnostics.probes.own import is_own_frame


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


_MOST_READ = 20_000
"""Of more samples than these every n-th is looked at, and stands for n."""


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
        self._numbers = memoryview(samples()).cast("q")
        self.places = [Place(0, "", "", 0), *(Place(*node) for node in nodes(1))]
        self._own = [False]
        for place in self.places[1:]:
            own = is_own_frame(place.file, hosted)
            self._own.append(self._own[place.parent] if own is None else own)

    def __iter__(self) -> Iterator[Sample]:
        """Live samples that are the program's and not the workbench's.

        Their weights add up to what all of them stand for, also where some are passed over.
        """
        every = -(-len(self._numbers) // (_MOST_READ * _WIDTH)) or 1
        for start in range(0, len(self._numbers), _WIDTH * every):
            sample = Sample._make(self._numbers[start : start + _WIDTH])
            if not self._own[sample.site]:
                yield sample._replace(weight=sample.weight * every) if every > 1 else sample

    def births(self, addresses: Collection[int]) -> dict[int, tuple[int, int]]:
        """The birth unit and the site of those of the blocks that are samples, by address."""
        return {
            address: (self._numbers[place * _WIDTH + 3], self._numbers[place * _WIDTH + 4])
            for place, address in enumerate(self._numbers[::_WIDTH].tolist())
            if address in addresses
        }
