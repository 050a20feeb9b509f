"""Stands in for Page 87 where a loader is measured without it: marks that read a gauge.

``BARE_GAUGE`` says what is read at the end of each unit: ``python`` (live Python blocks, by
tracemalloc), ``python peak`` (their highest in the unit, above its end), ``rss`` (of this
process) or ``children`` (RSS of the child processes).
``BARE_OUT`` is the file for the readings, in bytes, as JSON: ``units`` in order; and, after the
last one, ``end``, ``collected`` (after a collection, which freed ``objects``) and ``trimmed``
(after ``malloc_trim``). ``start`` is the reading before the first unit.
"""

import atexit
import contextlib
import ctypes
import gc
import json
import os
import threading
import tracemalloc
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")
_GAUGE = os.environ["BARE_GAUGE"]
_readings = []  # the first one comes before any unit
_first = threading.Lock()


def _rss(pid):
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE


def _children():
    task = Path(f"/proc/self/task/{os.getpid()}/children")
    return sum(_rss(pid) for pid in task.read_text().split())


def read():
    if _GAUGE == "python":
        return tracemalloc.get_traced_memory()[0]
    if _GAUGE == "python peak":
        now, peak = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        return peak - now
    return _children() if _GAUGE == "children" else _rss("self")


def _begin():
    with _first:  # units may begin in several threads at a time
        if not _readings:
            _readings.append(read())


@contextlib.contextmanager
def unit(kind="page", number=None, *, label=""):
    _begin()
    yield
    _readings.append(read())


def units(items, kind="page", *, total=None, label=None):
    _begin()
    for item in items:
        yield item
        del item
        _readings.append(read())


def produced(**amounts):
    pass


def _write():
    start, *readings = _readings
    result = {"start": start, "units": readings, "end": read()}
    result["objects"] = gc.collect()
    result["collected"] = read()
    ctypes.CDLL(None).malloc_trim(0)
    result["trimmed"] = read()
    Path(os.environ["BARE_OUT"]).write_text(json.dumps(result))


atexit.register(_write)
if _GAUGE.startswith("python"):
    tracemalloc.start(1)
