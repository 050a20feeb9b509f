"""Units, collections, lines and types of a hand-built recording, counted with a pencil."""

import numpy as np
import pytest
from hand_built import GC_EVENTS, GC_SUMMARIES, INGEST_PY, MB, METHOD, MS, PEAKS, UNITS, S, build

from diagnostics.analysis.collector import (
    event_table,
    generation_table,
    pause_table,
    small_collections,
)
from diagnostics.analysis.gc_account import GcAccount
from diagnostics.analysis.lines import line_table
from diagnostics.analysis.object_types import TypeGrowth, type_growth
from diagnostics.analysis.series import LiveSeries
from diagnostics.analysis.timeline import memory_curves, unit_marks, unit_table
from diagnostics.analysis.units import (
    LiveUnits,
    highest_of_runs,
    highest_unit,
    poisonous_unit,
    unit_figures,
)
from diagnostics.recording.model import GcEvent, GcSummary, UnitPeak, UnitRow
from diagnostics.recording.reader import RecordingReader
from diagnostics.recording.writer import RecordingWriter


@pytest.fixture
def reader(tmp_path):
    with RecordingReader(build(tmp_path / "run.p87")) as reader:
        yield reader


def figures_of(peaks_mb, start_mb=50):
    units = [UnitRow(i, "page", f"page {i}", i * S, (i + 1) * S, "finished") for i in peaks_mb]
    peaks = {
        i: UnitPeak(i, start_mb * MB, start_mb * MB, (start_mb + mb) * MB, METHOD)
        for i, mb in peaks_mb.items()
    }
    return unit_figures(units, peaks, 0)


# -- units ------------------------------------------------------------------------------------


def test_each_unit_has_its_own_peak_and_what_it_kept():
    figures = unit_figures(UNITS, {peak.index: peak for peak in PEAKS}, 6 * S)

    assert [unit.peak_bytes for unit in figures] == [10 * MB, 100 * MB, 2 * MB]
    assert [unit.retained_bytes for unit in figures] == [2 * MB, 1 * MB, -3 * MB]
    assert [unit.duration_ns for unit in figures] == [1 * S, 3 * S, 1 * S]
    assert [unit.error for unit in figures] == [None, "ValueError: no such font", None]
    assert highest_unit(figures).index == 2


def test_an_open_unit_lasts_until_now_and_has_no_peak():
    (unit,) = unit_figures([UnitRow(1, "page", "page 1", 2 * S)], {}, 5 * S)
    assert unit.duration_ns == 3 * S
    assert unit.peak_bytes is None
    assert highest_unit([unit]) is None


def test_a_unit_is_poisonous_when_its_peak_stands_out():
    usual = {1: 6, 2: 8, 3: 7, 4: 9}
    # the median of the others is 7.5 MB: 37.5 MB is the border
    assert poisonous_unit(figures_of(usual | {87: 38})).index == 87
    assert poisonous_unit(figures_of(usual | {87: 37})) is None
    # far from its neighbours, but nothing that anyone would notice
    assert poisonous_unit(figures_of({1: 0, 2: 0, 3: 4})) is None
    assert poisonous_unit(figures_of({1: 100})) is None
    assert poisonous_unit([]) is None


def test_many_units_are_told_by_the_highest_of_each_run():
    figures = figures_of({1: 3, 2: 5, 3: 4, 4: 1, 5: 2})
    assert [unit.index for unit in highest_of_runs(figures, 3)] == [2, 3, 5]
    assert highest_of_runs(figures, 5) == figures
    assert highest_of_runs([], 5) == []


def test_the_table_of_units(reader):
    live = LiveUnits()
    live.feed(reader)
    table = unit_table(live.figures())

    assert table["label"].tolist() == ["page 1", "page 2", "page 3"]
    assert table["duration_s"].tolist() == [1.0, 3.0, 1.0]
    assert table["peak_bytes"].tolist() == [10 * MB, 100 * MB, 2 * MB]
    assert table["status"].tolist() == ["finished", "failed", "finished"]
    assert table["error"].isna().tolist() == [True, False, True]
    assert unit_table([]).columns.tolist() == table.columns.tolist()
    assert unit_table([]).dtypes.tolist() == table.dtypes.tolist()


def test_marks_are_thinned_to_round_numbers():
    figures = figures_of(dict.fromkeys(range(1, 251), 1))
    assert unit_marks(figures, most=250)["index"].tolist() == list(range(1, 251))
    # every 2nd would be 125, every 5th is 50
    assert unit_marks(figures, most=100)["index"].tolist() == list(range(5, 251, 5))
    assert unit_marks(figures, most=3)["index"].tolist() == [100, 200]
    assert unit_marks([]).empty


def test_live_units_follow_changes(tmp_path):
    writer = RecordingWriter(tmp_path / "run.p87", {})
    live = LiveUnits()
    with RecordingReader(writer.path) as reader:

        def seen():
            writer.commit()
            live.feed(reader)
            return [(unit.index, unit.status) for unit in live.figures()]

        writer.put_units([UnitRow(1, "page", "page 1", 0), UnitRow(2, "page", "page 2", 5)])
        assert seen() == [(1, "running"), (2, "running")]
        # unit 1 ends long after; unit 3 begins, and turns out not to exist
        writer.put_units([UnitRow(1, "page", "page 1", 0, 90 * S, "finished")])
        writer.put_units([UnitRow(3, "page", "page 3", 90 * S)])
        assert seen() == [(1, "finished"), (2, "running"), (3, "running")]
        writer.drop_units([3])
        assert seen() == [(1, "finished"), (2, "running")]
        # an end that was written later than one after it
        writer.put_units([UnitRow(2, "page", "page 2", 5, 89 * S, "failed", "OSError")])
        writer.put_unit_peaks([UnitPeak(2, MB, MB, 3 * MB, METHOD)])
        assert seen() == [(1, "finished"), (2, "failed")]
        assert live.figures()[1].peak_bytes == 2 * MB
    writer.close()


def test_the_curves_are_one_long_table(reader):
    series = LiveSeries()
    series.feed(reader)
    curves = memory_curves(series)

    counts = curves.groupby("curve").size().to_dict()
    assert counts == {"RSS": 4, "USS": 3, "PSS": 3, "Python heap": 3}
    heap = curves[curves["curve"] == "Python heap"]
    assert heap[["t_s", "bytes"]].values.tolist() == [[1, 17 * MB], [3, 56 * MB], [6, 12 * MB]]
    assert memory_curves(LiveSeries()).empty


# -- collections --------------------------------------------------------------------------------


@pytest.fixture
def account(reader):
    account = GcAccount()
    account.feed(reader)
    account.feed(reader)  # what was read is not counted twice
    return account


def test_small_and_single_collections_count_together(account):
    rows = generation_table(account).set_index("generation").to_dict("index")

    # generation 0: 7 + 20 summed ones of 1.7 ms, and a single one of 2 ms
    assert rows[0]["count"] == 28
    assert rows[0]["pause_total_s"] == pytest.approx(0.0037)
    assert rows[0]["pause_max_s"] == pytest.approx(0.002)
    assert (rows[0]["collected"], rows[0]["uncollectable"]) == (16, 0)
    assert rows[1] == {
        "count": 1,
        "pause_total_s": pytest.approx(0.0003),
        "pause_max_s": pytest.approx(0.0003),
        "collected": 3,
        "uncollectable": 0,
    }
    assert (rows[2]["count"], rows[2]["collected"], rows[2]["uncollectable"]) == (1, 40, 1)
    # 3.7 + 0.3 + 70 ms of 8 s
    assert account.pause_total_ns == 74 * MS
    assert account.pause_max_ns == 70 * MS
    assert account.share(8 * S) == pytest.approx(0.00925)
    assert account.share(0) == 0


def test_collections_of_the_workbench_are_kept_apart(account):
    assert (account.own.count, account.own.pause_total_ns) == (1, 90 * MS)
    assert all(not event.own for event in account.notable())


def test_the_longest_pauses_and_their_units(account):
    table = event_table(account.longest(), {1: "page 1"})

    assert table["pause_s"].tolist() == [0.070, 0.002]
    assert table["unit_label"].tolist() == ["unit 2", "page 1"]
    assert [event.t_ns for event in account.notable()] == [1_500 * MS, 3_500 * MS]
    outside = event_table([GcEvent(1, 1, 2, 0, 0, 0)], {})
    assert outside["unit_label"].tolist() == ["outside any unit"]
    assert event_table([], {}).empty


def test_pauses_over_time_hold_summaries_too(account):
    table = pause_table(account)
    of_generation = {
        number: rows[["t_s", "pause_s"]].values.tolist()
        for number, rows in table.groupby("generation")
    }
    assert of_generation == {
        0: [[1.5, 0.002], [2.0, 0.0002], [4.0, 0.0001]],
        1: [[2.0, 0.0003]],
        2: [[3.5, 0.07]],
    }


def test_only_the_longest_collections_are_remembered(tmp_path):
    writer = RecordingWriter(tmp_path / "run.p87", {})
    writer.add_gc_events([GcEvent(t, t % 7 + 1, 2, 0, 0, 1) for t in range(1, 29)])
    writer.close()
    account = GcAccount(most_notable=6)
    with RecordingReader(writer.path) as reader:
        account.feed(reader)

    assert account.generations[2].count == 28
    # pauses of 7 at 6, 13, 20, 27, and of 6 at 5 and 12, the earliest of their kind
    assert [event.t_ns for event in account.notable()] == [5, 6, 12, 13, 20, 27]
    assert [event.t_ns for event in account.longest(2)] == [6, 13]


def test_collections_of_the_same_moment_and_length_all_count(tmp_path):
    writer = RecordingWriter(tmp_path / "run.p87", {})
    writer.add_gc_events([GcEvent(5, 7, 2, found, 0, 1) for found in (1, 2, 3)])
    writer.close()
    account = GcAccount(most_notable=2)
    with RecordingReader(writer.path) as reader:
        account.feed(reader)

    assert account.generations[2].count == 3
    assert account.generations[2].collected == 6
    assert sorted(event.collected for event in account.notable()) == [1, 2]


def test_small_collections_by_column(tmp_path):
    account = GcAccount()
    writer = RecordingWriter(tmp_path / "run.p87", {})
    writer.add_gc_summaries(GcSummary(t * S, 0, t, 0, 0, 0, 0) for t in (1, 5, 9, 4000))
    writer.close()
    with RecordingReader(writer.path) as reader:
        account.feed(reader)

    # the bins have grown to 3.2 s by then: 1 s falls into 0–3.2, 5 into 3.2–6.4, 9 into 6.4–9.6
    assert small_collections(account, np.array([0, 8, 3000, 3500]) * S).tolist() == [6, 9, 4000]
    assert small_collections(account, np.array([0])).tolist() == []


def test_the_density_of_a_run_as_it_was_written(account):
    assert sum(number for _, number in account.small_counts()) == sum(
        row.count for row in GC_SUMMARIES
    )
    assert len(GC_EVENTS) == sum(1 for _ in account.notable()) + account.own.count


# -- lines and types --------------------------------------------------------------------------


def test_the_line_profile(reader):
    table = line_table(reader.line_profile())

    assert table["line"].tolist() == [13, 14]
    assert table["source"].tolist() == ["def read(path):", "    return path.read_bytes()"]
    assert table["file"].unique().tolist() == [INGEST_PY]
    assert table["increment_bytes"].isna().tolist() == [True, False]
    assert (table["increment_bytes"][1], table["hits"][1]) == (5 * MB, 3)
    assert line_table([]).empty


def test_types_that_became_more(reader):
    assert type_growth(reader) == [
        TypeGrowth("pdfminer.layout.LTChar", 1000, 1000),
        TypeGrowth("list", 400, 300),
        TypeGrowth("dict", 40, -10),
    ]
    assert [row.name for row in type_growth(reader, most=1)] == ["pdfminer.layout.LTChar"]
