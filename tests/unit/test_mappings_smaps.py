"""From the lines of an smaps file to mappings with ids that last."""

from contextvars import ContextVar

import pytest

from diagnostics.probes import mappings
from diagnostics.probes.base import ProbeMissingError, Session
from diagnostics.probes.mappings import (
    Mapped,
    MappingBook,
    MappingProbe,
    group,
    largest_writable,
    ranges,
)
from diagnostics.recording.model import MappingMemory, MappingRow
from diagnostics.recording.reader import RecordingReader
from diagnostics.recording.writer import RecordingWriter

KB = 1024


def block(header, size, rss=0, pss=0, anonymous=0, swap=0):
    """One range as the kernel writes it; the fields that are not asked for hold other numbers."""
    return (
        f"{header}\nSize: {size:18} kB\nKernelPageSize:        4 kB\nRss: {rss:19} kB\n"
        f"Pss: {pss:19} kB\nPss_Dirty:           901 kB\nReferenced:          902 kB\n"
        f"Anonymous: {anonymous:13} kB\nAnonHugePages:       903 kB\nSwap: {swap:18} kB\n"
        f"SwapPss:             904 kB\nLocked:              905 kB\n"
        "THPeligible:           0\nVmFlags: rd mr mw me \n"
    )


def parse(*blocks):
    return group(ranges("".join(blocks).encode().splitlines(keepends=True)))


def test_every_field_is_read_in_bytes():
    (found,) = parse(block("7f00-7f10 rw-p 00000000 00:00 0 ", 64, 60, 50, 40, 30))
    assert (found.start, found.end, found.access) == (0x7F00, 0x7F10, "rw-p")
    assert MappingMemory(*found.memory) == MappingMemory(
        rss=60 * KB, pss=50 * KB, anonymous=40 * KB, swap=30 * KB, size=64 * KB
    )


@pytest.mark.parametrize(
    ("path", "kind", "name"),
    [
        ("", "anonymous", ""),
        ("[heap]", "heap", ""),
        ("[stack]", "stack", ""),
        ("[stack:1234]", "stack", ""),
        ("[anon:glibc malloc]", "anonymous", "glibc malloc"),
        ("[vdso]", "special", "[vdso]"),
        ("anon_inode:[perf_event]", "special", "anon_inode:[perf_event]"),
        ("/dev/zero (deleted)", "anonymous", "shared memory"),
        ("/srv/two words.pdf", "file-backed", "/srv/two words.pdf"),
        ("/srv/old.so (deleted)", "file-backed", "/srv/old.so (deleted)"),
    ],
)
def test_kinds(path, kind, name):
    (found,) = parse(block(f"7f00-7f10 rw-p 00000000 fe:00 77      {path}", 4, 4))
    assert (found.kind, found.name) == (kind, name)


def test_a_name_that_is_no_utf8_can_be_stored():
    line = b"7f00-7f10 r--p 00000000 fe:00 77      /srv/caf\xe9.pdf\n"
    assert next(ranges([line])).name == "/srv/caf\\xe9.pdf"


def test_what_belongs_together():
    found = parse(
        block("1000-2000 r--p 00000000 fe:00 7   /lib/libpdfium.so", 4, 4),
        block("2000-4000 r-xp 00001000 fe:00 7   /lib/libpdfium.so", 8, 6),
        block("5000-6000 rw-p 00003000 fe:00 7   /lib/libpdfium.so", 4, 2),  # behind a gap
        block("6000-7000 rw-p 00000000 00:00 0 ", 4, 1),
        block("7000-9000 rw-p 00000000 00:00 0 ", 8, 3),  # a neighbour
        block("9000-a000 ---p 00000000 00:00 0 ", 4),  # reserved, holds nothing
        block("a000-b000 rw-p 00000000 00:00 0 ", 4, 4),
        block("b000-c000 r--p 00000000 00:00 0 ", 4, 4),  # with other rights
        block("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0   [vsyscall]", 4),
    )
    assert [(m.name, m.start, m.end, m.rss // KB, m.memory[-1] // KB) for m in found] == [
        ("/lib/libpdfium.so", 0x1000, 0x6000, 12, 16),
        ("", 0x6000, 0x9000, 4, 12),
        ("", 0xA000, 0xB000, 4, 4),
        ("", 0xB000, 0xC000, 4, 4),
    ]


def mapped(start, end, rss, kind="anonymous", name="", access="rw-p"):
    return Mapped(kind, name, start, end, access, [rss, rss, rss, 0, end - start])


def test_pages_are_read_of_the_largest_writable_ones():
    small, large = mapped(0, 9, 1), mapped(10, 19, 3)
    heap = mapped(20, 29, 2, "heap")
    others = [
        mapped(30, 39, 9, access="r--p"),
        mapped(40, 49, 9, "file-backed", "/a.so"),
        mapped(50, 59, 9, "stack"),
        mapped(60, 69, 0),
    ]
    assert largest_writable([small, large, heap, *others], 2) == [large, heap]
    assert largest_writable([small, large, heap, *others], 8) == [large, heap, small]


def test_a_mapping_keeps_its_id_as_it_grows_either_way():
    book = MappingBook(own_rows=10)
    rows, state = book.enter([mapped(100, 200, 50), mapped(300, 400, 60)])
    assert sorted(rows, key=lambda row: row.start) == [
        MappingRow(2, "anonymous", 100, 200, ""),
        MappingRow(1, "anonymous", 300, 400, ""),
    ]
    assert state == {2: (50, 50, 50, 0, 100), 1: (60, 60, 60, 0, 100)}

    # when the first grows upwards and the second downwards
    rows, state = book.enter([mapped(100, 250, 70), mapped(260, 400, 60)])
    assert rows == [
        MappingRow(2, "anonymous", 100, 250, ""),
        MappingRow(1, "anonymous", 260, 400, ""),
    ]
    assert {number: memory.rss for number, memory in state.items()} == {2: 70, 1: 60}

    # when the first shrinks, its row keeps the widest, and nothing has to be written
    rows, state = book.enter([mapped(100, 120, 5), mapped(260, 400, 60)])
    assert rows == []
    assert state[2].size == 20

    # and what takes the place of one that is gone, under another name, is a new one
    rows, state = book.enter([mapped(100, 120, 5, "file-backed", "/a.so"), mapped(260, 400, 60)])
    assert rows == [MappingRow(3, "file-backed", 100, 120, "/a.so")]
    assert set(state) == {1, 3}


def test_a_mapping_that_is_split_goes_on_as_one_of_its_parts():
    book = MappingBook(own_rows=10)
    book.enter([mapped(100, 200, 90)])
    _, state = book.enter([mapped(100, 140, 40), mapped(160, 200, 30)])
    assert {number: memory.rss for number, memory in state.items()} == {1: 40, 2: 30}


def test_the_small_ones_are_added_up_by_kind():
    book = MappingBook(own_rows=1)
    found = [mapped(100, 200, 50), mapped(300, 400, 20), mapped(500, 600, 7)]
    rows, state = book.enter([*found, mapped(700, 800, 3, "stack")])
    assert rows == [
        MappingRow(1, "anonymous", 100, 200, ""),
        MappingRow(2, "anonymous", 0, 0, ""),
        MappingRow(3, "stack", 0, 0, ""),
    ]
    assert state == {1: (50, 50, 50, 0, 100), 2: (27, 27, 27, 0, 200), 3: (3, 3, 3, 0, 100)}

    # when another becomes the largest, and then the first again
    _, state = book.enter([mapped(100, 200, 50), mapped(300, 400, 80)])
    assert {number: memory.rss for number, memory in state.items()} == {4: 80, 2: 50}
    rows, state = book.enter([mapped(100, 200, 90), mapped(300, 400, 80)])
    # then it has its old id
    assert {number: memory.rss for number, memory in state.items()} == {1: 90, 2: 80}
    assert rows == []


def session():
    return Session(
        now_ns=lambda: 0,
        current_unit=lambda: 7,
        unit_variable=ContextVar("unit", default=0),
        is_own_thread=lambda thread: False,
        log=lambda level, source, message: None,
    )


def test_where_there_is_no_smaps_the_probe_is_missing(monkeypatch, tmp_path):
    monkeypatch.setattr(mappings, "_SMAPS", tmp_path / "smaps")
    with pytest.raises(ProbeMissingError, match=r"smaps cannot be read \(No such file"):
        MappingProbe().start(session())


@pytest.fixture
def writer(tmp_path):
    writer = RecordingWriter(tmp_path / "run.p87", {})
    yield writer
    writer.close()


def test_without_a_pagemap_the_mappings_are_still_read(monkeypatch, tmp_path, writer):
    monkeypatch.setattr(mappings, "_PAGEMAP", tmp_path / "pagemap")
    probe = MappingProbe()
    probe.start(session())
    probe.tick(writer, 0)
    writer.commit()
    assert "pagemap cannot be read (No such file" in probe.detail
    with RecordingReader(writer.path) as reader:
        (frame,) = reader.frames("mappings")
        assert len(frame.values) > 3
        assert frame.unit == 7
        assert list(reader.frames("residency")) == []


def test_what_is_too_large_to_walk_through_is_counted(monkeypatch, writer):
    monkeypatch.setattr(mappings, "_MOST_BIN_BYTES", 0)
    probe = MappingProbe()
    probe.start(session())
    probe.tick(writer, 0)
    writer.commit()
    with RecordingReader(writer.path) as reader:
        assert [dict(frame.values) for frame in reader.frames("residency")] == [{}]
    assert 0 < probe.dropped <= 8


def test_readings_keep_their_distance(writer):
    probe = MappingProbe(every_s=2.0)
    probe.start(session())
    for t_ns in (0, 1_900_000_000):
        probe.tick(writer, t_ns)
    writer.commit()
    with RecordingReader(writer.path) as reader:
        assert [frame.t_ns for frame in reader.frames("mappings")] == [0]
    new = bytearray(b"x") * (48 << 20)  # too large to come out of memory that was there before
    probe.finish(writer, 1_950_000_000)  # the end is always seen
    writer.commit()
    assert len(new) == 48 << 20
    with RecordingReader(writer.path) as reader:
        assert [frame.t_ns for frame in reader.frames("mappings")] == [0, 1_950_000_000]
