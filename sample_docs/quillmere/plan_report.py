"""The chapter on the work of the coming year, district by district."""

from __future__ import annotations

from collections.abc import Iterator

from sample_docs.quillmere.blocks import Block, Heading, Paragraph, table
from sample_docs.quillmere.chance import Chance
from sample_docs.quillmere.places import DIAMETERS, STREET_KINDS, STREET_NAMES
from sample_docs.quillmere.prose import prose
from sample_docs.quillmere.voice import Voice
from sample_docs.quillmere.water import districts


def planned_work() -> Iterator[Block]:
    """For each district what comes first, how, and what it costs."""
    voice = Voice("plan", prose("report")["plan"])
    for district in districts():
        chance = Chance("plan", district.name)
        names = chance.shuffled(STREET_NAMES)[: chance.whole(3, 4)]
        streets = [f"{name} {chance.pick(STREET_KINDS)}" for name in names]
        yield Heading(2, f"{district.name}: planned work")
        yield Paragraph(
            " ".join(
                (
                    voice.say(
                        "reason",
                        street=streets[0],
                        material=chance.pick(("cast iron", "asbestos cement", "steel")),
                        times=chance.pick(("four", "five", "six", "seven", "nine")),
                    ),
                    voice.say("way"),
                    voice.say("people", properties=chance.whole(40, 420)),
                )
            )
        )
        yield table(
            f"{district.name}: mains to be renewed",
            ("Street", "New main", "Metres", "Thousand crowns"),
            [
                (
                    street,
                    f"polyethylene {chance.pick(DIAMETERS)} mm",
                    chance.whole(12, 150) * 10,
                    chance.whole(60, 720),
                )
                for street in streets
            ],
            total=(2, 3),
        )
