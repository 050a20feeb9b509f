"""A document as PDF: cover, contents, bookmarks, running heads, figures that are drawn."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from reportlab import rl_config
from reportlab.graphics.charts.barcharts import VerticalBarChart
from reportlab.graphics.shapes import Drawing
from reportlab.lib import colors
from reportlab.lib.enums import TA_JUSTIFY
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import cm
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import (
    BaseDocTemplate,
    Flowable,
    Frame,
    KeepTogether,
    PageBreak,
    PageTemplate,
    Spacer,
)
from reportlab.platypus import Paragraph as Text
from reportlab.platypus import Table as Grid
from reportlab.platypus.tableofcontents import TableOfContents

from sample_docs.quillmere.blocks import (
    Bars,
    Block,
    Document,
    Heading,
    NetworkMap,
    NewPage,
    Note,
    Paragraph,
    Steps,
    Table,
    cell_text,
)
from sample_docs.quillmere.network_map import draw_map

WIDTH, HEIGHT = A4
MARGIN = 2.2 * cm
COLUMN = WIDTH - 2 * MARGIN

_BODY = ParagraphStyle(
    "body", fontName="Times-Roman", fontSize=10.5, leading=14, alignment=TA_JUSTIFY, spaceAfter=7
)
_CAPTION = ParagraphStyle(
    "caption", fontName="Helvetica-Oblique", fontSize=8.5, leading=11, spaceBefore=4, spaceAfter=4
)
_TABLE_CAPTION = ParagraphStyle("table caption", parent=_CAPTION, keepWithNext=True)
_CELL = ParagraphStyle("cell", fontName="Helvetica", fontSize=8, leading=9.5)
_HEAD_CELL = ParagraphStyle("head", parent=_CELL, fontName="Helvetica-Bold")
_NUMBER = ParagraphStyle("number", parent=_CELL, alignment=2)
_HEAD_NUMBER = ParagraphStyle("head number", parent=_HEAD_CELL, alignment=2)
_HEADINGS = {
    level: ParagraphStyle(
        f"heading {level}",
        fontName="Helvetica-Bold",
        fontSize=size,
        leading=size * 1.25,
        spaceBefore=size * 0.6,
        spaceAfter=size * 0.45,
        keepWithNext=True,
    )
    for level, size in ((1, 20), (2, 14), (3, 11.5))
}
_COVER = ParagraphStyle("cover", fontName="Helvetica-Bold", fontSize=30, leading=38)
_BLUE = colors.HexColor("#1f5f8b")
_RULE = colors.HexColor("#9aa7b0")


def write_pdf(document: Document, path: Path) -> int:
    """Write ``document``; returns the page that the network map fell on, 0 without a map."""
    rl_config.useA85 = 0  # streams as bytes, a fifth smaller than as ASCII
    template = _Template(document, str(path))
    template.multiBuild(list(_story(document)))
    return template.map_page


class _Template(BaseDocTemplate):  # type: ignore[misc]
    """Draws the running heads, and notes headings for the contents and the bookmarks."""

    def __init__(self, document: Document, path: str) -> None:
        super().__init__(
            path,
            pagesize=A4,
            title=document.title,
            author="Quillmere Water Board (fictional)",
            invariant=1,
            pageCompression=1,
        )
        self.map_page = 0
        self._document = document
        self._chapter = ""
        self._keys = 0
        frame = Frame(
            MARGIN, 1.9 * cm, COLUMN, HEIGHT - 4.3 * cm,
            leftPadding=0, rightPadding=0, topPadding=0, bottomPadding=0,
        )  # fmt: skip
        self.addPageTemplates([PageTemplate("page", [frame], onPageEnd=self._running_head)])

    def beforeDocument(self) -> None:  # noqa: N802 - the name is reportlab's
        self._chapter, self._keys = "", 0

    def afterFlowable(self, flowable: Flowable) -> None:  # noqa: N802 - the name is reportlab's
        if isinstance(flowable, _Map):
            self.map_page = self.page
        level = getattr(flowable, "heading_level", 0)
        if not level:
            return
        text = flowable.getPlainText()
        if level == 1:
            self._chapter = text
        self._keys += 1
        key = _key(self._keys)
        self.canv.bookmarkPage(key)
        self.canv.addOutlineEntry(text, key, level - 1, closed=level == 1)
        if level < 3:
            self.notify("TOCEntry", (level - 1, escape(text), self.page, key))

    def _running_head(self, canvas: Canvas, _template: Any) -> None:
        if self.page == 1:
            return
        canvas.saveState()
        canvas.setFont("Helvetica", 8)
        canvas.drawString(
            MARGIN, HEIGHT - 1.5 * cm, f"Quillmere Water Board – {self._document.title}"
        )
        canvas.drawRightString(WIDTH - MARGIN, HEIGHT - 1.5 * cm, self._chapter)
        canvas.drawCentredString(WIDTH / 2, 1.1 * cm, f"Page {self.page}")
        canvas.setStrokeColor(_RULE)
        canvas.line(MARGIN, HEIGHT - 1.7 * cm, WIDTH - MARGIN, HEIGHT - 1.7 * cm)
        canvas.restoreState()


class _Map(Flowable):  # type: ignore[misc]
    """The network map, as large as the page allows.

    The first of reportlab's passes only finds the page numbers for the contents, so that it can do
    without the drawing.
    """

    def __init__(self) -> None:
        super().__init__()
        self._passes = 0

    def wrap(self, width: float, height: float) -> tuple[float, float]:
        self.width, self.height = width, height - 30  # the rest is for the caption
        return self.width, self.height

    def draw(self) -> None:
        self._passes += 1
        if self._passes > 1:
            draw_map(self.canv, self.width, self.height)


def _key(number: int) -> str:
    """The name of the place that the contents and the bookmarks lead to."""
    return f"heading-{number}"


def _story(document: Document) -> Iterator[Flowable]:
    yield Spacer(1, 7 * cm)
    yield Text(escape(document.title), _COVER)
    yield Spacer(1, 0.6 * cm)
    yield Text(escape(document.subtitle), _BODY)
    yield PageBreak()
    contents = TableOfContents(dotsMinLevel=-1)  # no dots: they would be half of the text
    contents.levelStyles = [
        ParagraphStyle("contents 1", fontName="Helvetica-Bold", fontSize=9.5, leading=12.5),
        ParagraphStyle(
            "contents 2", fontName="Times-Roman", fontSize=9, leading=10.5, leftIndent=14
        ),
    ]
    yield Text("Contents", _HEADINGS[1])
    # Known headings give the contents their length at once, so that two passes are enough.
    headings = [block for block in document.blocks if isinstance(block, Heading)]
    for number, heading in enumerate(headings, 1):
        if heading.level < 3:
            contents.addEntry(heading.level - 1, escape(heading.text), 0, _key(number))
    yield contents
    yield PageBreak()
    for block in document.blocks:
        yield from _flowables(block)


def _flowables(block: Block) -> Iterator[Flowable]:
    match block:
        case Heading(level, text):
            heading = Text(escape(text), _HEADINGS[level])
            heading.heading_level = level
            yield heading
        case Paragraph(text) | Note(text):
            yield Text(escape(text), _BODY)
        case Steps(items):
            for number, item in enumerate(items, 1):
                yield Text(f"{number}. {escape(item)}", _BODY)
        case Table():
            yield Text(escape(block.caption), _TABLE_CAPTION)
            yield _grid(block)
            yield Spacer(1, 8)
        case Bars():
            yield KeepTogether([_chart(block), Text(escape(block.caption), _CAPTION)])
        case NetworkMap(caption):
            yield PageBreak()
            yield _Map()
            yield Text(escape(caption), _CAPTION)
        case NewPage():
            yield PageBreak()


def _grid(table: Table) -> Grid:
    numeric = [not isinstance(cell, str) for cell in table.rows[0]]
    rows = [
        [
            Text(escape(text), _HEAD_NUMBER if number else _HEAD_CELL)
            for text, number in zip(table.head, numeric, strict=True)
        ],
        *(
            [
                Text(escape(cell_text(cell)), _NUMBER if number else _CELL)
                for cell, number in zip(row, numeric, strict=True)
            ]
            for row in table.rows
        ),
    ]
    # Wide enough for the longest word of the head; long cells wrap. The 3 stands for the margins.
    share = [
        3 + max(*(len(word) for word in head.split()), *(min(len(cell_text(c)), 16) for c in cells))
        for head, *cells in zip(table.head, *table.rows, strict=True)
    ]
    style: list[tuple[Any, ...]] = [
        ("GRID", (0, 0), (-1, -1), 0.4, _RULE),
        ("BACKGROUND", (0, 0), (-1, 0), colors.HexColor("#e6eef4")),
        ("LEFTPADDING", (0, 0), (-1, -1), 4),
        ("RIGHTPADDING", (0, 0), (-1, -1), 4),
        ("VALIGN", (0, 0), (-1, -1), "MIDDLE"),
        ("TOPPADDING", (0, 0), (-1, -1), 2),
        ("BOTTOMPADDING", (0, 0), (-1, -1), 2.5),
    ]
    if table.rows[-1][0] == "Total":
        style.append(("LINEABOVE", (0, -1), (-1, -1), 1.2, colors.black))
    return Grid(
        rows,
        colWidths=[COLUMN * part / sum(share) for part in share],
        repeatRows=1,
        style=style,
    )


def _chart(bars: Bars) -> Drawing:
    drawing = Drawing(COLUMN, 128)
    chart = VerticalBarChart()
    chart.x, chart.y, chart.width, chart.height = 42, 18, COLUMN - 60, 102
    chart.data = [bars.values]
    chart.categoryAxis.categoryNames = list(bars.labels)
    chart.categoryAxis.labels.fontSize = chart.valueAxis.labels.fontSize = 7.5
    chart.valueAxis.valueMin = 0
    chart.valueAxis.labelTextFormat = "{:,.0f}".format
    chart.bars[0].fillColor = _BLUE
    chart.bars[0].strokeColor = None
    drawing.add(chart)
    return drawing
