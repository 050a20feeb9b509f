"""The lines of all pages are let go; the keys, made in turn with them, stay between the holes."""

import time

from diagnostics import units

LINE, KEY = 3500, 530

keys, lines = [], []
for _ in units(range(40)):
    for _ in range(1000):
        lines.append(b"x" * LINE)
        keys.append(b"x" * KEY)
    time.sleep(0.03)  # a page takes a while
lines.clear()
