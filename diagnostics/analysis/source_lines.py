"""Source lines as a recording keeps them, for people to read."""

from __future__ import annotations

from collections.abc import Mapping


def numbered_source(source: Mapping[int, str], line: int, around: int = 6) -> str:
    """The kept lines near ``line``, numbered, with an arrow at it and "…" where some are missing.

    ``source`` maps numbers to text. Empty when nothing near ``line`` was kept.
    """
    numbers = [number for number in sorted(source) if abs(number - line) <= around]
    width = len(str(numbers[-1])) if numbers else 0
    rows: list[str] = []
    before: int | None = None
    for number in numbers:
        if before is not None and number > before + 1:
            rows.append("…")
        arrow = "→" if number == line else " "
        rows.append(f"{arrow} {number:>{width}}  {source[number].rstrip()}")
        before = number
    return "\n".join(rows)
