"""The lens by address: mappings against time, and 64 KiB bins inside one of them."""

import pytest

from diagnostics.analysis.address import (
    AddressHeat,
    BinHeat,
    MappingFigures,
    bins_of,
    few_readings,
    mapping_label,
    mappings_at,
    residency_sentence,
)
from diagnostics.figures.heatmap import to_view
from diagnostics.recording.model import MappingMemory, MappingRow
from diagnostics.recording.reader import RecordingReader
from diagnostics.recording.writer import RecordingWriter

S = 1_000_000_000
KIB = 1024
BIN = 64 * KIB
PAGE = 4 * KIB

HEAP = MappingRow(1, "heap", 0x5500 * BIN, 0x5508 * BIN, "")
ANON = MappingRow(2, "anonymous", 0x7F3A0012 * BIN, 0x7F3A0052 * BIN, "")
PDFIUM = MappingRow(3, "file-backed", 0x7F3B0000 * BIN, 0x7F3B0010 * BIN, "/lib/libpdfium.so")
OTHERS = MappingRow(4, "anonymous", 0, 0, "")
STACK = MappingRow(5, "stack", 0x7FFF0000 * BIN, 0x7FFF0002 * BIN, "")
ALL = [HEAP, ANON, PDFIUM, OTHERS, STACK]


def memory(rss, size=1000, swap=0):
    return MappingMemory(rss, rss // 2, rss // 4, swap, size)


@pytest.fixture
def writer(tmp_path):
    writer = RecordingWriter(tmp_path / "run.p87", {})
    yield writer
    writer.close()


@pytest.fixture
def reader(writer):
    writer.commit()
    with RecordingReader(writer.path) as reader:
        yield reader


def add(writer, t_ns, state):
    writer.add_frame("mappings", t_ns, 1, {n: memory(rss) for n, rss in state.items()})
    writer.commit()


def add_bins(writer, t_ns, bins):
    writer.add_frame("residency", t_ns, 1, {number: (n,) for number, n in bins.items()})
    writer.commit()


def test_labels_are_what_people_call_them():
    assert [mapping_label(row) for row in ALL] == [
        "heap",
        "anonymous 7f3a0012…",
        "libpdfium.so",
        "other anonymous",
        "stack",
    ]
    assert mapping_label(MappingRow(6, "special", 1, 2, "[vdso]")) == "vdso"
    assert mapping_label(MappingRow(6, "anonymous", BIN, 2 * BIN, "malloc")) == "malloc 1…"


def test_a_map_of_few_readings_says_when_they_were_and_what_would_give_more(writer, reader):
    assert few_readings(reader) == ""  # another sentence says that there is none
    writer.put_mappings(ALL)
    for second in (1, 3):
        add(writer, second * S, {1: 40 * second})
    said = few_readings(reader)
    assert said.startswith("Only 2 readings of the mappings")
    assert "(at 1.0 s, 3.0 s)" in said
    assert "A longer run" in said
    for second in (5, 7, 9):
        add(writer, second * S, {1: 40 * second})
    assert few_readings(reader) == ""


def test_the_mappings_of_a_moment_with_the_sum_of_each_kind(writer, reader):
    writer.put_mappings(ALL)
    add(writer, 1 * S, {1: 40, 2: 80, 4: 20})
    add(writer, 3 * S, {1: 40, 2: 100, 3: 60, 4: 20})

    found = mappings_at(reader, 2 * S)
    assert [(row.mapping.id, row.memory.rss) for row in found.rows] == [(2, 80), (1, 40), (4, 20)]
    assert found.totals == {
        "heap": (40, 20, 10, 0, 1000),
        "anonymous": (100, 50, 25, 0, 2000),
    }
    later = mappings_at(reader, 9 * S)
    assert later.totals["file-backed"].rss == 60
    assert mappings_at(reader, 0).rows == ()
    assert mappings_at(reader, 0).totals == {}


def test_rows_stand_in_order_of_address(writer, reader):
    writer.put_mappings(ALL)
    add(writer, 1 * S, {5: 7, 3: 60, 2: 80, 1: 40, 4: 20})
    add(writer, 2 * S, {5: 7, 2: 30, 1: 90, 4: 25})  # the library is unmapped
    heat = AddressHeat(columns=4, first_width_ns=S)
    heat.feed(reader)

    table = heat.table(now_ns=3 * S)
    assert table.row_labels == [
        "heap",
        "anonymous 7f3a0012…",
        "libpdfium.so",
        "stack",
        "other anonymous",
    ]
    assert table.row_keys == ["1", "2", "3", "5", "other anonymous"]
    assert table.row_details[2] == ("file-backed /lib/libpdfium.so, 7f3b00000000 to 7f3b00100000")
    # a value holds up to and including the next one's moment, so column 2 still has the old ones
    assert table.values.tolist() == [
        [0, 40, 90, 90],
        [0, 80, 80, 30],
        [0, 60, 60, 0],
        [0, 7, 7, 7],
        [0, 20, 25, 25],
    ]
    # and it goes to the canvas as it is
    assert to_view(table, title="t", y_title="address").row_labels == table.row_labels


def test_mappings_without_a_row_are_added_up_by_kind(writer, reader):
    writer.put_mappings(ALL)
    add(writer, 1 * S, {1: 40, 2: 80, 3: 60, 4: 20, 5: 7})
    heat = AddressHeat(columns=4, first_width_ns=S)
    heat.feed(reader)
    table = heat.table(rows=1)
    kinds = ["heap", "anonymous", "file-backed", "stack"]
    assert table.row_keys == ["2", *(f"other {kind}" for kind in kinds)]
    assert table.values[:, 1].tolist() == [80, 40, 20, 60, 7]


def test_two_that_took_turns_are_not_more_than_their_kind_ever_was(writer, reader):
    one, two = (MappingRow(n, "anonymous", n * BIN, (n + 1) * BIN, "") for n in (1, 2))
    writer.put_mappings([one, two])
    add(writer, 100, {1: 50})
    add(writer, 200, {2: 40})
    heat = AddressHeat(columns=2, first_width_ns=S)
    heat.feed(reader)
    # both in one column: 50 and then 40, never 90
    assert heat.table(rows=0).values.tolist() == [[50]]
    assert heat.table(rows=2).values.tolist() == [[50], [40]]


def test_only_what_is_new_is_fed_and_the_number_of_rows_is_bounded(writer, reader):
    heat = AddressHeat(columns=4, first_width_ns=S, most_rows=4)
    for number in range(1, 11):  # ten mappings, each there until the next: 10, 20, … 100 bytes
        writer.put_mappings([MappingRow(number, "anonymous", number * BIN, (number + 1) * BIN, "")])
        add(writer, number, {number: 10 * number})
        heat.feed(reader)
    table = heat.table()
    # the lowest were folded; what is left has its own peaks, and the kind's total caps the rest
    assert 2 <= len(table.rows) - 1 <= 4
    assert table.row_keys[-2:] == ["10", "other anonymous"]
    assert [table.values[table.row_keys.index(str(n)), 0] for n in (9, 10)] == [90, 100]
    assert table.values[-1, 0] <= 100

    # when one that lost its row long ago comes back
    add(writer, 2 * S, {1: 500})
    heat.feed(reader)
    table = heat.table()
    assert table.values[table.row_keys.index("1")].tolist() == [0, 0, 500]
    # then what was folded does not come back with it
    assert table.values[table.row_keys.index("other anonymous"), 2] == 0


def test_a_mapping_that_the_file_does_not_name_is_other(writer, reader):
    add(writer, 1 * S, {99: 5})
    heat = AddressHeat(columns=4, first_width_ns=S)
    heat.feed(reader)
    assert heat.table().row_keys == ["other special"]
    assert mappings_at(reader, 1 * S).totals == {"special": memory(5)}


def test_an_empty_recording_is_an_empty_table(reader):
    heat, bins = AddressHeat(), BinHeat(1)
    heat.feed(reader)
    bins.feed(reader)
    assert heat.table().values.shape == (0, 0)
    assert bins.table().values.shape == (0, 0)


def test_bins_inside_a_mapping(writer, reader):
    writer.put_mappings(ALL)
    # given a heap of eight bins with a hole, and pages of somebody else
    add_bins(writer, 1 * S, {0x5500: 16, 0x5501: 16, 0x5504: 3, ANON.start // BIN: 16})
    add_bins(writer, 2 * S, {0x5500: 16, 0x5501: 4})

    assert bins_of(reader, HEAP, 1 * S) == {
        0x5500 * BIN: BIN,
        0x5501 * BIN: BIN,
        0x5504 * BIN: 3 * PAGE,
    }
    assert bins_of(reader, HEAP, 5 * S) == {0x5500 * BIN: BIN, 0x5501 * BIN: 4 * PAGE}
    assert bins_of(reader, HEAP, 0) == {}
    assert bins_of(reader, PDFIUM, 5 * S) == {}

    heat = BinHeat(HEAP.id, columns=4, first_width_ns=S)
    heat.feed(reader)
    table = heat.table(now_ns=3 * S)
    assert table.row_labels == [f"{0x5500 + n:x}0000" for n in range(8)]
    assert table.row_details[1] == "64 KiB from 55010000"
    assert table.values.tolist() == [
        [0, BIN, BIN, BIN],
        [0, BIN, BIN, 4 * PAGE],
        [0] * 4,
        [0] * 4,
        [0, 3 * PAGE, 3 * PAGE, 0],
        [0] * 4,
        [0] * 4,
        [0] * 4,
    ]


def test_bins_of_a_mapping_that_outgrows_its_rows_are_joined(writer, reader):
    heat = BinHeat(HEAP.id, columns=4, first_width_ns=S, most_rows=4)
    writer.put_mappings([MappingRow(1, "heap", 4 * BIN, 8 * BIN, "")])
    # given pages beside the mapping that are not its own yet
    add_bins(writer, 1 * S, {3: 9, 4: 16, 5: 2, 7: 1})
    heat.feed(reader)
    assert heat.table().values[:, 1].tolist() == [BIN, 2 * PAGE, 0, PAGE]

    # when it grows over them, to both sides: 3 to 9, seven bins, two in a row
    writer.put_mappings([MappingRow(1, "heap", 3 * BIN, 10 * BIN, "")])
    add_bins(writer, 2 * S, {3: 9, 4: 16, 5: 3, 7: 1, 9: 16})
    heat.feed(reader)
    table = heat.table(now_ns=3 * S)
    assert table.row_details == [
        "128 KiB from 20000",
        "128 KiB from 40000",
        "128 KiB from 60000",
        "128 KiB from 80000",
    ]
    assert table.values.tolist() == [
        [0, 0, 9 * PAGE, 9 * PAGE],
        [0, 18 * PAGE, 19 * PAGE, 19 * PAGE],
        [0, PAGE, PAGE, PAGE],
        [0, 0, 16 * PAGE, 16 * PAGE],
    ]


def test_what_a_key_frame_does_not_name_is_gone(writer, reader):
    writer.put_mappings([HEAP])
    heat = BinHeat(HEAP.id, columns=4, first_width_ns=S)
    add_bins(writer, 1 * S, {0x5500 + n: 16 for n in range(4)})
    heat.feed(reader)
    add_bins(writer, 2 * S, {0x5507: 5})  # more changes than entries: a key frame
    heat.feed(reader)
    assert heat.table(now_ns=3 * S).values[:, 3].tolist() == [0] * 7 + [5 * PAGE]


def sentence(mapping, rss, size, bins, swap=0):
    return residency_sentence(MappingFigures(mapping, memory(rss, size, swap)), bins)


def test_the_sentence_says_what_is_resident_and_in_how_many_pieces():
    start = HEAP.start
    assert sentence(HEAP, 3_000_000, 4_000_000, {start: BIN, start + BIN: 4 * PAGE}) == (
        "heap: 3.0 MB of 4.0 MB are resident (75.0 %), in 2 blocks of 64 KiB, 1 of them with holes."
    )
    assert sentence(HEAP, 65_536, 524_288, {start: BIN}) == (
        "heap: 65.5 kB of 524 kB are resident (12.5 %), in 1 block of 64 KiB without a hole."
    )
    # pages were not read
    assert sentence(PDFIUM, 500_000, 1_000_000, {}, swap=20_000) == (
        "libpdfium.so: 500 kB of 1.0 MB are resident (50.0 %), 20.0 kB are swapped out."
    )


def test_a_block_that_sticks_out_of_its_mapping_has_no_hole_for_it():
    # given a mapping of 12 pages that begins and ends in the middle of a block
    row = MappingRow(1, "heap", 60 * KIB, 108 * KIB, "")
    full = {0: 1 * PAGE, BIN: 11 * PAGE}
    assert sentence(row, 48 * KIB, 48 * KIB, full).endswith("in 2 blocks of 64 KiB without a hole.")
    holed = {0: 1 * PAGE, BIN: 10 * PAGE}
    assert sentence(row, 44 * KIB, 48 * KIB, holed).endswith("64 KiB, 1 of them with holes.")
