"""Pages are read faster than they are stored, and the queue between takes them all."""

import queue
import threading
import time

from diagnostics import units

waiting = queue.Queue()


def store():
    while waiting.get() is not None:
        time.sleep(0.05)


threading.Thread(target=store, daemon=True).start()
for number in units(range(100)):
    waiting.put(b"x" * (500_000 + number))
    time.sleep(0.01)
