"""One year of the board's water: every figure in the documents comes from here, and adds up."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from sample_docs.quillmere.chance import Chance
from sample_docs.quillmere.places import (
    CAUSES,
    CONTACTS,
    DIAMETERS,
    DISTRICTS,
    DRY_SPELL,
    FROST,
    MATERIALS,
    MONTHS,
    STREET_KINDS,
    STREET_NAMES,
    WORKS,
)

YEAR = 2024
_SEASON = (0.95, 0.93, 0.95, 0.98, 1.04, 1.12, 1.16, 1.13, 1.03, 0.97, 0.94, 0.96)
_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_BREAKS = (3.0, 2.4, 1.3, 0.7, 0.6, 0.9, 1.3, 1.5, 1.0, 0.6, 0.9, 2.0)


@dataclass(frozen=True)
class Burst:
    month: int
    day: int
    street: str
    material: str
    diameter_mm: int
    cause: int
    properties: int
    hours: int


@dataclass(frozen=True)
class Scheme:
    """A length of main that was renewed; the cost is in thousand crowns."""

    street: str
    metres: int
    old: str
    new: str
    diameter_mm: int
    cost: int
    finished: int


@dataclass(frozen=True)
class District:
    """Water in thousand m³, mains in km, leakage in m³ a km a day."""

    name: str
    chinese: str
    where: str
    works: int
    people: int
    connections: int
    mains: dict[str, int]
    supplied: tuple[int, ...]
    supplied_before: int
    bursts: tuple[Burst, ...]
    schemes: tuple[Scheme, ...]
    leakage: float
    leakage_before: float
    samples: int
    failed: int
    contacts: dict[str, int]
    pressure_m: int

    @property
    def mains_km(self) -> int:
        return sum(self.mains.values())

    def bursts_by_month(self) -> tuple[int, ...]:
        return tuple(sum(b.month == month for b in self.bursts) for month in range(12))


@cache
def districts() -> tuple[District, ...]:
    return tuple(_district(*place) for place in DISTRICTS)


def served_by(works: int) -> tuple[District, ...]:
    return tuple(district for district in districts() if district.works == works)


def output(works: int) -> tuple[int, ...]:
    """What a works sent out each month: what its districts took, to the last m³."""
    served = served_by(works)
    return tuple(sum(d.supplied[month] for d in served) for month in range(12))


def all_bursts() -> list[tuple[District, Burst]]:
    """Every burst of the year in order."""
    found = [(district, burst) for district in districts() for burst in district.bursts]
    return sorted(found, key=lambda pair: (pair[1].month, pair[1].day, pair[0].name))


def _district(name: str, chinese: str, where: str) -> District:
    chance = Chance("district", name)
    people = chance.whole(9_000, 52_000)
    streets = _streets(chance)
    monthly = [
        round(people * 0.148 * _DAYS[m] * _SEASON[m] * chance.between(0.97, 1.03) / 1000)
        for m in range(12)
    ]
    mains_km = people // 330 + chance.whole(10, 60)
    weights = [chance.between(0.3, 3.0) for _ in MATERIALS]
    leakage_before = chance.between(6.5, 19.0)
    samples = people // 210 + chance.whole(20, 60)
    return District(
        name=name,
        chinese=chinese,
        where=where,
        works=[place[0] for place in DISTRICTS].index(name) % len(WORKS),
        people=people,
        connections=round(people / chance.between(2.2, 2.7)),
        mains=dict(zip(MATERIALS, chance.split(mains_km, weights), strict=True)),
        supplied=tuple(monthly),
        supplied_before=round(sum(monthly) * chance.between(0.96, 1.04)),
        bursts=_bursts(chance, streets, mains_km),
        schemes=_schemes(chance, streets),
        leakage=leakage_before * chance.between(0.78, 1.09),
        leakage_before=leakage_before,
        samples=samples,
        failed=max(0, chance.whole(-3, 3)),
        contacts={subject: people // chance.whole(260, 1400) for subject in CONTACTS},
        pressure_m=chance.whole(24, 58),
    )


def _streets(chance: Chance) -> list[str]:
    return [f"{name} {chance.pick(STREET_KINDS)}" for name in chance.shuffled(STREET_NAMES)]


def _bursts(chance: Chance, streets: list[str], mains_km: int) -> tuple[Burst, ...]:
    bursts = []
    for month in range(len(MONTHS)):
        expected = mains_km * 0.0062 * _BREAKS[month]
        bursts += [
            Burst(
                month=month,
                day=chance.whole(1, _DAYS[month]),
                street=chance.pick(streets),
                material=chance.pick(MATERIALS),
                diameter_mm=chance.pick(DIAMETERS),
                cause=chance.pick(_causes(month)),
                properties=chance.whole(8, 640),
                hours=chance.whole(2, 19),
            )
            for _ in range(int(expected + chance.between(0, 1)))
        ]
    return tuple(sorted(bursts, key=lambda burst: (burst.month, burst.day)))


def _causes(month: int) -> list[int]:
    """The causes that can be had in ``month``: no frost in summer, no drought in winter."""
    out_of_season = {
        DRY_SPELL: not 5 <= month <= 9,
        FROST: 2 <= month <= 10,
    }
    return [cause for cause in range(len(CAUSES)) if not out_of_season.get(cause, False)]


def _schemes(chance: Chance, streets: list[str]) -> tuple[Scheme, ...]:
    schemes = []
    for street in streets[: chance.whole(3, 5)]:
        metres = chance.whole(14, 190) * 10
        diameter = chance.pick(DIAMETERS)
        schemes.append(
            Scheme(
                street=street,
                metres=metres,
                old=chance.pick(("cast iron", "asbestos cement", "steel", "PVC")),
                new=chance.pick(("polyethylene", "ductile iron")),
                diameter_mm=diameter,
                cost=round(metres * (0.18 + diameter / 900) * chance.between(0.85, 1.2)),
                finished=chance.whole(2, 11),
            )
        )
    return tuple(schemes)
