"""Make the sample documents: python sample_docs/make.py [--out DIR]

The same bytes come out each time with the versions of reportlab and python-docx that
requirements-test.txt pins.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

# Run as a script, Python would look for modules beside this file only.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from sample_docs.quillmere.as_docx import write_docx
from sample_docs.quillmere.as_html import write_html
from sample_docs.quillmere.as_markdown import write_markdown
from sample_docs.quillmere.as_pdf import write_pdf
from sample_docs.quillmere.handbook import handbook
from sample_docs.quillmere.minutes import minutes
from sample_docs.quillmere.notices import write_notices
from sample_docs.quillmere.report import annual_report, short_report

HERE = Path(__file__).resolve().parent
POISONOUS_PAGE = 87


def make(folder: Path) -> list[Path]:
    """Write the documents into ``folder``; returns their paths.

    Raises ValueError when the text of the report has changed so much that the network map is no
    longer on the poisonous page.
    """
    report = folder / "annual-report.pdf"
    map_page = write_pdf(annual_report(), report)
    if map_page != POISONOUS_PAGE:
        raise ValueError(
            f"the network map fell on page {map_page}, not on {POISONOUS_PAGE}: "
            "lengthen or shorten the chapters before it"
        )
    short, book = folder / "annual-report.docx", folder / "handbook.md"
    board, notices = folder / "minutes.html", folder / "bilingual.txt"
    write_docx(short_report(), short)
    write_markdown(handbook(), book)
    write_html(minutes(), board)
    write_notices(notices)
    return [report, short, book, board, notices]


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the sample documents.")
    parser.add_argument("--out", type=Path, default=HERE, help="folder to write to")
    folder: Path = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    for path in make(folder):
        print(f"{path}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
