"""Pages are read faster than they are stored, and the queue between takes them all."""

import queue
import threading
import time

from diagnostics import units

waiting = queue.Queue()
ready = threading.Semaphore(0)  # for one page in five, however busy the machine is


def store():
    while ready.acquire():
        waiting.get()


threading.Thread(target=store, daemon=True).start()
for number in units(range(100)):
    waiting.put(b"x" * (500_000 + number))
    if number % 5 == 0:
        ready.release()
    time.sleep(0.01)
