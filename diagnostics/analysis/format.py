"""Sizes, times and counts as people read them. The one place that decides how they look."""

from __future__ import annotations

import re

_CODE = re.compile(r"[_`()]|\w\.\w")  # in a word: a name from code
_SIZES = ("B", "kB", "MB", "GB", "TB", "PB")
_MINUTE_S = 60
_HOUR_S = 3600


def format_bytes(size: float, *, signed: bool = False) -> str:
    """``7_200_000`` as "7.2 MB": SI units, one decimal below 100. ``signed`` puts a + to growth.

    >>> format_bytes(7_200_000), format_bytes(812), format_bytes(-150_000_000)
    ('7.2 MB', '812 B', '-150 MB')
    """
    sign = "-" if size < 0 else "+" if signed and size > 0 else ""
    value = abs(size)
    power = 0
    # 999.5 is already "1000" when rounded: the larger unit says it better.
    while round(value) >= 1000 and power < len(_SIZES) - 1:
        value /= 1000
        power += 1
    number = str(round(value)) if power == 0 else _number(value)
    return f"{sign}{number} {_SIZES[power]}"


def format_seconds(seconds: float) -> str:
    """A duration: "12.5 µs", "820 ms", "1.3 s", "2 min 5 s", "1 h 3 min".

    >>> format_seconds(0.82), format_seconds(1.3), format_seconds(125)
    ('820 ms', '1.3 s', '2 min 5 s')
    """
    sign = "-" if seconds < 0 else ""
    value = abs(seconds)
    if value == 0:
        return "0 s"
    if round(value * 1e6) < 1000:
        return f"{sign}{_number(value * 1e6)} µs"
    if round(value * 1e3) < 1000:
        return f"{sign}{_number(value * 1e3)} ms"
    if round(value, 1) < _MINUTE_S:
        return f"{sign}{value:.1f} s"
    whole = round(value)
    if whole < _HOUR_S:
        return f"{sign}{whole // _MINUTE_S} min {whole % _MINUTE_S} s"
    minutes = round(value / _MINUTE_S)
    return f"{sign}{minutes // 60} h {minutes % 60} min"


def format_count(count: int) -> str:
    """``20000`` as "20,000"."""
    return f"{count:,}"


def format_share(share: float) -> str:
    """A part of a whole: ``0.031`` as "3.1 %"."""
    return f"{_number(share * 100)} %"


def counted(count: int, noun: str) -> str:
    """A count with its noun: "1 page", "87 pages", "2 batches", "3 entries"."""
    return f"{format_count(count)} {noun if count == 1 else _plural(noun)}"


def span(noun: str, first: int, last: int) -> str:
    """Numbered things from ``first`` to ``last``: "page 87", "pages 81-84"."""
    return f"{noun} {first}" if first == last else f"{_plural(noun)} {first}-{last}"


def sentence_case(text: str) -> str:
    """The same with a capital at its beginning: "page 87 of A" as "Page 87 of A".

    A name from code keeps its letters: "malloc_trim gave back 2 MB" stays as it is.

    >>> sentence_case("page 87"), sentence_case("malloc_trim gave back")
    ('Page 87', 'malloc_trim gave back')
    """
    first = text.partition(" ")[0].rstrip(".,:;")
    if _CODE.search(first):
        return text
    return text[:1].upper() + text[1:]


def _plural(noun: str) -> str:
    if noun.endswith(("s", "x", "ch", "sh")):
        return f"{noun}es"
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}s"


def _number(value: float) -> str:
    return f"{value:.1f}" if round(value, 1) < 100 else str(round(value))
