"""Each page and its layout refer to one another; too few objects to wake the collector, whose
threshold somebody raised for speed.

With ``off`` as the first word the collector sleeps in any case.
"""

import gc
import sys
import time

from diagnostics import units


class Layout:
    def __init__(self, page):
        self.page = page
        self.glyphs = b"x" * (800_000 + page.number)


class Page:
    def __init__(self, number):
        self.number = number
        self.layout = Layout(self)


gc.set_threshold(20_000)
if "off" in sys.argv:
    gc.disable()
for number in units(range(60)):
    Page(number)
    time.sleep(0.02)  # a page takes a while
