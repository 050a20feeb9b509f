"""A workbook, whole and row by row."""

from itertools import islice

import openpyxl


def load(path):
    yield from _texts(openpyxl.load_workbook(path))


def stream(path):
    yield from _texts(openpyxl.load_workbook(path, read_only=True))


def _texts(workbook):
    rows = workbook.active.iter_rows(values_only=True)
    while batch := list(islice(rows, 250)):
        yield "\n".join("\t".join(map(str, row)) for row in batch)
