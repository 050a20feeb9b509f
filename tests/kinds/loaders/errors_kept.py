"""Every third page fails. Its error is kept for a report, and with it all that it was read into."""

import time

from diagnostics import units

failed = []


def parse(number):
    raster = b"x" * 2_000_000
    if number % 3 == 2:
        raise ValueError(f"page {number} is damaged")
    return len(raster)


for number in units(range(60)):
    try:
        parse(number)
    except ValueError as error:
        failed.append(error)
    time.sleep(0.02)  # a page takes a while
