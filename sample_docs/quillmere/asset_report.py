"""The chapters on works, water quality, reservoirs and pumping stations."""

from __future__ import annotations

from collections.abc import Iterator

from sample_docs.quillmere.blocks import Bars, Block, Heading, Paragraph, table
from sample_docs.quillmere.chance import Chance
from sample_docs.quillmere.places import MONTHS, WORKS
from sample_docs.quillmere.prose import prose
from sample_docs.quillmere.voice import Voice, listing
from sample_docs.quillmere.water import District, districts, output, served_by


def treatment_works() -> Iterator[Block]:
    """A page or more for each works."""
    voice = Voice("works", prose("report")["assets"])
    balance = Voice("balance", prose("report")["raw"])
    for works, (name, _, source, capacity) in enumerate(WORKS):
        chance = Chance("works", name)
        monthly, served = output(works), served_by(works)
        yield Heading(2, name)
        yield Paragraph(
            voice.say(
                "plant",
                name=name,
                source=source,
                capacity=capacity,
                total=sum(monthly),
                mean=sum(monthly) / 366,
                served=listing([district.name for district in served]),
            )
            + " "
            + voice.say("plant_process")
        )
        for _ in range(2):
            yield Paragraph(_events(voice, chance))
        yield Bars(
            f"{name}: water sent out, thousand m³",
            tuple(month[:3] for month in MONTHS),
            monthly,
        )
        yield table(
            f"{name}: where the water went (thousand m³)",
            ("District", "First half", "Second half", "Year"),
            [(d.name, sum(d.supplied[:6]), sum(d.supplied[6:]), sum(d.supplied)) for d in served],
            total=(1, 2, 3),
        )
        yield Paragraph(f"{balance.say('month_table')} {balance.say('own_use')}")
        own = [round(sent * chance.between(0.02, 0.06)) for sent in monthly]
        yield table(
            f"{name}: balance of the works (thousand m³)",
            ("Month", "Taken from the source", "Own use", "Sent out"),
            [(MONTHS[m], sent + own[m], own[m], sent) for m, sent in enumerate(monthly)],
            total=(1, 2, 3),
        )
        energy = chance.whole(24, 46)
        yield Paragraph(
            voice.say(
                "plant_cost",
                unit=chance.between(1.1, 3.4),
                energy=energy,
                chemicals=chance.whole(9, 22),
            )
            + " "
            + voice.say("plant_next")
        )


def _events(voice: Voice, chance: Chance) -> str:
    return " ".join(
        voice.say(
            what,
            month=chance.pick(MONTHS),
            turbidity=chance.whole(31, 78),
            hours=chance.whole(3, 30),
        )
        for what in ("plant_raw", "plant_trouble")
    )


def water_quality() -> Iterator[Block]:
    """Each parameter with its limit, and the samples by district."""
    chance = Chance("quality")
    for parameter in prose("report")["quality"]:
        name = parameter["name"]
        yield Heading(2, name)
        limit = f"{parameter['limit']} {parameter['unit']}".strip()
        yield Paragraph(f"{parameter['meaning']} The limit is {limit}.")
        yield table(
            f"{name}: samples by works",
            ("Works", "At the outlet", "In the network", "Repeated"),
            [
                (works[0], chance.whole(40, 366), chance.whole(80, 420), chance.whole(0, 6))
                for works in WORKS
            ],
            total=(1, 2, 3),
        )
    yield Heading(2, "Samples by district")
    yield table(
        "Samples at customers' taps",
        ("District", "Samples", "Failed"),
        [(d.name, d.samples, d.failed) for d in districts()],
        total=(1, 2),
    )


def reservoirs_and_pumps() -> Iterator[Block]:
    """Every second district has a reservoir or a pumping station of its own."""
    voice = Voice("assets", prose("report")["assets"])
    for number, district in enumerate(districts()):
        chance = Chance("assets", district.name)
        if number % 2:
            yield Heading(2, f"{district.name} pumping station")
            yield Paragraph(_pump(voice, chance))
            yield table(
                f"{district.name} pumping station: hours run",
                ("Pump", "First quarter", "Second quarter", "Third quarter", "Fourth quarter"),
                [(f"Pump {n}", *(chance.whole(90, 1900) for _ in range(4))) for n in (1, 2, 3)],
                total=(1, 2, 3, 4),
            )
        else:
            yield Heading(2, f"{district.name} reservoir")
            yield Paragraph(_reservoir(voice, chance, district))
            days = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
            yield Bars(
                f"{district.name} reservoir: lowest level in a July week, cm",
                days,
                tuple(chance.whole(110, 430) for _ in days),
            )


def _pump(voice: Voice, chance: Chance) -> str:
    first = voice.say(
        "pump",
        flow=chance.whole(9, 70) * 10,
        head=chance.whole(18, 92),
        pumps=chance.whole(3, 5),
        energy=chance.whole(140, 2300),
        hours=chance.whole(9, 24) * 1000 + chance.whole(0, 999),
    )
    months = chance.shuffled(MONTHS)
    return " ".join((first, *(voice.say("pump_state", month=month) for month in months[:2])))


def _reservoir(voice: Voice, chance: Chance, district: District) -> str:
    first = voice.say(
        "reservoir",
        place=district.name,
        volume=chance.whole(12, 130) * 100,
        served=f"{district.name} and the upper part of its neighbours",
        height=chance.whole(48, 171),
        age=chance.whole(14, 52),
        built=chance.whole(1896, 1994),
    )
    months = chance.shuffled(MONTHS)
    return " ".join((first, *(voice.say("reservoir_state", month=month) for month in months[:2])))
