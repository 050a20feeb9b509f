"""The sentence below the lens: made-up runs whose shape is known."""

import random
from dataclasses import replace

import pytest
from births import MB, S, band, leak, write_run
from hand_built import build

from diagnostics.analysis.retention import Births
from diagnostics.analysis.shape import shape_of, shape_of_births
from diagnostics.recording.model import GcEvent, UnitRow, alive_id
from diagnostics.recording.reader import RecordingReader
from diagnostics.recording.writer import RecordingWriter


@pytest.fixture
def shape_of_run(tmp_path):
    def make(*run, **more):
        with RecordingReader(write_run(tmp_path / "run.p87", *run, **more)) as reader:
            return shape_of(reader)

    return make


def test_a_leak_is_a_triangle(shape_of_run):
    shape = shape_of_run(128, leak(8_200_000), lambda page: 9 * MB)

    assert (shape.kind, shape.bytes_per_unit) == ("triangle", 8_200_000)
    assert (
        shape.sentence
        == "Each page leaves 8.2 MB behind; nothing left before page 128 has been freed"
    )


def test_a_leak_whose_newest_pages_shrink_later(shape_of_run):
    # given pages that keep 10 MB for ten pages, and 8 MB for good
    def after(page):
        return {u: (10 if page - u < 10 else 8) * MB for u in range(1, page + 1)}

    # then all but the newest have lost something since
    assert shape_of_run(128, after).sentence == "Each page leaves 8.0 MB behind"


def test_pages_from_119_on_lost_something(shape_of_run):
    def after(page):
        return {u: (4 if page == 128 and u >= 119 else 8) * MB for u in range(1, page + 1)}

    sentence = shape_of_run(128, after, lambda page: 9 * MB).sentence
    assert sentence == "Each page leaves 8.0 MB behind; nothing left before page 119 has been freed"


def test_a_leak_that_ends_with_the_document(shape_of_run):
    shape = shape_of_run(50, leak(5 * MB), at_the_end={})

    assert (shape.kind, shape.bytes_per_unit) == ("triangle", 5 * MB)
    assert shape.sentence == "Each page leaves 5.0 MB behind; it was freed after the last page"


def test_pages_that_are_gone_at_once_are_a_diagonal(shape_of_run):
    shape = shape_of_run(50, lambda page: {})

    assert (shape.kind, shape.bytes_per_unit) == ("diagonal", 0)
    assert shape.sentence == "Memory of a page is gone within one page"


def test_the_page_before_may_live_until_the_next_is_bound(shape_of_run):
    assert shape_of_run(50, band(1, 2 * MB)).kind == "diagonal"


def test_a_band(shape_of_run):
    shape = shape_of_run(100, band(10, 2 * MB))

    assert (shape.kind, shape.width, shape.bytes_per_unit) == ("band", 10, 2 * MB)
    assert shape.sentence == "A band of 10 pages stays alive"


def test_a_band_of_most_pages_is_not_a_leak(shape_of_run):
    assert shape_of_run(128, band(90, 2 * MB)).sentence == "A band of 90 pages stays alive"


def test_a_spike(shape_of_run):
    shape = shape_of_run(128, lambda page: {}, lambda page: (141 if page == 87 else 2) * MB)

    assert (shape.kind, shape.spike_unit, shape.spike_bytes) == ("spike", 87, 141 * MB)
    assert shape.sentence == "Page 87 alone took 141 MB and gave it back"


def test_a_spike_in_a_leak_is_named_too(shape_of_run):
    shape = shape_of_run(128, leak(2 * MB), lambda page: (141 if page == 87 else 3) * MB)

    assert (shape.kind, shape.spike_unit) == ("triangle", 87)
    assert shape.sentence == (
        "Each page leaves 2.0 MB behind; nothing left before page 128 has been freed. "
        "Page 87 alone took 141 MB and gave back all but 2.0 MB"
    )


def test_a_page_that_keeps_its_memory_is_named(shape_of_run):
    shape = shape_of_run(
        100,
        lambda page: {40: 35 * MB} if page >= 40 else {},
        lambda page: (35 if page == 40 else 2) * MB,
    )
    assert shape.kind == "diagonal"
    assert shape.sentence == (
        "Memory of a page is gone within one page; page 40 still holds 35.0 MB"
    )


def test_what_the_first_pages_cache_is_nobodys_leak(shape_of_run):
    # given imports and caches outside any page and in the first two
    caches = {0: 300 * MB, 1: 40 * MB, 2: 20 * MB}
    shape = shape_of_run(
        60, lambda page: {u: size for u, size in caches.items() if u <= page}, lambda page: 2 * MB
    )
    assert shape.sentence == "Memory of a page is gone within one page"


def test_one_page_in_ten_that_leaks_is_neither(shape_of_run):
    shape = shape_of_run(100, lambda page: dict.fromkeys(range(10, page + 1, 10), 8 * MB))

    assert shape.kind == "other"
    # page 100 ended last and is not judged
    assert shape.sentence == (
        "9 pages of 100 still held 72.0 MB when the last one ended; the others gave theirs back"
    )


def test_what_pages_that_count_as_gone_keep_is_not_said_to_be_given_back(shape_of_run):
    # given 100 pages of 5 MB that keep 250 kB each, less than a tenth, and 1 MB every tenth
    def after(page):
        return {u: MB if u % 10 == 0 else 250_000 for u in range(1, page + 1)}

    shape = shape_of_run(100, after, lambda page: 5 * MB)
    # pages 1 and 2 are warm-up, page 100 ended last: of 97 pages, 88 others
    assert shape.sentence == (
        "9 pages of 100 still held 9.0 MB when the last one ended; the others gave most of theirs"
        " back, and kept 250 kB each, 22.0 MB in all"
    )


def test_what_all_pages_keep_of_their_memory_is_summed_up(shape_of_run):
    # given 60 pages of 9 MB that keep 400 kB each; the first two and the last are not judged
    shape = shape_of_run(
        60, lambda page: dict.fromkeys(range(1, page + 1), 400_000), lambda page: 9 * MB
    )
    assert shape.kind == "diagonal"
    assert shape.sentence == (
        "Memory of a page is gone within one page, but for 400 kB each, 22.8 MB in all"
    )


def test_a_cache_that_is_emptied_now_and_then_is_no_band(shape_of_run):
    # given that every 20th page frees all
    shape = shape_of_run(
        115, lambda page: dict.fromkeys(range(page - page % 20 + 1, page + 1), 2 * MB)
    )
    assert shape.kind == "other"
    assert shape.sentence == (
        "Memory of a page stays for a while: up to 19 pages were alive at one time"
    )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("leaves", [3_000, 9_000])
def test_sampling_noise_on_a_healthy_run_is_no_leak(shape_of_run, seed, leaves):
    # given estimates of pages of 100 kB, and of the little that each leaves, in samples of 8 KiB
    chance = random.Random(seed)

    def estimate(size):
        return 8192 * sum(chance.random() < size / 8192 / 100 for _ in range(100))

    left = {page: estimate(leaves) for page in range(1, 201)}
    peaks = {page: max(left[page], estimate(100_000)) for page in left}
    assert sum(size > 8192 for size in left.values()) > (5 if leaves < 8192 else 40)

    shape = shape_of_run(200, lambda page: {u: left[u] for u in range(1, page + 1)}, peaks.get)

    assert shape.kind == "diagonal"
    assert shape.sentence == "Memory of a page is gone within one page"


def test_a_little_of_each_page_is_told_but_is_no_triangle(shape_of_run):
    shape = shape_of_run(60, leak(92_000), lambda page: 7 * MB)

    assert (shape.kind, shape.bytes_per_unit) == ("diagonal", 92_000)
    assert (
        shape.sentence
        == "Memory of a page is gone within one page, but for 92.0 kB each, 5.2 MB in all"
    )


def test_a_little_of_very_many_pages_is_a_triangle(shape_of_run):
    # 150 pages leave 9 MB, more than ten times the 700 kB that a page needs; 100 leave 6 MB
    assert shape_of_run(150, leak(60_000), lambda page: 700_000).kind == "triangle"


def test_a_little_of_fewer_pages_is_none(shape_of_run):
    assert shape_of_run(100, leak(60_000), lambda page: 700_000).kind == "diagonal"


def test_few_pages_tell_nothing(shape_of_run):
    shape = shape_of_run(3, leak(8 * MB))
    assert (shape.kind, shape.bytes_per_unit) == ("other", None)
    assert shape.sentence == "3 pages that ended: too few to compare."


def test_the_exact_engine_does_not_know(tmp_path):
    with RecordingReader(build(tmp_path / "run.p87")) as reader:
        shape = shape_of(reader)
    assert shape.kind == "other"
    assert shape.sentence.startswith("The exact engine does not know in which unit")


def test_frames_too_rare_to_see_the_pages_end(tmp_path):
    # given 20 pages within one tick, each of which left 3 MB
    writer = RecordingWriter(tmp_path / "fast.p87", {"settings": {"engine": "sampled"}})
    writer.add_changes("alive", 0, 0, {})
    writer.put_units([UnitRow(u, "page", f"page {u}", u, u + 1) for u in range(1, 21)])
    writer.add_changes("alive", S, 0, {alive_id(u, 1): (3 * MB, 1) for u in range(1, 21)})
    writer.close()

    with RecordingReader(writer.path) as reader:
        shape = shape_of(reader)

    assert (shape.kind, shape.bytes_per_unit) == ("triangle", 3 * MB)


@pytest.mark.parametrize(
    ("collected_at", "freed", "kind", "pages"),
    [
        (35, 16_800_000, "band", 56),  # after the last frame: what was alive there is gone
        (30, 16_800_000, "triangle", 35),  # before it: it shows what came since
        (35, 4_000_000, "triangle", 35),  # too little: a document let go of the rest at its end
        (57, 16_800_000, "triangle", 35),  # when no page went on any more
    ],
)
def test_a_full_collection_after_the_last_frame(tmp_path, collected_at, freed, kind, pages):
    # given documents of 14 pages in cycles, 600 kB a page, and no frame between page 35 and the
    # end of page 56; the collector takes those of pages 1 to 28
    writer = RecordingWriter(tmp_path / "run.p87", {"settings": {"engine": "sampled"}})
    for page in range(1, 57):
        writer.put_units([UnitRow(page, "page", f"page {page}", page * S, (page + 1) * S)])
        if page <= 35:
            alive = {alive_id(page, 1): (600_000, 1)}
            writer.add_changes("alive", (page + 1) * S, 0, alive)
    collection = GcEvent(
        t_ns=(collected_at + 1) * S + S // 2,
        pause_ns=S // 10,
        generation=2,
        collected=32_000,
        uncollectable=0,
        unit=collected_at,
        heap_before=28_000_000,
        heap_after=28_000_000 - freed,
    )
    writer.add_gc_events([collection])
    left = {alive_id(page, 1): (600_000 if page > 28 else 0, 1) for page in range(1, 57)}
    writer.add_changes("alive", 58 * S, 0, left)
    writer.close()

    # then pages that it freed are not said to have been alive when the last one ended
    with RecordingReader(tmp_path / "run.p87") as reader:
        births = Births.of(reader)
    assert shape_of_births(births, births.ended()).kind == kind
    assert len(births.ended()) == pages
    held = sum(unit.left for unit in births.ended())
    assert held == (28 * 600_000 if kind == "band" else 35 * 600_000)


def test_collections_before_the_last_frame_are_not_kept(tmp_path):
    """A recording that goes on for days has one a minute."""
    writer = RecordingWriter(tmp_path / "run.p87", {"settings": {"engine": "sampled"}})
    for page in range(1, 101):
        writer.put_units([UnitRow(page, "page", f"page {page}", page * S, (page + 1) * S)])
        collection = GcEvent(page * S, S // 10, 2, 9, 0, page)
        writer.add_gc_events([replace(collection, heap_before=3 * MB, heap_after=2 * MB)])
        writer.add_changes("alive", (page + 1) * S - 1, page, {alive_id(page, 1): (600_000, 1)})
    writer.close()
    with RecordingReader(tmp_path / "run.p87") as reader:
        births = Births.of(reader)
    assert births._collected == []


@pytest.mark.parametrize("after", [leak(3 * MB), band(10, 3 * MB), lambda page: {}])
def test_live_is_the_same_as_at_once(tmp_path, after):
    # given a reader that looks in after each page
    births = Births()
    writer = RecordingWriter(tmp_path / "live.p87", {"settings": {"engine": "sampled"}})
    known = {}
    for page in range(1, 41):
        writer.put_units([UnitRow(page, "page", f"page {page}", page * S, page * S + S // 2)])
        alive = {alive_id(u, 1): (size, 1) for u, size in after(page).items()}
        gone = dict.fromkeys([alive_id(page, 1), *(known.keys() - alive.keys())], (0, 0))
        writer.add_changes("alive", page * S + S // 3, 0, {alive_id(page, 1): (4 * MB, 1)})
        writer.add_changes("alive", page * S + S * 2 // 3, 0, gone | alive)
        writer.commit()
        known = alive
        with RecordingReader(writer.path) as reader:
            births.feed(reader)
    writer.close()

    with RecordingReader(writer.path) as reader:
        at_once = Births()
        at_once.feed(reader)

    assert shape_of_births(births, births.ended()) == shape_of_births(at_once, at_once.ended())
    assert births.retention() == at_once.retention()
    assert births.ended() == at_once.ended()
