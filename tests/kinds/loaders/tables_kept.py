"""The tables of each page are kept, each with the picture of its page."""

import sys

import camelot

from diagnostics import units

kept = []
for number in units(range(1, 9)):
    tables = camelot.read_pdf(sys.argv[1], pages=str(number))
    kept.append(tables)
