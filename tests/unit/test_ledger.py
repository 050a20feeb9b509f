"""The ledger's parts, worked out with a pencil; its pictures; the control group's figures."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diagnostics.analysis.ledger import (
    PART_NAMES,
    LiveLedger,
    ledger_table,
    line_of,
    parts,
)
from diagnostics.analysis.library import list_recordings
from diagnostics.analysis.summary import summarise
from diagnostics.figures.ledger import ledger, memory_beside
from diagnostics.probes.cgroup import GroupMemory, own_group
from diagnostics.recording.model import HeapTotal, LedgerReading, Outcome, ProcessSample
from diagnostics.recording.reader import RecordingReader
from diagnostics.recording.writer import RecordingWriter

MB = 1_000_000
S = 1_000_000_000

# 100 MB: 80 anonymous, 15 file-backed, 5 shared. Python lives in 12 MB of arenas and in 20 MB of
# malloc's 35; malloc has 10 MB free.
READING = LedgerReading(
    t_ns=S,
    rss=100 * MB,
    anonymous=80 * MB,
    file_backed=15 * MB,
    shared=5 * MB,
    python=28 * MB,
    python_small=8 * MB,
    arenas=12 * MB,
    native_used=35 * MB,
    native_free=10 * MB,
    children=None,
    group_anonymous=None,
    group_cache=None,
)


def in_mb(row):
    return {name: size / MB for name, size in row.known().items()}


def test_a_peak_that_only_the_ledger_saw_is_the_peak_of_the_run(tmp_path):
    # given ticks at 60 MB, between which the ledger read 100 MB
    writer = RecordingWriter(tmp_path / "run.p87", {})
    for t_ns in (0, 2 * S):
        writer.put_process(ProcessSample(t_ns, 60 * MB, None, None, 0, 0, 1, 0))
    writer.put_ledger(READING)
    writer.put_outcome(Outcome("finished", "", 3 * S, 0))
    writer.close()

    with RecordingReader(tmp_path / "run.p87") as reader:
        found = summarise(reader)
    assert found.explanation.at_peak.rss == 100 * MB
    assert found.process.rss_peak_bytes == 100 * MB
    assert found.explanation.judgement.base == 40 * MB
    [entry] = list_recordings(tmp_path)
    assert entry.peak_bytes == 100 * MB


def test_a_reading_is_split_into_parts_that_add_up():
    row = parts(READING, recorder=3 * MB)

    assert in_mb(row) == {
        "python": 28,
        "pymalloc_empty": 4,  # 12 - 8
        "native": 12,  # 35 - 20 of Python - 3 of the recorder
        "malloc_free": 10,
        "recorder": 3,
        "file_backed": 15,
        "shared": 5,
        "rest": 23,  # 80 - 28 - 4 - 12 - 10 - 3
    }
    assert (row.not_resident, row.note) == (0, "")


def test_free_space_that_was_trimmed_is_not_resident():
    # malloc still counts 60 MB as free, but there is room for 80 - 47 - 23 = 10 MB of it.
    row = parts(replace(READING, native_free=60 * MB), recorder=3 * MB, rest_at_start=23 * MB)

    assert row.malloc_free == 10 * MB
    assert row.not_resident == 50 * MB
    assert row.rest == 23 * MB


def test_pymallocs_empty_space_gives_way_after_mallocs():
    reading = replace(READING, native_free=1 * MB, arenas=50 * MB)  # 42 MB empty, if resident

    row = parts(reading, recorder=3 * MB, rest_at_start=23 * MB)

    # 80 - 23 of the rest - 28 - 12 - 3 leave 14 MB, and none of it to malloc
    assert (row.malloc_free, row.pymalloc_empty, row.rest) == (0, 14 * MB, 23 * MB)


def test_blocks_that_nobody_has_touched_shrink_by_one_share():
    # 160 MB are counted in 80 MB: Python's 120 and the native 40 are halved.
    reading = replace(
        READING,
        python=120 * MB,
        python_small=0,
        arenas=0,
        native_used=160 * MB,
        native_free=0,
    )

    row = parts(reading, rest_at_start=23 * MB)

    assert (row.python, row.native, row.rest) == (60 * MB, 20 * MB, 0)
    assert row.not_resident == 80 * MB


def test_small_blocks_in_older_arenas_take_from_the_rest():
    # 5 MB of the small blocks lie in arenas that were there before: the rest was 23 and is 18.
    reading = replace(READING, arenas=3 * MB, native_free=60 * MB)

    row = parts(reading, recorder=3 * MB, rest_at_start=23 * MB)

    assert row.pymalloc_empty == 0
    assert row.rest == 18 * MB
    assert row.malloc_free == (80 - 28 - 12 - 3 - 18) * MB


@pytest.mark.parametrize(
    ("gone", "told", "word"),
    [
        (["native_used", "native_free"], {"python", "pymalloc_empty"}, "C library"),
        (["python_small", "arenas"], {"python", "malloc_free"}, "exact engine"),
        (["python", "python_small", "arenas"], {"malloc_free"}, "Without a heap engine"),
    ],
)
def test_what_cannot_be_told_lies_in_the_rest_and_a_note_says_why(gone, told, word):
    row = parts(replace(READING, **dict.fromkeys(gone)))

    assert set(row.known()) == told | {"recorder", "file_backed", "shared", "rest"}
    assert sum(row.known().values()) == READING.rss
    assert word in row.note


SIZES = st.integers(min_value=0, max_value=1 << 40)
MAYBE = st.none() | SIZES


@given(
    anonymous=SIZES,
    python=MAYBE,
    small=MAYBE,
    arenas=st.none() | st.integers(min_value=-(1 << 30), max_value=1 << 40),
    used=MAYBE,
    free=MAYBE,
    recorder=SIZES,
    at_start=SIZES,
)
def test_whatever_is_read_the_parts_add_up(
    anonymous, python, small, arenas, used, free, recorder, at_start
):
    reading = replace(
        READING,
        rss=anonymous + 20 * MB,
        anonymous=anonymous,
        python=python,
        python_small=small,
        arenas=arenas,
        native_used=used,
        native_free=free,
    )

    row = parts(reading, recorder=recorder, rest_at_start=at_start)

    assert sum(row.known().values()) == reading.rss
    assert min(row.known().values()) >= 0
    assert row.not_resident >= 0


def test_a_moment_in_a_line_is_told_largest_first():
    reading = replace(READING, shared=400_000, file_backed=19_600_000)

    line = line_of(parts(reading, recorder=500_000))

    assert line == (
        "100 MB = 28.0 MB live Python blocks + 23.0 MB the rest + 19.6 MB file-backed pages"
        " + 14.5 MB native blocks in use + 10.0 MB malloc's free space"
        " + 4.0 MB pymalloc's empty space + 900 kB in smaller parts"
    )


@pytest.fixture
def recording(tmp_path):
    """RSS of 100, 130 and 110 MB; malloc counts 10, 40 and 90 MB as free; the engine's tables take
    0, 0 and 6 MB. At the start the rest is 80 - 28 - 4 - 15 - 10 = 23 MB."""
    path = tmp_path / "run.p87"
    writer = RecordingWriter(path, {})
    for second, (more, free, tables) in enumerate([(0, 10, 0), (30, 40, 0), (10, 90, 6)]):
        rss, anonymous = READING.rss + more * MB, READING.anonymous + more * MB
        writer.put_heap_total(HeapTotal(second * S, 28 * MB, tables * MB))
        writer.put_ledger(
            replace(
                READING,
                t_ns=second * S + 5,
                rss=rss,
                anonymous=anonymous,
                native_free=free * MB,
                group_anonymous=200 * MB,
            )
        )
    writer.close()
    return path


def fed(path, **options):
    live = LiveLedger(**options)
    with RecordingReader(path) as reader:
        live.feed(reader)
        live.feed(reader)  # nothing new
    return live


def test_the_engines_tables_are_there_before_they_are_first_counted(tmp_path):
    # given a tick that reads the ledger at 5 ns, and the engine's count of it at 9
    path = tmp_path / "run.p87"
    writer = RecordingWriter(path, {})
    writer.put_ledger(replace(READING, t_ns=5))
    writer.put_heap_total(HeapTotal(9, 28 * MB, 3 * MB))
    writer.put_ledger(replace(READING, t_ns=20))
    writer.close()
    assert [row.recorder for row in fed(path).rows()] == [3 * MB, 3 * MB]


def test_the_ledger_of_a_recording_knows_its_peak_its_end_and_any_time(recording):
    live = fed(recording)

    assert [row.rss // MB for row in live.rows()] == [100, 130, 110]
    assert live.peak().malloc_free == 40 * MB
    end = live.end()
    assert (end.recorder, end.native) == (6 * MB, 9 * MB)
    assert (end.rest, end.malloc_free) == (23 * MB, (90 - 28 - 4 - 9 - 6 - 23) * MB)
    assert live.at(2 * S).rss == 130 * MB
    assert live.at(4) is None
    assert live.at(S * 9) == end


def test_a_long_ledger_is_thinned_and_keeps_its_peak(tmp_path):
    path = tmp_path / "long.p87"
    writer = RecordingWriter(path, {})
    for tick in range(2000):
        rss = (500 if tick == 1234 else 100) * MB + tick
        writer.put_ledger(replace(READING, t_ns=tick * S // 10, rss=rss))
    writer.close()

    live = fed(path, buckets=50)

    assert len(live.rows()) <= 102
    assert live.peak().t_ns == 1234 * S // 10
    assert live.end().t_ns == 1999 * S // 10


def test_a_ledger_fed_up_to_a_moment_ends_with_the_last_reading_before_it(tmp_path):
    path = tmp_path / "long.p87"
    writer = RecordingWriter(path, {})
    for tick in range(2000):
        writer.put_ledger(replace(READING, t_ns=tick * S // 10, rss=100 * MB + tick))
    writer.close()
    live = LiveLedger(buckets=50)

    with RecordingReader(path) as reader:
        live.feed(reader, until_ns=1234 * S // 10 + 1)
        before = live.end()
        live.feed(reader)

    # What is kept of the whole is too coarse to find it again.
    assert before.rss == 100 * MB + 1234
    assert live.at(1234 * S // 10 + 1).rss < before.rss
    assert live.end().rss == 100 * MB + 1999


def test_a_recording_without_a_ledger_has_no_moments(tmp_path):
    RecordingWriter(tmp_path / "old.p87", {}).close()
    live = fed(tmp_path / "old.p87")
    assert (live.rows(), live.peak(), live.end(), live.at(S)) == ([], None, None, None)
    assert ledger([]).layout.annotations[0].text == "The parts of the memory were not measured."


def test_the_table_has_a_column_a_part_and_says_what_is_not_known(recording):
    table = ledger_table(fed(recording).rows())

    assert list(table["t_s"].round(3)) == [0, 1, 2]
    assert list(table["malloc_free"] // MB) == [10, 40, 20]
    assert (table[list(PART_NAMES)].sum(axis=1) == table["rss"]).all()
    assert table["children"].isna().all()


@pytest.mark.parametrize("dark", [False, True])
def test_the_figure_stacks_the_parts_up_to_rss(recording, dark):
    figure = ledger(fed(recording).rows(), dark=dark)

    stacked = [trace for trace in figure.data if trace.stackgroup]
    assert [trace.name for trace in stacked][:3] == [
        "live Python blocks",
        "pymalloc's empty space",
        "native blocks in use",
    ]
    assert [sum(trace.y[i] for trace in stacked) / MB for i in range(3)] == [100, 130, 110]
    assert len(stacked) == len(figure.data)
    assert stacked[0].text[1] == "live Python blocks 28.0 MB at 1.0 s, 21.5 % of 130 MB"
    assert "(bytes)" in figure.layout.yaxis.title.text


@pytest.mark.parametrize("dark", [False, True])
def test_what_stands_beside_the_process_has_an_axis_of_its_own(recording, dark):
    figure = memory_beside(fed(recording).rows(), dark=dark)

    [line] = figure.data
    assert line.text[1] == "control group: anonymous 200 MB at 1.0 s, not part of RSS"
    assert "(bytes)" in figure.layout.yaxis.title.text


def test_a_process_with_nothing_beside_it_has_no_such_figure():
    assert memory_beside([parts(READING)]) is None


def test_the_figure_says_why_parts_are_missing():
    row = parts(replace(READING, native_used=None, native_free=None))
    figure = ledger([row])
    assert row.note in [note.text.replace("<br>", " ") for note in figure.layout.annotations]


# -- the control group -------------------------------------------------------------------------

V1_STAT = "cache 7\nrss 5\nmapped_file 1\ntotal_cache 4096000\ntotal_rss 81920000\n"
V2_STAT = "anon 81920000\nfile 4096000\nkernel 1\nshmem 3\n"
V1_MOUNT = "35 31 0:32 {root} /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory"
V2_MOUNT = "30 23 0:26 {root} /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate"


def machine(tmp_path, *, membership, mounts, files):
    """A recorded ``/proc`` and ``/sys`` under ``tmp_path``."""
    everything = {
        "proc/self/cgroup": membership,
        "proc/self/mountinfo": "22 1 8:1 / / rw - ext4 /dev/vda1 rw\n" + "\n".join(mounts) + "\n",
        **files,
    }
    for name, text in everything.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_a_group_of_version_1_is_found_beside_an_empty_version_2(tmp_path):
    root = machine(
        tmp_path,
        membership="4:memory:/svc/loader\n1:cpu:/\n0::/\n",
        mounts=[V1_MOUNT.format(root="/"), V2_MOUNT.format(root="/")],
        files={
            "sys/fs/cgroup/memory/memory.stat": "total_cache 1\ntotal_rss 2\n",
            "sys/fs/cgroup/memory/svc/memory.stat": "total_cache 3\ntotal_rss 4\n",
            "sys/fs/cgroup/memory/svc/loader/memory.stat": V1_STAT,
        },
    )

    group = own_group(root)

    assert (group.name, group.version) == ("/svc/loader", 1)
    assert group.read() == GroupMemory(anonymous=81_920_000, cache=4_096_000)


def test_a_leaf_of_version_2_without_the_controller_is_charged_to_the_group_above(tmp_path):
    root = machine(
        tmp_path,
        membership="0::/user.slice/session-2.scope/tab\n",
        mounts=[V2_MOUNT.format(root="/")],
        files={
            "sys/fs/cgroup/user.slice/session-2.scope/memory.stat": V2_STAT,
            "sys/fs/cgroup/user.slice/session-2.scope/memory.current": "99",
            "sys/fs/cgroup/user.slice/session-2.scope/tab/cgroup.procs": "1",
        },
    )

    group = own_group(root)

    assert (group.name, group.version) == ("/user.slice/session-2.scope", 2)
    assert group.read() == GroupMemory(anonymous=81_920_000, cache=4_096_000)


@pytest.mark.parametrize("membership", ["/docker/0a1b", "/"])
def test_a_container_sees_its_own_group_as_the_top(tmp_path, membership):
    root = machine(
        tmp_path,
        membership=f"4:memory:{membership}\n",
        mounts=[V1_MOUNT.format(root="/docker/0a1b")],
        files={
            "sys/fs/cgroup/memory/memory.stat": V1_STAT,
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "536870912",
        },
    )

    assert own_group(root).read().anonymous == 81_920_000


@pytest.mark.parametrize(
    ("membership", "mount", "files"),
    [
        (
            "4:memory:/\n",
            V1_MOUNT,
            {
                "sys/fs/cgroup/memory/memory.stat": V1_STAT,
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
            },
        ),
        ("0::/\n", V2_MOUNT, {"sys/fs/cgroup/memory.stat": V2_STAT}),
    ],
    ids=["version 1", "version 2"],
)
def test_the_machines_root_group_is_nobodys_own(tmp_path, membership, mount, files):
    root = machine(tmp_path, membership=membership, mounts=[mount.format(root="/")], files=files)
    assert own_group(root) is None


def test_a_mount_point_with_a_blank_is_found(tmp_path):
    mount = V2_MOUNT.format(root="/").replace("/sys/fs/cgroup ", "/sys/fs/my\\040groups ")
    root = machine(
        tmp_path,
        membership="0::/a b\n",
        mounts=[mount],
        files={
            "sys/fs/my groups/a b/memory.stat": V2_STAT,
            "sys/fs/my groups/a b/memory.current": "1",
        },
    )
    assert own_group(root).read().cache == 4_096_000


def test_a_machine_without_control_groups_has_none(tmp_path):
    assert own_group(tmp_path) is None
