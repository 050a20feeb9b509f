"""One short string a document is kept, and it is a node of the whole tree."""

import sys
from pathlib import Path

from bs4 import BeautifulSoup

from diagnostics import units

html = Path(sys.argv[1]).read_text()
headings = []
for _ in units(range(12), "document"):
    soup = BeautifulSoup(html, "html.parser")
    headings.append(soup.find("b").string)
    del soup
