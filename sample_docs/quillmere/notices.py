"""A year of public notices in English and Chinese, as plain text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap

from sample_docs.quillmere.chance import Chance
from sample_docs.quillmere.places import CAUSES, MATERIALS_ZH, MONTHS, WORKS
from sample_docs.quillmere.prose import prose
from sample_docs.quillmere.water import Burst, District, all_bursts, districts

_COLUMNS = 88


def write_notices(path: Path) -> None:
    """Write the file, in UTF-8 without a byte order mark."""
    path.write_bytes(("\n".join(_lines()) + "\n").encode())


def _lines() -> Iterator[str]:
    written = prose("notices")
    yield written["title"]
    yield "=" * len(written["title"])
    yield written["subtitle"].strip()
    for english, chinese in written["introduction"]:
        yield from _pair(english, chinese)
    yield from _heading("The districts – 供水区", "-")
    for district in districts():
        yield from _heading(f"{district.name} – {district.chinese}", ".")
        yield from _about(district)
    chance = Chance("notices")
    number = 0
    for month, name in enumerate(MONTHS):
        yield from _heading(f"{name} – {month + 1}月", "-")
        for district, burst in all_bursts():
            if burst.month == month:
                number += 1
                yield from _notice(number, district, burst, chance)


def _about(district: District) -> Iterator[str]:
    works, works_zh, *_ = WORKS[district.works]
    values: dict[str, object] = {
        "name": district.name,
        "chinese": district.chinese,
        "where": district.where,
        "works": works,
        "works_zh": works_zh,
        "people": district.people,
        "connections": district.connections,
        "supplied": sum(district.supplied),
        "bursts": len(district.bursts),
        "pressure": district.pressure_m,
    }
    about = prose("notices")["district"][0]
    yield from _pair(about["english"].format(**values), about["chinese"].format(**values))


def _notice(number: int, district: District, burst: Burst, chance: Chance) -> Iterator[str]:
    cause, cause_zh = CAUSES[burst.cause]
    values: dict[str, object] = {
        "street": burst.street,
        "diameter": burst.diameter_mm,
        "material": burst.material,
        "material_zh": MATERIALS_ZH[burst.material],
        "cause": cause,
        "cause_zh": cause_zh,
        "properties": burst.properties,
        "hours": burst.hours,
    }
    date = f"{burst.day} {MONTHS[burst.month]}"
    date_zh = f"{burst.month + 1}月{burst.day}日"
    title = f"Notice {number}, {date}: {district.name}"
    title_zh = f"第{number}号公告，{date_zh}，{district.chinese}"
    yield from _heading(f"{title} – {title_zh}", ".")
    notice = chance.pick(prose("notices")["notice"])
    english = notice["english"].format(**values)
    yield from _pair(
        english.replace(f". {cause}:", f". {cause[0].upper()}{cause[1:]}:"),
        notice["chinese"].format(**values),
    )
    ended = chance.pick(prose("notices")["ended"])
    time = f"{chance.whole(0, 23):02}:{chance.whole(0, 59):02}"
    yield from _pair(ended["english"].format(time=time), ended["chinese"].format(time=time))


def _heading(text: str, line: str) -> Iterator[str]:
    yield ""
    yield text
    yield line * len(text)


def _pair(english: str, chinese: str) -> Iterator[str]:
    yield ""
    yield from wrap(english, _COLUMNS)
    yield chinese  # one line: Chinese has no spaces to break at
