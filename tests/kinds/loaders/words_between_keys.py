"""Small words fill Python's own arenas and are let go; of 2,000 one stays, some in every arena."""

import time

from diagnostics import units

SIZE = 167

keys, words = [], []
for _ in units(range(40)):
    page = [b"x" * SIZE for _ in range(20_000)]
    keys += page[::2000]
    words += page
    del page
    time.sleep(0.03)  # a page takes a while
words.clear()
