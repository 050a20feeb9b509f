"""The lines of all pages are let go, but for the last one of each: it lies above the others."""

import time

from diagnostics import units

SIZE = 20_000

lines, last = [], []
for _ in units(range(40)):
    lines += [b"x" * SIZE for _ in range(200)]
    last.append(b"x" * SIZE)
    time.sleep(0.03)  # a page takes a while
lines.clear()
