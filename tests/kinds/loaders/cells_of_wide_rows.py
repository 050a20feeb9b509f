"""Every cell of every row becomes a record, also the cells that only the sheet's range claims."""

import sys

import openpyxl

from diagnostics import units

workbook = openpyxl.load_workbook(sys.argv[1], read_only="full" not in sys.argv)
records = []
for row in units(workbook.active.iter_rows(), "row"):
    records.append([(len(records), column, cell.value) for column, cell in enumerate(row)])
