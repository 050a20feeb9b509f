"""The annual report, chapter by chapter."""

from __future__ import annotations

from collections.abc import Iterator

from sample_docs.quillmere.asset_report import reservoirs_and_pumps, treatment_works, water_quality
from sample_docs.quillmere.blocks import (
    Bars,
    Block,
    Document,
    Heading,
    NetworkMap,
    NewPage,
    Paragraph,
    Table,
    table,
)
from sample_docs.quillmere.chance import Chance
from sample_docs.quillmere.district_report import district_pages
from sample_docs.quillmere.months_report import month_pages
from sample_docs.quillmere.places import CAUSES, CONTACTS, MATERIALS, MONTHS, WORKS
from sample_docs.quillmere.plan_report import planned_work
from sample_docs.quillmere.prose import prose
from sample_docs.quillmere.voice import Voice
from sample_docs.quillmere.water import YEAR, all_bursts, districts, output

MAP_SHEET = "Sheet 12, Lower Quill: mains, service pipes, valves and hydrants"

ONLY_IN_FULL = {
    "Month by month",
    "Work planned for the coming year",
    "Appendix A: Register of bursts",
    "Appendix B: Register of mains renewed",
    "Appendix C: Supply by district and month",
}
"""Chapters that the short edition leaves out."""


def annual_report() -> Document:
    """The whole report; the PDF adds a cover and a table of contents."""
    return Document(
        title=f"Annual report {YEAR}",
        subtitle="Quillmere Water Board – a fictional utility, made up to test document loaders",
        blocks=tuple(_blocks()),
    )


def short_report() -> Document:
    """The report without map, months, plans and registers."""
    kept: list[Block] = []
    chapter = ""
    for block in annual_report().blocks:
        if isinstance(block, Heading) and block.level == 1:
            chapter = block.text
        if chapter not in ONLY_IN_FULL:
            kept.append(block)
    return Document(
        title=f"Annual report {YEAR}, short edition",
        subtitle=f"{annual_report().subtitle}. The full edition has the map and the registers.",
        blocks=tuple(kept),
    )


def _blocks() -> Iterator[Block]:
    yield Heading(1, "The year in brief")
    yield from _paragraphs("statement")
    yield _districts_table()
    yield from _chapter("Demand and supply", "demand")
    yield _output_table()
    yield Bars(
        "All works together: water sent out, thousand m³",
        tuple(month[:3] for month in MONTHS),
        tuple(sum(output(works)[month] for works in range(len(WORKS))) for month in range(12)),
    )
    yield from _chapter("Month by month")
    yield from month_pages()
    yield Heading(1, "Treatment works")
    yield from treatment_works()
    yield from _chapter("Water quality")
    yield from water_quality()
    yield from _chapter("Leakage", "leakage")
    yield _leakage_table()
    yield from _chapter("Customers", "customers")
    yield _contacts_table()
    yield from _chapter("People and safety", "people")
    yield from _chapter("The districts", "districts")
    yield NewPage()
    voice = Voice("districts", prose("report")["district"])
    for district in districts():
        yield from district_pages(district, voice)
    yield Heading(1, "The network")
    yield from _paragraphs("network")
    yield _mains_table()
    yield NetworkMap(MAP_SHEET)
    yield from _chapter("Reservoirs and pumping stations")
    yield from reservoirs_and_pumps()
    yield from _chapter("Finance", "finance")
    yield _income_table()
    yield _expenditure_table()
    yield _investment_table()
    yield from _chapter("Work planned for the coming year")
    yield from planned_work()
    yield from _chapter("Outlook", "outlook")
    yield from _chapter("Appendix A: Register of bursts")
    yield from _burst_register()
    yield from _chapter("Appendix B: Register of mains renewed")
    yield from _scheme_register()
    yield from _chapter("Appendix C: Supply by district and month")
    yield from _supply_tables()
    yield from _chapter("Appendix D: Words used in this report")
    for word, meaning in prose("report")["glossary"].items():
        yield Paragraph(f"{word}. {meaning}")


def _chapter(title: str, paragraphs: str | None = None) -> Iterator[Block]:
    yield NewPage()
    yield Heading(1, title)
    if paragraphs is not None:
        yield from _paragraphs(paragraphs)


def _paragraphs(key: str) -> Iterator[Block]:
    for text in prose("report")["general"][key]:
        yield Paragraph(text)


def _districts_table() -> Table:
    return table(
        "The districts at a glance",
        ("District", "People", "Connections", "Mains (km)", "Supplied (thousand m³)", "Bursts"),
        [
            (d.name, d.people, d.connections, d.mains_km, sum(d.supplied), len(d.bursts))
            for d in districts()
        ],
        total=(1, 2, 3, 4, 5),
    )


def _output_table() -> Table:
    outputs = [output(works) for works in range(len(WORKS))]
    return table(
        "Water sent out by the works (thousand m³)",
        ("Month", *(works[0] for works in WORKS), "Together"),
        [
            (month, *(sent[m] for sent in outputs), sum(sent[m] for sent in outputs))
            for m, month in enumerate(MONTHS)
        ],
        total=range(1, len(WORKS) + 2),
    )


def _contacts_table() -> Table:
    return table(
        "What customers wrote and called about",
        ("District", *CONTACTS),
        [(d.name, *(d.contacts[subject] for subject in CONTACTS)) for d in districts()],
        total=range(1, len(CONTACTS) + 1),
    )


def _mains_table() -> Table:
    return table(
        "Mains by material (km)",
        ("District", *(material[0].upper() + material[1:] for material in MATERIALS), "Together"),
        [(d.name, *(d.mains[material] for material in MATERIALS), d.mains_km) for d in districts()],
        total=range(1, len(MATERIALS) + 2),
    )


def _income_table() -> Table:
    billed = sum(sum(d.supplied) for d in districts())
    return table(
        "Income (thousand crowns)",
        ("Kind", "Amount"),
        [
            ("Charges for water used", round(billed * 2.31)),
            ("Standing charges", sum(d.connections for d in districts()) * 46 // 1000),
            ("New connections", 1_874),
            ("Other", 612),
        ],
        total=(1,),
    )


def _expenditure_table() -> Table:
    chance = Chance("expenditure")
    kinds = (
        "Staff", "Energy", "Chemicals", "Repairs of mains", "Laboratory", "Vehicles", "Insurance",
        "Rates and licences", "Interest", "Depreciation", "Compensation to customers",
    )  # fmt: skip
    return table(
        "Expenditure (thousand crowns)",
        ("Kind", "Amount"),
        [(kind, chance.whole(320, 14_900)) for kind in kinds],
        total=(1,),
    )


def _investment_table() -> Table:
    return table(
        "Investment in mains",
        ("District", "Schemes", "Metres", "Thousand crowns"),
        [
            (
                d.name,
                len(d.schemes),
                sum(s.metres for s in d.schemes),
                sum(s.cost for s in d.schemes),
            )
            for d in districts()
        ],
        total=(1, 2, 3),
    )


def _burst_register() -> Iterator[Block]:
    for number, month in enumerate(MONTHS):
        found = [(d, burst) for d, burst in all_bursts() if burst.month == number]
        yield Heading(2, f"{month}: {len(found)} bursts")
        yield table(
            f"Bursts in {month}",
            ("Day", "District", "Street", "Main", "Cause", "Properties", "Hours"),
            [
                (
                    str(burst.day),
                    district.name,
                    burst.street,
                    f"{burst.material} {burst.diameter_mm}",
                    CAUSES[burst.cause][0],
                    burst.properties,
                    burst.hours,
                )
                for district, burst in found
            ],
            total=(5, 6),
        )


def _scheme_register() -> Iterator[Block]:
    for number, month in enumerate(MONTHS):
        found = [(d, s) for d in districts() for s in d.schemes if s.finished == number]
        if not found:
            continue
        yield Heading(2, f"{month}: mains back in service")
        yield table(
            f"Mains renewed and back in service in {month}",
            ("District", "Street", "From", "To", "Metres", "Thousand crowns"),
            [
                (d.name, s.street, s.old, f"{s.new} {s.diameter_mm} mm", s.metres, s.cost)
                for d, s in found
            ],
            total=(4, 5),
        )


def _supply_tables() -> Iterator[Block]:
    for half, months in (("First", range(6)), ("Second", range(6, 12))):
        yield table(
            f"{half} half of the year (thousand m³)",
            ("District", *(MONTHS[month] for month in months), "Together"),
            [
                (d.name, *(d.supplied[m] for m in months), sum(d.supplied[m] for m in months))
                for d in districts()
            ],
            total=range(1, 8),
        )


def _leakage_table() -> Table:
    return table(
        "Leakage (m³ a km a day)",
        ("District", "Year before", "This year", "Mains (km)"),
        [(d.name, d.leakage_before, d.leakage, d.mains_km) for d in districts()],
    )
