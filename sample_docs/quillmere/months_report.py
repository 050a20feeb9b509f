"""The year month by month: a page for each."""

from __future__ import annotations

from collections.abc import Iterator

from sample_docs.quillmere.blocks import Bars, Block, Heading, NewPage, Paragraph, table
from sample_docs.quillmere.chance import Chance
from sample_docs.quillmere.places import CAUSES, MONTHS, WORKS
from sample_docs.quillmere.prose import prose
from sample_docs.quillmere.voice import Voice, count
from sample_docs.quillmere.water import all_bursts, districts, output


def month_pages() -> Iterator[Block]:
    """Weather, supply, bursts, the control room, and a table of all districts."""
    voice = Voice("months", prose("report")["month"])
    chance = Chance("months")
    for month, name in enumerate(MONTHS):
        yield Heading(2, name)
        yield Paragraph(f"{prose('report')['month']['weather'][month]} {supply(month, voice)}")
        alarms = chance.whole(140, 610)
        control = voice.say("control", alarms=alarms, false=alarms // chance.whole(4, 9))
        yield Paragraph(f"{bursts(month, voice)} {control}")
        yield table(
            f"{name}: supply and bursts by district",
            ("District", "Supplied (thousand m³)", "Bursts", "Properties without water"),
            [
                (
                    d.name,
                    d.supplied[month],
                    d.bursts_by_month()[month],
                    sum(b.properties for b in d.bursts if b.month == month),
                )
                for d in districts()
            ],
            total=(1, 2, 3),
        )
        yield Bars(
            f"{name}: water sent out by each works, thousand m³",
            tuple(works[0] for works in WORKS),
            tuple(output(works)[month] for works in range(len(WORKS))),
        )
        yield NewPage()


def supply(month: int, voice: Voice) -> str:
    """A sentence on what the works sent out."""
    by_works = [output(works)[month] for works in range(len(WORKS))]
    sent, most = sum(by_works), WORKS[by_works.index(max(by_works))][0]
    if month == 0:
        return voice.say("first", sent=sent, most=most)
    before = sum(output(works)[month - 1] for works in range(len(WORKS)))
    change = 100 * (sent / before - 1)
    return voice.say(
        "supply",
        sent=sent,
        change=abs(change),
        more="more" if change > 0 else "less",
        most=most,
    )


def bursts(month: int, voice: Voice) -> str:
    """How many bursts there were, where and why; and the largest of them."""
    found = [pair for pair in all_bursts() if pair[1].month == month]
    worst = max(districts(), key=lambda district: district.bursts_by_month()[month])
    causes = [burst.cause for _, burst in found]
    district, burst = max(found, key=lambda pair: pair[1].properties * pair[1].hours)
    told = voice.say(
        "bursts",
        bursts=count(len(found), "burst"),
        district=worst.name,
        number=worst.bursts_by_month()[month],
        cause=CAUSES[max(sorted(set(causes)), key=causes.count)][0],
    )
    incident = voice.say(
        "incident",
        day=burst.day,
        street=burst.street,
        district=district.name,
        diameter=burst.diameter_mm,
        material=burst.material,
        cause=CAUSES[burst.cause][0],
        properties=burst.properties,
        hours=burst.hours,
    )
    return f"{told} {incident}"
