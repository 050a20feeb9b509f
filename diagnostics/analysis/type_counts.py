"""How the number of objects of each type went over the units, since a unit that is chosen.

Nothing is collected for a count, so garbage that waits for the collector is in it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import pandas as pd

from diagnostics.analysis.format import format_count
from diagnostics.recording.reader import RecordingReader


@dataclass(frozen=True, slots=True)
class CountMark:
    """A moment at which the objects were counted: at the end of ``unit``, or, where that is 0,
    outside any unit, such as after the last one. ``last_unit`` is the newest unit that had begun.
    """

    t_ns: int
    unit: int
    last_unit: int


@dataclass(frozen=True, slots=True)
class TypeCourse:
    """One type: how many objects of it there were at each of the marks, in order."""

    name: str
    counts: tuple[int, ...]

    @property
    def growth(self) -> int:
        return self.counts[-1] - self.counts[0]

    @property
    def steadiness(self) -> float:
        """The share of the steps from mark to mark in which it became more, 0 to 1."""
        rises = [after > before for before, after in pairwise(self.counts)]
        return sum(rises) / len(rises) if rises else 0.0


def count_marks(reader: RecordingReader) -> list[CountMark]:
    """When the objects were counted; empty where they never were."""
    begun = sorted((unit.start_ns, unit.index) for unit in reader.units())
    newest = [0, *accumulate((index for _, index in begun), max)]
    starts = [start_ns for start_ns, _ in begun]
    return [
        CountMark(state.t_ns, state.unit, newest[bisect_right(starts, state.t_ns)])
        for state in reader.frames("types")
    ]


def type_courses(
    reader: RecordingReader, marks: Sequence[CountMark], most: int = 12
) -> list[TypeCourse]:
    """The ``most`` types that grew most from the first of ``marks`` to the last, from
    ``count_marks``. Types that did not become more are left out; empty with fewer than two marks.
    """
    if len(marks) < 2:
        return []
    start, end = marks[0].t_ns, marks[-1].t_ns
    first, last = reader.state_at("types", start), reader.state_at("types", end)
    if first is None or last is None:
        return []
    before = dict(first.values)
    growth = {key: count - before.get(key, (0,))[0] for key, (count,) in last.values.items()}
    grown = [key for key in growth if growth[key] > 0]
    chosen = sorted(grown, key=lambda key: (-growth[key], key))[:most]
    counts: dict[int, list[int]] = {key: [] for key in chosen}
    for state in reader.frames("types", after_ns=start - 1, until_ns=end):
        for key, course in counts.items():
            course.append(state.values.get(key, (0,))[0])
    names = reader.types()
    return [
        TypeCourse(names.get(key, f"type {key}"), tuple(course)) for key, course in counts.items()
    ]


def course_table(courses: Sequence[TypeCourse]) -> pd.DataFrame:
    """One row a type: ``type``, ``then``, ``now``, ``growth`` (texts), ``steadiness`` (per
    cent)."""
    return pd.DataFrame(
        [
            (
                course.name,
                format_count(course.counts[0]),
                format_count(course.counts[-1]),
                f"{course.growth:+,}",
                100 * course.steadiness,
            )
            for course in courses
        ],
        columns=["type", "then", "now", "growth", "steadiness"],
    )
