"""``lru_cache`` on a method: 128 results are kept, and not one more."""

import time
from functools import lru_cache

from diagnostics import units


class Document:
    @lru_cache  # noqa: B019 - this is what the test is about
    def page(self, number):
        return b"x" * (200_000 + number)


document = Document()
for number in units(range(400)):
    document.page(number)
    time.sleep(0.003)  # a page takes a while
