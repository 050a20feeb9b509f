"""The operations handbook: a chapter for each kind of equipment, with the same sections."""

from __future__ import annotations

from collections.abc import Iterator

from sample_docs.quillmere.blocks import Block, Document, Heading, Note, Paragraph, Steps, table
from sample_docs.quillmere.chance import Chance
from sample_docs.quillmere.places import DISTRICTS
from sample_docs.quillmere.prose import prose
from sample_docs.quillmere.voice import Voice

# Inspection, then test: these two have a table of their own.
_INSPECTION, _TEST = 0, 1


def handbook() -> Document:
    return Document(
        title="Operations handbook",
        subtitle="Quillmere Water Board – a fictional utility",
        blocks=tuple(_blocks()),
    )


def _blocks() -> Iterator[Block]:
    written = prose("handbook")
    voice = Voice("handbook", {str(n): a["why"] for n, a in enumerate(written["activity"])})
    for text in written["introduction"]:
        yield Paragraph(text)
    for equipment in written["equipment"]:
        chance = Chance("handbook", equipment["name"])
        yield Heading(1, equipment["name"].capitalize())
        yield Note(f"The danger is {equipment['danger']}.")
        for number, activity in enumerate(written["activity"]):
            yield Heading(2, activity["title"].format(**equipment))
            yield Paragraph(voice.say(str(number), **equipment))
            yield Steps(tuple(_sentence(step.format(**equipment)) for step in activity["steps"]))
            if number in (_INSPECTION, _TEST):
                done = ("Inspected", "Tested")[number]
                rows = [
                    (place[0], chance.whole(4, 90), chance.whole(2, 60), chance.whole(0, 7))
                    for place in DISTRICTS[number::3]
                ]
                yield table(
                    f"{done} last year: {equipment['name']}",
                    ("District", "First half", "Second half", "Faults found"),
                    rows,
                    total=(1, 2, 3),
                )


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]
