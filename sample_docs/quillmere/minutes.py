"""The minutes of a year: twelve meetings, each with the same items and one topic of its own."""

from __future__ import annotations

from collections.abc import Iterator

from sample_docs.quillmere.blocks import Block, Document, Heading, Note, Paragraph, table
from sample_docs.quillmere.chance import Chance
from sample_docs.quillmere.months_report import bursts, supply
from sample_docs.quillmere.places import MONTHS, WORKS
from sample_docs.quillmere.prose import prose
from sample_docs.quillmere.voice import Voice, count
from sample_docs.quillmere.water import YEAR, districts, output


def minutes() -> Document:
    return Document(
        title=f"Minutes of the board, {YEAR}",
        subtitle="Quillmere Water Board – a fictional utility. Members are named by their office.",
        blocks=tuple(_blocks()),
    )


def _blocks() -> Iterator[Block]:
    written = prose("minutes")
    voice = Voice("minutes", {**written["items"], "opening": written["opening"]})
    network = Voice("minutes of operations", prose("report")["month"])
    for month, name in enumerate(MONTHS):
        chance = Chance("minutes", name)
        yield Heading(1, f"Meeting on the {name} report")
        yield Paragraph(voice.say("opening"))
        yield Heading(2, f"{name}: matters arising")
        actions = chance.whole(6, 14)
        yield Paragraph(voice.say("arising", actions=actions, closed=actions - chance.whole(1, 5)))
        yield from _operations(month, voice, network)
        yield from _quality(month, voice, chance)
        yield from _works(month, voice)
        yield from _customers(month, voice, chance)
        yield from _finance(month, voice, chance)
        topic = written["topic"][month]
        yield Heading(2, topic["title"])
        yield Paragraph(topic["text"])
        yield Note(f"Decided: {topic['decision']}")


def _operations(month: int, voice: Voice, network: Voice) -> Iterator[Block]:
    yield Heading(2, f"{MONTHS[month]}: operations")
    yield Paragraph(f"{supply(month, network)} {bursts(month, network)}")
    yield Paragraph(voice.say("operations_asked"))
    yield table(
        f"Water sent out in {MONTHS[month]} (thousand m³)",
        ("Works", "Sent out"),
        [(works[0], output(number)[month]) for number, works in enumerate(WORKS)],
        total=(1,),
    )


def _quality(month: int, voice: Voice, chance: Chance) -> Iterator[Block]:
    parameter = prose("report")["quality"][month]
    yield Heading(2, f"{MONTHS[month]}: water quality, {parameter['name']}")
    samples = chance.whole(310, 520)
    yield Paragraph(
        f"{voice.say('quality_samples', samples=samples, repeats=chance.whole(2, 9))} "
        f"{voice.say('quality_noted', meaning=parameter['meaning'])}"
    )


def _works(month: int, voice: Voice) -> Iterator[Block]:
    done = [(d, s) for d in districts() for s in d.schemes if s.finished == month]
    yield Heading(2, f"{MONTHS[month]}: renewal of mains")
    if not done:
        yield Paragraph(voice.say("works_none"))
        return
    told = voice.say(
        "works_some",
        schemes=count(len(done), "scheme"),
        metres=sum(scheme.metres for _, scheme in done),
        cost=sum(scheme.cost for _, scheme in done),
    )
    yield Paragraph(f"{told} {voice.say('works_said')}")
    yield table(
        f"Schemes finished in {MONTHS[month]}",
        ("District", "Street", "Metres", "Thousand crowns"),
        [(d.name, s.street, s.metres, s.cost) for d, s in done],
        total=(2, 3),
    )


def _customers(month: int, voice: Voice, chance: Chance) -> Iterator[Block]:
    yield Heading(2, f"{MONTHS[month]}: customers")
    told = voice.say(
        "customers",
        calls=chance.whole(900, 3100),
        answered=chance.whole(71, 94),
        letters=chance.whole(60, 240),
    )
    yield Paragraph(f"{told} {voice.say('customers_said')}")


def _finance(month: int, voice: Voice, chance: Chance) -> Iterator[Block]:
    yield Heading(2, f"{MONTHS[month]}: finance")
    yield Paragraph(voice.say("finance"))
    kinds = ("Staff", "Energy", "Chemicals", "Repairs", "Other")
    rows = [(kind, chance.whole(120, 2400), chance.whole(-90, 110)) for kind in kinds]
    yield table(
        f"Expenditure in {MONTHS[month]} (thousand crowns)",
        ("Kind", "Budget", "Spent"),
        [(kind, budget, budget + difference) for kind, budget, difference in rows],
        total=(1, 2),
    )
