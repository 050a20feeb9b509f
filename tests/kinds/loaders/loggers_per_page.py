"""A logger of its own for each page, with a handler that remembers: loggers are never forgotten."""

import logging
import time
from logging.handlers import MemoryHandler

from diagnostics import units


def page_logger(number):
    logger = logging.getLogger(f"loader.page-{number}")
    logger.propagate = False
    logger.addHandler(MemoryHandler(capacity=100_000, flushLevel=logging.CRITICAL))
    return logger


for number in units(range(60)):
    logger = page_logger(number)
    for line in range(8):
        logger.warning("line %d could not be read: %s", line, "x" * (50_000 + line))
    time.sleep(0.02)  # a page takes a while
