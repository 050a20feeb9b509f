"""The drawing on the poisonous page: a district's pipes, down to each stop tap.

Nothing on it is large. It is the number of small things that costs a reader of PDF its memory:
most libraries make an object of every line and outline on a page, also when only the text is
wanted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sin

from reportlab.lib import colors
from reportlab.pdfgen.canvas import Canvas

from sample_docs.quillmere.chance import Chance
from sample_docs.quillmere.places import STREET_KINDS, STREET_NAMES

Point = tuple[float, float]

COLUMNS, ROWS = 6, 8
"""Blocks of houses on the sheet."""

HOUSES_A_ROW = 32
"""Plots along each of a block's four rows."""

LEGEND_HEIGHT = 62.0

_MAIN = colors.HexColor("#1f5f8b")
_HOUSE = colors.HexColor("#7d8287")
_SERVICE = colors.HexColor("#4f94bd")
_CONTOUR = colors.HexColor("#c9a86a")
_RIVER = colors.HexColor("#d3e6f2")


@dataclass(frozen=True)
class _Sheet:
    """The part of the page that is the map; its streets are as crooked as a town's."""

    canvas: Canvas
    width: float
    height: float

    def place(self, x: float, y: float) -> Point:
        """Where a point of the straight plan lies on the sheet, its lower edge at the legend."""
        return (
            0.95 * x + 0.025 * self.width + 5 * sin(y / 83) + 3 * sin(x / 47 + y / 61),
            LEGEND_HEIGHT + 0.94 * y + 0.03 * self.height + 9 * sin(x / 97) + 3 * sin(y / 71),
        )

    def river_at(self, x: float) -> float:
        """The middle of the river, on the straight plan."""
        return self.height * 0.47 + 52 * sin(x / 120) + 14 * sin(x / 41)

    def in_river(self, x: float, y: float) -> bool:
        return abs(y - self.river_at(x)) < 17

    def line(self, points: Sequence[Point], close: bool = False) -> None:
        path = self.canvas.beginPath()
        for number, point in enumerate(points):
            (path.lineTo if number else path.moveTo)(*self.place(*point))
        if close:
            path.close()
        self.canvas.drawPath(path)

    def pen(self, colour: colors.Color, width: float) -> None:
        self.canvas.setStrokeColor(colour)
        self.canvas.setLineWidth(width)

    def label(self, x: float, y: float, text: str, size: float) -> None:
        """Text on a white ground, so that it can be read above the lines."""
        at_x, at_y = self.place(x, y)
        width = self.canvas.stringWidth(text, "Helvetica", size)
        self.canvas.setFillColor(colors.white)
        self.canvas.rect(at_x - 0.5, at_y - 0.5, width + 1, size * 0.9, stroke=0, fill=1)
        self.canvas.setFillColor(colors.black)
        self.canvas.setFont("Helvetica", size)
        self.canvas.drawString(at_x, at_y, text)


def draw_map(canvas: Canvas, width: float, height: float) -> None:
    """Draw the sheet with its lower left corner at the origin; sizes in points."""
    chance = Chance("network map")
    canvas.saveState()
    sheet = _Sheet(canvas, width, height - LEGEND_HEIGHT)
    _river(sheet)
    _contours(sheet, chance)
    step_x, step_y = sheet.width / COLUMNS, sheet.height / ROWS
    for row in range(ROWS):
        for column in range(COLUMNS):
            _houses(sheet, chance, column * step_x, row * step_y, step_x, step_y)
    _streets(sheet, chance, step_x, step_y)
    _frame(canvas, width, height)
    canvas.restoreState()


def _river(sheet: _Sheet) -> None:
    steps = [sheet.width * step / 90 for step in range(91)]
    sheet.pen(_RIVER, 24)
    sheet.line([(x, sheet.river_at(x)) for x in steps])


def _contours(sheet: _Sheet, chance: Chance) -> None:
    for number in range(24):
        base = sheet.height * (number + 0.5) / 24
        swing, phase = chance.between(8, 22), chance.between(0, 6)
        points = [
            (x, base + swing * sin(x / 70 + phase) + 4 * sin(x / 23))
            for x in (sheet.width * step / 120 for step in range(121))
        ]
        sheet.pen(_CONTOUR, 0.25)
        sheet.line(points)
        sheet.label(*chance.pick(points[5:110]), f"{20 + 5 * abs(12 - number)} m", 3.6)


def _houses(sheet: _Sheet, chance: Chance, x: float, y: float, width: float, height: float) -> None:
    """Four rows, two on each street; each house with its service pipe and its stop tap."""
    pitch = (width - 10) / HOUSES_A_ROW
    for row in range(4):
        street = y if row < 2 else y + height
        away = 1 if row < 2 else -1
        front = street + away * (6 if row in (0, 3) else 24)
        for plot in range(HOUSES_A_ROW):
            left = x + 5 + plot * pitch
            deep = away * chance.between(5.5, 11.5)
            if chance.between(0, 1) < 0.08 or sheet.in_river(left, front + deep):
                continue
            right = left + pitch * chance.between(0.6, 0.9)
            sheet.pen(_HOUSE, 0.2)
            sheet.line(
                [(left, front), (right, front), (right, front + deep), (left, front + deep)],
                close=True,
            )
            tap = left + (right - left) * chance.between(0.2, 0.8)
            sheet.pen(_SERVICE, 0.15)
            sheet.line([(tap, front), (tap, street)])
            at_x, at_y = sheet.place(tap, street + away * 3)
            sheet.canvas.rect(at_x - 0.35, at_y - 0.35, 0.7, 0.7)


def _streets(sheet: _Sheet, chance: Chance, step_x: float, step_y: float) -> None:
    """The mains under the streets, their valves and hydrants, and the streets' names."""
    names = chance.shuffled(STREET_NAMES)
    for row in range(ROWS + 1):
        y = row * step_y
        sheet.pen(_MAIN, 0.9 if row % 3 else 1.8)
        sheet.line([(sheet.width * s / 80, y) for s in range(81)])
        for number in range(COLUMNS * 3):
            _fitting(sheet, chance.between(0.2, 0.8), number, y, row)
        x = chance.between(0.05, 0.75) * sheet.width
        sheet.label(x, y + 7.5, f"{names[row]} {STREET_KINDS[row]}", 5.5)
    for column in range(COLUMNS + 1):
        sheet.pen(_MAIN, 0.9)
        sheet.line([(column * step_x, sheet.height * s / 80) for s in range(81)])


def _fitting(sheet: _Sheet, share: float, number: int, y: float, row: int) -> None:
    x = sheet.width * (number + share) / (COLUMNS * 3)
    at_x, at_y = sheet.place(x, y)
    sheet.pen(_MAIN, 0.4)
    if number % 3 == 1:
        kind = "H"
        sheet.canvas.circle(at_x, at_y, 1.4)
    else:
        kind = "V"
        sheet.canvas.line(at_x - 1.5, at_y - 1.2, at_x + 1.5, at_y + 1.2)
        sheet.canvas.line(at_x - 1.5, at_y + 1.2, at_x + 1.5, at_y - 1.2)
    sheet.label(x + 2, y - 3.4, f"{kind}{12_000 + row * 100 + number}", 2.8)


def _frame(canvas: Canvas, width: float, height: float) -> None:
    canvas.setStrokeColor(colors.black)
    canvas.setLineWidth(0.6)
    canvas.rect(0, LEGEND_HEIGHT, width, height - LEGEND_HEIGHT)
    canvas.rect(0, 0, width, LEGEND_HEIGHT - 6)
    canvas.setFont("Helvetica", 7.5)
    for line, text in enumerate(
        (
            "Quillmere Water Board, network plan, sheet 12: Lower Quill",
            "Blue: mains and service pipes. Grey: buildings. Small squares: stop taps.",
            "V: valve. H: hydrant. Brown: contours, every five metres. Pale blue: the Quill.",
            "Positions of fittings are within half a metre; dig by hand near any of them.",
        )
    ):
        canvas.drawString(8, LEGEND_HEIGHT - 20 - 10 * line, text)
