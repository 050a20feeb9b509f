"""The two pages of a district in the annual report."""

from __future__ import annotations

from collections.abc import Iterator

from sample_docs.quillmere.blocks import Bars, Block, Heading, NewPage, Paragraph, table
from sample_docs.quillmere.places import CAUSES, MONTHS, WORKS
from sample_docs.quillmere.voice import Voice, count
from sample_docs.quillmere.water import Burst, District

PROMISED_PRESSURE_M = 20


def district_pages(district: District, voice: Voice) -> Iterator[Block]:
    """What happened in ``district``: two pages, each filled."""
    yield Heading(2, district.name)
    yield Paragraph(_supply(district, voice))
    yield Paragraph(_network(district, voice))
    yield table(
        f"{district.name}: water supplied and bursts by month",
        ("Month", "Supplied (thousand m³)", "Bursts", "Properties without water"),
        [
            (
                MONTHS[month],
                district.supplied[month],
                bursts,
                sum(b.properties for b in district.bursts if b.month == month),
            )
            for month, bursts in enumerate(district.bursts_by_month())
        ],
        total=(1, 2, 3),
    )
    yield Paragraph(_incidents(district, voice))
    yield NewPage()
    yield Heading(3, f"{district.name}: leakage, quality and works")
    yield Paragraph(_leakage(district, voice))
    yield Bars(
        f"{district.name}: properties without water, by month",
        tuple(month[:3] for month in MONTHS),
        tuple(
            sum(b.properties for b in district.bursts if b.month == month) for month in range(12)
        ),
    )
    yield Paragraph(_quality(district, voice))
    yield Paragraph(_schemes(district, voice))
    yield table(
        f"{district.name}: mains renewed",
        ("Street", "From", "To", "Metres", "Thousand crowns"),
        [
            (s.street, s.old, f"{s.new} {s.diameter_mm} mm", s.metres, s.cost)
            for s in district.schemes
        ],
        total=(3, 4),
    )
    yield Paragraph(_customers(district, voice))
    yield NewPage()


def burst_values(burst: Burst) -> dict[str, object]:
    return {
        "day": burst.day,
        "month": MONTHS[burst.month],
        "street": burst.street,
        "cause": CAUSES[burst.cause][0],
        "diameter": burst.diameter_mm,
        "material": burst.material,
        "properties": burst.properties,
        "hours": burst.hours,
    }


def _supply(district: District, voice: Voice) -> str:
    supplied = sum(district.supplied)
    change = 100 * (supplied / district.supplied_before - 1)
    top, bottom = max(district.supplied), min(district.supplied)
    return " ".join(
        (
            voice.say(
                "lies",
                name=district.name,
                where=district.where,
                people=district.people,
                connections=district.connections,
                works=WORKS[district.works][0],
                mains=district.mains_km,
            ),
            voice.say("more" if change >= 0 else "less", supplied=supplied, change=abs(change)),
            voice.say(
                "season",
                high=MONTHS[district.supplied.index(top)],
                low=MONTHS[district.supplied.index(bottom)],
                top=top,
                bottom=bottom,
            ),
            voice.say("per_head", litres=round(supplied * 0.83e6 / district.people / 366)),
        )
    )


def _network(district: District, voice: Voice) -> str:
    most = max(district.mains, key=lambda material: district.mains[material])
    oldest = "asbestos cement" if most == "cast iron" else "cast iron"
    said = [
        voice.say(
            "material",
            most=most,
            most_km=district.mains[most],
            oldest=oldest,
            oldest_km=district.mains[oldest],
        )
    ]
    if not district.bursts:
        said.append(voice.say("calm"))
    else:
        by_month = district.bursts_by_month()
        broken = [burst.material for burst in district.bursts]
        said.append(
            voice.say(
                "bursts",
                bursts=count(len(district.bursts), "burst"),
                material=max(sorted(set(broken)), key=broken.count),
                month=MONTHS[by_month.index(max(by_month))],
            )
        )
    said.append(voice.say("pressure", pressure=district.pressure_m, standard=PROMISED_PRESSURE_M))
    return " ".join(said)


def _incidents(district: District, voice: Voice) -> str:
    worst = sorted(district.bursts, key=lambda burst: -burst.properties * burst.hours)[:3]
    return " ".join(
        f"{voice.say('incident', **burst_values(burst))} {voice.say('lesson')}"
        for burst in sorted(worst, key=lambda burst: (burst.month, burst.day))
    )


def _leakage(district: District, voice: Voice) -> str:
    down = district.leakage < district.leakage_before
    why = voice.say("why_down" if down else "why_up")
    return voice.say(
        "leak_down" if down else "leak_up",
        before=district.leakage_before,
        now=district.leakage,
        why=why,
    )


def _quality(district: District, voice: Voice) -> str:
    if not district.failed:
        return voice.say("clean", samples=district.samples)
    return voice.say(
        "failed",
        samples=district.samples,
        failed=("one", "two", "three")[district.failed - 1],
        what=voice.say("failed_what"),
    )


def _schemes(district: District, voice: Voice) -> str:
    said = []
    for scheme in district.schemes:
        said.append(
            voice.say(
                "works",
                street=scheme.street,
                metres=scheme.metres,
                old=scheme.old,
                new=scheme.new,
                diameter=scheme.diameter_mm,
                cost=scheme.cost,
                month=MONTHS[scheme.finished],
            )
        )
        said.append(voice.say("works_how"))
    metres = sum(scheme.metres for scheme in district.schemes)
    said.append(
        voice.say(
            "lengths",
            metres=metres,
            share=metres / district.mains_km / 10,
            cost=sum(scheme.cost for scheme in district.schemes),
        )
    )
    return " ".join(said)


def _customers(district: District, voice: Voice) -> str:
    order = sorted(district.contacts, key=lambda subject: -district.contacts[subject])
    said = voice.say(
        "contacts",
        total=sum(district.contacts.values()),
        top=order[0].lower(),
        most=district.contacts[order[0]],
        least=order[-1].lower(),
        fewest=district.contacts[order[-1]],
    )
    return f"{said} {voice.say('contacts_then')} {voice.say('next')}"
