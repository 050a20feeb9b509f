"""The pages are read in another process, which keeps them; this one only hands out numbers."""

import subprocess
import sys

from diagnostics import units

WORKER = """
import sys, time
pages = []
for line in sys.stdin:
    pages.append(b"x" * 4_000_000)
    time.sleep(0.05)
    print(len(pages), flush=True)
"""

helper = subprocess.Popen(
    [sys.executable, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
)
for number in units(range(50)):
    print(number, file=helper.stdin, flush=True)
    helper.stdout.readline()
