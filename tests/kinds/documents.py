"""The documents that the loaders read: made within a second or two, without chance.

So small that a load takes fewer than 200,000 samples, from where on they are taken far apart: what
was estimated then has an error of some percent.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random

import docx
from PIL import Image
from reportlab.lib.pagesizes import A4
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

_LINE = "The harbour board met on day {} and moved item {} to the next quarter's list."


def _text_pdf(path: Path, pages: int = 14, lines: int = 4) -> None:
    canvas = Canvas(str(path), pagesize=A4, invariant=1)
    for page in range(pages):
        for line in range(lines):
            canvas.drawString(50, 800 - 15 * line, _LINE.format(page, page * lines + line))
        canvas.showPage()
    canvas.save()


def _table_pdf(path: Path, pages: int = 8, rows: int = 20, columns: int = 5) -> None:
    canvas = Canvas(str(path), pagesize=A4, invariant=1)
    across, down = (
        [50 + 100 * n for n in range(columns + 1)],
        [780 - 30 * n for n in range(rows + 1)],
    )
    for page in range(pages):
        canvas.grid(across, down)
        for row in range(rows):
            for column in range(columns):
                x, y = across[column] + 8, down[row + 1] + 10
                canvas.drawString(x, y, f"{page}.{row}.{column}")
        canvas.showPage()
    canvas.save()


def _form_pdf(path: Path, pages: int = 3, fields: int = 8) -> None:
    canvas = Canvas(str(path), pagesize=A4, invariant=1)
    for page in range(pages):
        for field in range(fields):
            canvas.drawString(50, 700 - 40 * field, f"field {field}")
            canvas.acroForm.textfield(
                name=f"field-{page}-{field}", x=150, y=690 - 40 * field, width=200, height=20
            )
        canvas.showPage()
    canvas.save()


def _image_pdf(path: Path, pages: int = 44, width: int = 1600) -> None:
    """One picture a page, each another one: a few kB, and 3 bytes a pixel once decoded."""
    canvas = Canvas(str(path), pagesize=A4, invariant=1)
    for page in range(pages):
        jpeg = io.BytesIO()
        Image.new("RGB", (width, width), (5 * page, 90, 120)).save(jpeg, "JPEG")
        jpeg.seek(0)
        canvas.drawImage(ImageReader(jpeg), 0, 0, *A4)
        canvas.showPage()
    canvas.save()


def _word_document(path: Path, paragraphs: int = 300) -> None:
    document = docx.Document()
    for number in range(paragraphs):
        document.add_paragraph(" ".join(_LINE.format(number, part) for part in range(14)))
    document.save(str(path))


def _web_page(path: Path, rows: int = 40) -> None:
    body = "".join(
        f"<div class='row'><p>Item {n} of the <b>minutes</b> of the <i>board</i>.</p></div>"
        for n in range(rows)
    )
    path.write_text(f"<html><head><title>Minutes</title></head><body>{body}</body></html>")


def _workbook(path: Path, lots: int = 2200) -> None:
    random = Random(87)
    rows: list[list[str | float]] = [
        [
            f"lot {random.random():.9f}",
            " ".join(_LINE.format(lot, part) for part in range(32)),
            *(random.random() for _ in range(6)),
        ]
        for lot in range(lots)
    ]
    _write_workbook(path, rows, f"A1:H{lots}")


def _wide_workbook(path: Path) -> None:
    """Fifty short rows in a sheet that claims every column there can be."""
    _write_workbook(path, [[f"lot {n}", n, n / 7] for n in range(50)], "A1:XFD50")


_NAMESPACE = "http://schemas.openxmlformats.org"
_PACKAGE = {
    "[Content_Types].xml": f"""<Types xmlns="{_NAMESPACE}/package/2006/content-types">
        <Default Extension="rels"
            ContentType="application/vnd.openxmlformats-package.relationships+xml"/>
        <Override PartName="/xl/workbook.xml" ContentType=
            "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/>
        <Override PartName="/xl/worksheets/sheet1.xml" ContentType=
            "application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/>
        </Types>""",
    "_rels/.rels": f"""<Relationships xmlns="{_NAMESPACE}/package/2006/relationships">
        <Relationship Id="r1" Target="xl/workbook.xml"
            Type="{_NAMESPACE}/officeDocument/2006/relationships/officeDocument"/>
        </Relationships>""",
    "xl/workbook.xml": f"""<workbook xmlns="{_NAMESPACE}/spreadsheetml/2006/main"
        xmlns:r="{_NAMESPACE}/officeDocument/2006/relationships">
        <sheets><sheet name="Lots" sheetId="1" r:id="r1"/></sheets></workbook>""",
    "xl/_rels/workbook.xml.rels": f"""<Relationships
        xmlns="{_NAMESPACE}/package/2006/relationships">
        <Relationship Id="r1" Target="worksheets/sheet1.xml"
            Type="{_NAMESPACE}/officeDocument/2006/relationships/worksheet"/>
        </Relationships>""",
}


def _write_workbook(path: Path, rows: list[list[str | float]], declared: str) -> None:
    sheet = io.StringIO()
    sheet.write(f'<worksheet xmlns="{_NAMESPACE}/spreadsheetml/2006/main">')
    sheet.write(f'<dimension ref="{declared}"/><sheetData>')
    for number, row in enumerate(rows, 1):
        cells = (_cell(f"{chr(65 + column)}{number}", value) for column, value in enumerate(row))
        sheet.write(f'<row r="{number}">{"".join(cells)}</row>')
    sheet.write("</sheetData></worksheet>")
    parts = {**_PACKAGE, "xl/worksheets/sheet1.xml": sheet.getvalue()}
    with zipfile.ZipFile(path, "w") as package:
        for name, text in parts.items():
            package.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED)


def _cell(place: str, value: str | float) -> str:
    if isinstance(value, str):
        return f'<c r="{place}" t="inlineStr"><is><t>{value}</t></is></c>'
    return f'<c r="{place}"><v>{value!r}</v></c>'


_MAKERS: dict[str, Callable[[Path], None]] = {
    "text.pdf": _text_pdf,
    "tables.pdf": _table_pdf,
    "form.pdf": _form_pdf,
    "images.pdf": _image_pdf,
    "long.docx": _word_document,
    "minutes.html": _web_page,
    "lots.xlsx": _workbook,
    "wide.xlsx": _wide_workbook,
}


def document(name: str, folder: Path) -> Path:
    """The document ``name`` in ``folder``, made when it is asked for the first time."""
    path = folder / name
    if not path.exists():
        _MAKERS[name](path)
    return path
