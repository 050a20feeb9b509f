"""The mapping probe on this very process: what it says is what was mapped, touched and freed."""

import ctypes
import mmap
import os
import re
from contextvars import ContextVar
from itertools import count, groupby
from pathlib import Path

import pytest

from diagnostics.analysis.address import (
    AddressHeat,
    BinHeat,
    bins_of,
    mapping_label,
    mappings_at,
    residency_sentence,
)
from diagnostics.probes.base import Session
from diagnostics.probes.mappings import MappingProbe
from diagnostics.recording.model import BIN_BYTES
from diagnostics.recording.reader import RecordingReader
from diagnostics.recording.writer import RecordingWriter

MB = 1 << 20
S = 1_000_000_000

pytestmark = pytest.mark.skipif(
    not os.access("/proc/self/smaps", os.R_OK), reason="this system does not tell mappings"
)


class Recording:
    """A probe and what it wrote; each reading stands one second after the one before."""

    def __init__(self, path):
        self.writer = RecordingWriter(path, {})
        self._seconds = count(1)
        self._probe = MappingProbe()
        self._probe.start(
            Session(
                now_ns=lambda: 0,
                current_unit=lambda: 0,
                unit_variable=ContextVar("unit", default=0),
                is_own_thread=lambda thread: False,
                log=lambda level, source, message: None,
            )
        )

    def read(self):
        """One reading, whatever the pace; returns its time."""
        t_ns = next(self._seconds) * S
        self._probe.finish(self.writer, t_ns)
        self.writer.commit()
        return t_ns

    def at(self, t_ns):
        with RecordingReader(self.writer.path) as reader:
            return mappings_at(reader, t_ns)


@pytest.fixture
def recording(tmp_path):
    recording = Recording(tmp_path / "run.p87")
    yield recording
    recording.writer.close()


def test_all_mappings_together_are_the_resident_set(recording):
    found = recording.at(recording.read())
    rollup = Path("/proc/self/smaps_rollup").read_text()
    resident = int(re.search(r"^Rss: +(\d+) kB", rollup, re.MULTILINE)[1]) * 1024
    assert sum(total.rss for total in found.totals.values()) == pytest.approx(resident, abs=MB)
    assert {"heap", "anonymous", "file-backed", "stack"} <= set(found.totals)


def test_a_mapped_file_is_resident_as_far_as_it_was_touched(recording, tmp_path):
    path = tmp_path / "document.pdf"
    path.write_bytes(bytes(64 * MB))
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        for place in range(0, 32 * MB, mmap.PAGESIZE):
            mapped[place]
        found = recording.at(recording.read())
        (row,) = [row for row in found.rows if mapping_label(row.mapping) == "document.pdf"]
        assert row.mapping.kind == "file-backed"
        assert row.memory.size == 64 * MB
        # the kernel maps a few of the pages around the one that is touched
        assert row.memory.rss == pytest.approx(32 * MB, abs=MB)
        assert row.memory.anonymous == 0
        assert re.match(
            r"document\.pdf: 33\.\d MB of 67\.1 MB are resident \(5\d\.\d %\)\.$",
            residency_sentence(row, {}),
        )
    after = recording.at(recording.read())
    assert "document.pdf" not in {mapping_label(row.mapping) for row in after.rows}


def test_memory_that_is_allocated_is_seen_and_gone_when_freed(recording):
    before = recording.read()
    block = bytearray(b"x") * (50 * MB)
    during = recording.read()
    del block
    after = recording.read()

    anonymous = [recording.at(t).totals["anonymous"].rss for t in (before, during, after)]
    assert anonymous[1] - anonymous[0] == pytest.approx(50 * MB, abs=4 * MB)
    assert anonymous[2] - anonymous[0] == pytest.approx(0, abs=4 * MB)

    # and the lens shows it as one mapping that came and went, or grew and shrank
    heat = AddressHeat(columns=8, first_width_ns=S)
    with RecordingReader(recording.writer.path) as reader:
        heat.feed(reader)
    table = heat.table(now_ns=after + S)
    rises = table.values[:, 3] - table.values[:, 1]
    row = int(rises.argmax())
    assert table.row_labels[row].startswith("anonymous 7")
    assert rises[row] == pytest.approx(50 * MB, abs=4 * MB)
    assert table.values[row, 4] == pytest.approx(table.values[row, 1], abs=4 * MB)


CHUNK = 100 * 1024  # small enough for glibc to take it from the heap, header included
HEADER = 16


@pytest.fixture
def libc():
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "malloc_trim"):
        pytest.skip("only glibc can give back what lies between blocks")
    libc.malloc.restype = ctypes.c_void_p
    libc.malloc.argtypes = [ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    return libc


def whole_bins(chunks, margin):
    """The bins that lie inside runs of adjacent chunks, ``margin`` bytes from their beginning."""
    runs = groupby(enumerate(sorted(chunks)), lambda pair: pair[1] - pair[0] * CHUNK)
    for _, run in runs:
        addresses = [address for _, address in run]
        first = -(-(addresses[0] + margin) // BIN_BYTES)
        yield from range(first, (addresses[-1] + CHUNK) // BIN_BYTES)


def test_holes_in_the_heap_are_seen(recording, libc):
    # given 40 MB of blocks in the heap, all of them written to
    blocks = [libc.malloc(CHUNK - HEADER + 8) for _ in range(400)]
    for block in blocks:
        ctypes.memset(block, 1, CHUNK - HEADER)
    full = recording.read()
    # when the second of each pair of ten is freed, and what is free goes back to the kernel
    freed = [block for place, block in enumerate(blocks) if place // 10 % 2]
    kept = sorted(set(blocks) - set(freed))
    for block in freed:
        libc.free(block)
    libc.malloc_trim(0)
    holed = recording.read()

    with RecordingReader(recording.writer.path) as reader:
        (heap,) = [row for row in mappings_at(reader, holed).rows if row.mapping.kind == "heap"]
        before, after = (bins_of(reader, heap.mapping, t) for t in (full, holed))
        inside = BinHeat(heap.mapping.id, columns=4, first_width_ns=S, most_rows=100_000)
        inside.feed(reader)
    for block in kept:
        libc.free(block)

    # then the blocks that are there are full, and those that went are empty, but for their edges
    # and the few that the interpreter has taken again for itself
    still = [number * BIN_BYTES for number in whole_bins([b - HEADER for b in kept], 0)]
    gone = [number * BIN_BYTES for number in whole_bins([b - HEADER for b in freed], 8192)]
    assert len(still) > 150
    assert len(gone) > 150
    assert {before[bin_] for bin_ in still + gone} == {BIN_BYTES}
    assert {after[bin_] for bin_ in still} == {BIN_BYTES}
    empty = [bin_ for bin_ in gone if bin_ not in after]
    assert len(empty) > 0.9 * len(gone)

    table = inside.table()
    row = table.row_keys.index(f"{empty[0]:x}")
    assert table.values[row].tolist() == [0, BIN_BYTES, BIN_BYTES]  # its last moment is in column 2
    sentence = residency_sentence(heap, after)
    assert re.search(r"in [\d,]+ blocks of 64 KiB, [\d,]+ of them with holes\.$", sentence)
