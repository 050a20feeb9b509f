"""An extension takes a reference to what each page gives and never gives it back."""

import ctypes
import time

from diagnostics import units


def checksum(data):
    """As an extension would be that forgets ``Py_DECREF``."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(data))
    return data[0]


for number in units(range(60)):
    page = b"x" * (400_000 + number)
    checksum(page)
    time.sleep(0.02)  # a page takes a while
