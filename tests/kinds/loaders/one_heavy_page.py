"""One page needs far more than the others, and gives it back."""

import time

from diagnostics import units

HEAVY = 23

for number in units(range(1, 41)):
    size = 150_000_000 if number == HEAVY else 1_000_000
    raster = b"x" * size
    del raster
    time.sleep(0.03)  # a page takes a while
