"""Which types of object became more in the course of a run."""

from __future__ import annotations

from dataclasses import dataclass

from diagnostics.recording.reader import RecordingReader


@dataclass(frozen=True, slots=True)
class TypeGrowth:
    """One type: how many objects of it there were at the end, and how many more than at first."""

    name: str
    count: int
    growth: int


def type_growth(reader: RecordingReader, most: int = 20) -> list[TypeGrowth]:
    """The ``most`` types that grew most between the first count and the last one.

    Types that did not grow come after, by count. Empty where no types were counted.
    """
    last = reader.state_at("types", reader.last_ns())
    first = next(reader.frames("types"), None)
    if first is None or last is None:
        return []
    names = reader.types()
    found = [
        TypeGrowth(
            name=names.get(type_id, f"type {type_id}"),
            count=count,
            growth=count - first.values.get(type_id, (0,))[0],
        )
        for type_id, (count,) in last.values.items()
    ]
    return sorted(found, key=lambda row: (-row.growth, -row.count, row.name))[:most]
