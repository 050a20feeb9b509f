"""The sample documents are what the script makes, and tell the story that they are there for."""

import re
import subprocess
import sys
import zlib
from pathlib import Path
from zipfile import ZipFile

import docx
import pdfplumber
import pypdf
import pytest
from lxml import html

ROOT = Path(__file__).parents[2]
COMMITTED = ROOT / "sample_docs"
REPORT, SHORT, HANDBOOK, MINUTES, NOTICES = DOCUMENTS = (
    "annual-report.pdf",
    "annual-report.docx",
    "handbook.md",
    "minutes.html",
    "bilingual.txt",
)
POISONOUS = 87


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sample_docs")
    command = [sys.executable, COMMITTED / "make.py", "--out", folder]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def report():
    with (COMMITTED / REPORT).open("rb") as stream:
        yield pypdf.PdfReader(stream)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_script_makes_what_is_committed(made, name):
    assert unpacked(made / name) == unpacked(COMMITTED / name)
    if zlib_compresses_as_committed():
        assert (made / name).read_bytes() == (COMMITTED / name).read_bytes()


def test_nothing_else_is_made_and_all_of_it_is_small(made):
    assert sorted(path.name for path in made.iterdir()) == sorted(DOCUMENTS)
    assert sum((COMMITTED / name).stat().st_size for name in DOCUMENTS) < 2_000_000


def test_the_report_is_long_and_its_pages_differ(report):
    texts = [page.extract_text() for page in report.pages]
    assert len(texts) >= 120
    assert len(set(texts)) == len(texts)
    for number, text in enumerate(texts[1:], 2):
        assert f"Page {number}" in text.splitlines()


def test_the_bookmarks_lead_to_their_headings(report):
    chapters = [entry for entry in report.outline if not isinstance(entry, list)]
    assert chapters[0].title == "The year in brief"
    for chapter in chapters:
        page = report.pages[report.get_destination_page_number(chapter)]
        assert chapter.title in page.extract_text()


def test_page_87_draws_far_more_than_any_other(report):
    # given the size of each page's drawing, uncompressed
    sizes = [len(page.get_contents().get_data()) for page in report.pages]
    # then
    poisonous = sizes.pop(POISONOUS - 1)
    assert poisonous > 10 * max(sizes)


def test_page_87_has_tens_of_thousands_of_vector_operators_and_still_reads_as_a_map(report):
    page = report.pages[POISONOUS - 1]
    operators = re.findall(rb"(?<=[\d\s])(?:m|l|re|h|S|s)\b", page.get_contents().get_data())
    assert len(operators) > 30_000
    text = page.extract_text()
    assert "network plan, sheet 12: Lower Quill" in text
    assert len(re.findall(r"\b[HV]12\d{3}\b", text)) > 100


def test_notices_are_in_chinese_and_in_english():
    text = (COMMITTED / NOTICES).read_bytes().decode("utf-8")
    assert len(re.findall(r"[\u4e00-\u9fff]", text)) > 10_000
    assert len(re.findall(r"[A-Za-z]", text)) > 50_000
    assert "Notice 1, 1 January" in text
    assert "第1号公告，1月1日" in text


@pytest.mark.parametrize(("name", "least"), [(SHORT, 25), (HANDBOOK, 20), (MINUTES, 30)])
def test_totals_are_the_sums_of_what_stands_above_them(name, least):
    tables = {SHORT: docx_tables, HANDBOOK: markdown_tables, MINUTES: html_tables}[name]()
    assert sum(check_total(rows) for rows in tables) >= least


def test_totals_in_the_report_are_sums_too_and_agree_with_each_other():
    # given the districts at a glance, and the works month by month
    with pdfplumber.open(COMMITTED / REPORT, pages=[6, 7]) as pdf:
        districts, works = (page.extract_table() for page in pdf.pages)
    # then both add up, and to the same water
    assert check_total(districts)
    assert check_total(works)
    assert districts[0][4].split() == ["Supplied", "(thousand", "m³)"]
    assert districts[-1][4] == works[-1][-1]


def check_total(rows):
    """Whether there is a last line "Total"; each number in it is the sum of its column."""
    *body, last = rows[1:]
    if last[0] != "Total":
        return False
    claimed = [column for column, text in enumerate(last) if column and text]
    assert claimed
    for column in claimed:
        assert number(last[column]) == sum(number(row[column]) for row in body), rows[0][column]
    return True


def number(text):
    return int(text.replace(",", ""))


def docx_tables():
    # Not row.cells: python-docx takes seconds for that.
    return [
        [[cell.xpath("string()") for cell in row.tc_lst] for row in table._tbl.tr_lst]
        for table in docx.Document(COMMITTED / SHORT).tables
    ]


def markdown_tables():
    tables = re.findall(r"(?:^\|.*\|\n)+", (COMMITTED / HANDBOOK).read_text("utf-8"), re.MULTILINE)
    split = [[row.strip("|").split("|") for row in table.splitlines()] for table in tables]
    return [[[cell.strip() for cell in row] for row in (table[0], *table[2:])] for table in split]


def html_tables():
    page = html.parse(COMMITTED / MINUTES, html.HTMLParser(encoding="utf-8"))
    return [
        [[cell.text_content() for cell in row] for row in table.iter("tr")]
        for table in page.iter("table")
    ]


def unpacked(path):
    """What a file holds once its compression is undone: that may differ with zlib's version."""
    if path.suffix == ".docx":
        with ZipFile(path) as archive:
            return [(info.filename, archive.read(info)) for info in archive.infolist()]
    if path.suffix == ".pdf":
        # Lengths, offsets and the digest in /ID follow from the compressed bytes.
        objects = path.read_bytes().rpartition(b"\nxref\n")[0]
        streams = re.split(rb"/Length \d+|stream\r?\n(.*?)endstream", objects, flags=re.DOTALL)
        return [inflated(part) for part in streams if part]
    return path.read_bytes()


def inflated(part):
    try:
        return zlib.decompress(part)
    except zlib.error:  # what stands between the streams
        return part


def zlib_compresses_as_committed():
    """Whether this machine's zlib makes the same bytes as the one that the documents are from."""
    with ZipFile(COMMITTED / SHORT) as archive:
        info = archive.getinfo("word/document.xml")
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        packed = packer.compress(archive.read(info)) + packer.flush()
        return len(packed) == info.compress_size
