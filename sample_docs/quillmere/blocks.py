"""What a document is made of, before it becomes PDF, DOCX, Markdown, HTML or text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Cell = str | int | float


@dataclass(frozen=True)
class Heading:
    level: int
    text: str


@dataclass(frozen=True)
class Paragraph:
    text: str


@dataclass(frozen=True)
class Steps:
    items: tuple[str, ...]


@dataclass(frozen=True)
class Note:
    """A warning or a decision that stands out from the text around it."""

    text: str


@dataclass(frozen=True)
class Table:
    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class Bars:
    """A figure with one bar a label."""

    caption: str
    labels: tuple[str, ...]
    values: tuple[int, ...]

    def in_words(self) -> str:
        """What the figure shows, for formats that do not draw it."""
        high, low = max(self.values), min(self.values)
        return (
            f"{self.caption}: highest in {self.labels[self.values.index(high)]} ({high:,}), "
            f"lowest in {self.labels[self.values.index(low)]} ({low:,})."
        )


@dataclass(frozen=True)
class NetworkMap:
    """A drawing that fills a page; only the PDF has it."""

    caption: str


@dataclass(frozen=True)
class NewPage:
    pass


Block = Heading | Paragraph | Steps | Note | Table | Bars | NetworkMap | NewPage


@dataclass(frozen=True)
class Document:
    title: str
    subtitle: str
    blocks: tuple[Block, ...]


def cell_text(cell: Cell) -> str:
    """12345 as 12,345 and 1.25 as 1.2; text as it is."""
    if isinstance(cell, str):
        return cell
    return f"{cell:,}" if isinstance(cell, int) else f"{cell:,.1f}"


def table(
    caption: str, head: Sequence[str], rows: Iterable[Sequence[Cell]], total: Sequence[int] = ()
) -> Table:
    """A table; a last row "Total" sums the columns of whole numbers that ``total`` names."""
    body = [tuple(row) for row in rows]
    if total:
        last: list[Cell] = ["Total", *[""] * (len(head) - 1)]
        for column in total:
            last[column] = sum(cell for row in body if isinstance(cell := row[column], int))
        body.append(tuple(last))
    return Table(caption, tuple(head), tuple(body))
