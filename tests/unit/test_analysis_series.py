"""Thinning keeps extremes, whatever comes; a live series equals one that is read at once."""

from hand_built import MB, PROCESS, S, build
from hypothesis import given
from hypothesis import strategies as st

from diagnostics.analysis.series import LiveSeries, Thinned, thin
from diagnostics.recording.model import HeapTotal, ProcessSample
from diagnostics.recording.reader import RecordingReader
from diagnostics.recording.writer import RecordingWriter

SERIES = st.lists(
    st.tuples(st.integers(0, 10**6), st.integers(-50, 50)), min_size=1, unique_by=lambda p: p[0]
).map(sorted)


@given(SERIES, st.integers(1, 12))
def test_extremes_first_and_last_are_kept(series, buckets):
    kept = thin(series, buckets, first_width_ns=100)

    values = [value for _, value in series]
    assert set(kept) <= set(series)
    assert kept == sorted(kept)
    assert kept[0] == series[0]
    assert kept[-1] == series[-1]
    assert max(point.value for point in kept) == max(values)
    assert min(point.value for point in kept) == min(values)
    assert len(kept) <= 2 * buckets + 2


@given(SERIES, st.integers(1, 12))
def test_each_bucket_keeps_its_own_extremes(series, buckets):
    thinned = Thinned(buckets, first_width_ns=100)
    for point in series:
        thinned.add(*point)
    kept = set(thinned.points())

    for bucket in {t // thinned.width_ns for t, _ in series}:
        inside = [(v, t) for t, v in series if t // thinned.width_ns == bucket]
        lowest = min(inside)
        highest = max(inside, key=lambda point: (point[0], -point[1]))
        assert {(lowest[1], lowest[0]), (highest[1], highest[0])} <= kept


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(-50, 50)), min_size=1), st.randoms())
def test_the_order_of_arrival_does_not_matter(points, random):
    unique = list({t: (t, v) for t, v in points}.values())
    shuffled = list(unique)
    random.shuffle(shuffled)
    assert thin(shuffled, 8, 100) == thin(unique, 8, 100)


def test_a_spike_survives_an_hour_of_samples():
    # given an hour at 10 Hz, flat but for one sample
    series = [(tick * 100_000_000, 50 * MB) for tick in range(36_000)]
    series[20_001] = (series[20_001][0], 900 * MB)

    thinned = Thinned(500)
    for point in series:
        thinned.add(*point)

    # 36,000 buckets of 100 ms go into 500 after seven doublings: 128 ticks a bucket
    assert thinned.width_ns == 128 * 100_000_000
    assert thinned.peak() == (series[20_001][0], 900 * MB)
    assert series[20_001] in thinned.points()
    # 282 buckets begin (36,000 / 128 = 281.25), each flat: its first point, the spike, the last
    assert len(thinned.points()) == 282 + 1 + 1


def test_the_curves_of_a_recording(tmp_path):
    series = LiveSeries()
    with RecordingReader(build(tmp_path / "run.p87")) as reader:
        series.feed(reader)

    assert series.rss.points() == [(sample.t_ns, sample.rss) for sample in PROCESS]
    assert series.uss.points() == [(0, 40 * MB), (4 * S, 110 * MB), (6 * S, 42 * MB)]
    assert series.heap.peak() == (3 * S, 56 * MB)
    assert [point.value for point in series.engine.points()] == [MB, 3 * MB, 2 * MB]


def test_a_live_series_reads_only_what_is_new_and_ends_the_same(tmp_path):
    writer = RecordingWriter(tmp_path / "run.p87", {})
    live = LiveSeries(buckets=16)
    with RecordingReader(writer.path) as reader:
        for tick in range(200):
            t_ns = tick * 100_000_000
            uss = tick * MB if tick % 10 == 0 else None
            writer.put_process(ProcessSample(t_ns, (tick * 37 % 101) * MB, uss, None, 0, 0, 1, 0))
            writer.put_heap_total(HeapTotal(t_ns, (tick * 53 % 97) * MB, 0))
            if tick % 7 == 0:
                writer.commit()
                live.feed(reader)
        writer.commit()
        live.feed(reader)
        live.feed(reader)  # nothing new: nothing changes

        whole = LiveSeries(buckets=16)
        whole.feed(reader)
    writer.close()

    for name in ("rss", "uss", "pss", "heap", "engine"):
        assert getattr(live, name).points() == getattr(whole, name).points(), name
    # buckets of 1.6 s, from 3.2 s / 2: 200 ticks of 0.1 s in at most 16 buckets
    assert live.rss.width_ns == 1_600_000_000
