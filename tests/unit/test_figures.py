"""Every figure says what it shows, in units, in both themes, from the numbers it was given."""

import json

import numpy as np
import pytest
from hand_built import MB, METHOD, MS, S, build

from diagnostics.analysis.collector import event_table, generation_table, pause_table
from diagnostics.analysis.drops import Drop, heap_drops
from diagnostics.analysis.gc_account import GcAccount
from diagnostics.analysis.heatmap import SiteHeat
from diagnostics.analysis.series import LiveSeries
from diagnostics.analysis.timeline import memory_curves, unit_marks
from diagnostics.analysis.units import LiveUnits, unit_figures
from diagnostics.figures.collector import gc_generations, gc_pauses
from diagnostics.figures.heatmap import colour_scale, heatmap, to_view
from diagnostics.figures.theme import size_colours
from diagnostics.figures.timeline import timeline
from diagnostics.figures.units import unit_peaks
from diagnostics.recording.model import GcEvent, UnitPeak, UnitRow
from diagnostics.recording.reader import RecordingReader
from diagnostics.recording.writer import RecordingWriter


class Run:
    """All tables of the hand-built recording."""

    def __init__(self, path):
        series, units, heat = LiveSeries(), LiveUnits(), SiteHeat(columns=8, first_width_ns=S)
        self.account = GcAccount()
        with RecordingReader(build(path)) as reader:
            for part in (series, units, heat, self.account):
                part.feed(reader)
        self.curves = memory_curves(series)
        self.units = units.figures()
        self.table = heat.table(now_ns=7 * S)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return Run(tmp_path_factory.mktemp("figures") / "run.p87")


@pytest.fixture(scope="module")
def light(run):
    return figures_of(run)


@pytest.fixture(scope="module")
def dark(run):
    return figures_of(run, dark=True)


def figures_of(run, dark=False):
    labels = {unit.index: unit.label for unit in run.units}
    view = to_view(run.table, gc=run.account, units=run.units)
    return {
        "timeline": timeline(run.curves, unit_marks(run.units), run.units, dark=dark),
        "peaks": unit_peaks(run.units, dark=dark),
        "pauses": gc_pauses(
            pause_table(run.account), event_table(run.account.longest(), labels), dark=dark
        ),
        "generations": gc_generations(generation_table(run.account), dark=dark),
        "heat": heatmap(view, run.table, dark=dark),
    }


NAMES = ["timeline", "peaks", "pauses", "generations", "heat"]


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_says_what_it_shows_and_in_which_units(light, name):
    figure = light[name]
    layout = figure.layout

    assert layout.title.text
    axes = f"{layout.xaxis.title.text} {layout.yaxis.title.text}"
    assert any(
        unit in axes for unit in ("(s)", "(bytes)", "(count)", "more objects", "line of code")
    )
    for trace in figure.data:
        assert trace.hovertemplate or trace.hoverinfo == "text"


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_brings_its_own_theme(light, dark, name):
    colours = [figures[name].layout.template.layout.font.color for figures in (light, dark)]
    assert colours[0] != colours[1]
    # hexadecimal colours in traces can be placeholders of Streamlit's theme
    for trace in light[name].data:
        assert '"#' not in json.dumps(trace.to_plotly_json(), default=str)


def texts(figure):
    return [text for trace in figure.data for text in np.ravel(trace.text or trace.hovertext)]


def test_the_timeline_shows_curves_marks_failures_and_the_poisonous_page(light):
    figure = light["timeline"]
    traces = {trace.name: trace for trace in figure.data}

    extra = ["failed", "highest peak"]
    assert list(traces) == ["starts of units", "RSS", "USS", "PSS", "Python heap", *extra]
    assert list(traces["RSS"].y) == [49 * MB, 52 * MB, 120 * MB, 51 * MB]
    assert traces["RSS"].text[2] == "RSS 120 MB at 4.0 s"
    assert [x for x in traces["starts of units"].x if x is not None] == [1, 1, 2, 2, 5, 5]
    assert traces["failed"].text == ("page 2 failed: ValueError: no such font",)
    # 100 MB against 10 and 2: the highest stands out and is named where it is
    (note,) = figure.layout.annotations
    assert (note.text, note.x, note.y) == ("page 2: +100 MB", 3.5, 152 * MB)


def test_the_peaks_of_the_units(light):
    figure = light["peaks"]
    (bars,) = figure.data

    assert list(bars.x) == [1, 2, 3]
    assert list(bars.y) == [10 * MB, 100 * MB, 2 * MB]
    assert bars.marker.color[1] != bars.marker.color[0] == bars.marker.color[2]
    assert "peak +10.0 MB<br>kept at its end +2.0 MB<br>took 1.0 s" in bars.hovertext[0]
    assert figure.layout.annotations[0].text == "page 2: 100 MB"


def test_more_units_than_bars_keep_the_highest():
    units = [UnitRow(i, "page", f"page {i}", 0, 1, "finished") for i in range(1, 20_001)]
    peaks = {u.index: UnitPeak(u.index, MB, MB, (2 + (u.index == 87)) * MB, METHOD) for u in units}

    figure = unit_peaks(unit_figures(units, peaks, 1))

    # 20,000 units in at most 600 bars: runs of 34, and page 87 stands for 69 to 102
    (bars,) = figure.data
    assert len(bars.x) == 589
    assert (bars.x[2], bars.y[2]) == (87, 2 * MB)
    assert "highest of 34" in figure.layout.title.text


def test_pauses(light):
    traces = {trace.name: trace for trace in light["pauses"].data}
    assert list(traces["generation 0"].y) == [0.002, 0.0002, 0.0001]
    assert traces["generation 2"].text == ("generation 2, 70.0 ms at 3.5 s",)
    longest = traces["over 1 ms, or generation 2"].text
    assert longest[0] == "generation 2, 70.0 ms<br>page 2, 40 collected, 1 uncollectable"
    axis = light["pauses"].layout.yaxis
    labels = dict(zip(axis.tickvals, axis.ticktext, strict=True))
    assert (labels[1e-4], labels[1e-2], labels[1]) == ("100 µs", "10 ms", "1 s")


@pytest.mark.parametrize("name", ["timeline", "pauses"])
def test_many_names_stand_below_the_plot_where_no_title_is(light, name):
    legend = light[name].layout.legend
    assert legend.y < 0
    assert legend.yanchor == "top"


def test_generations(light):
    collected, uncollectable = light["generations"].data
    assert (list(collected.y), list(uncollectable.y)) == ([16, 3, 40], [0, 0, 1])
    # Stacked, a bar stands over its label also where nothing was uncollectable.
    assert light["generations"].layout.barmode == "stack"
    assert collected.x[0] == "generation 0<br>28 collections"
    assert (collected.text, uncollectable.text) == (("16", "3", "40"), ("", "", "1"))
    assert "in 28 collections, 3.7 ms in all, longest 2.0 ms" in collected.hovertext[0]


def test_the_heat_map_as_a_picture(run):
    view = to_view(run.table, gc=run.account, units=run.units)

    assert view.values.shape == run.table.values.shape
    # nothing is 0, something never is, the most is 255
    assert ((view.values == 0) == (run.table.values == 0)).all()
    assert view.values.max() == 255
    assert view.row_keys == run.table.row_keys
    assert list(view.column_edges_s) == [0, 1, 2, 3, 4, 5, 6, 7, 8]
    assert [(line.t_s, line.pause_ms, line.generation) for line in view.gc_lines] == [
        (1.5, 2.0, 0),
        (3.5, 70.0, 2),
    ]
    # 8 small collections at 2 s, 20 at 4 s: 8 / 20 of 255 is 102
    assert view.gc_density.tolist() == [0, 0, 102, 0, 255, 0, 0, 0]
    assert list(view.unit_marks) == [(1.0, "1"), (2.0, "2"), (5.0, "3")]


def test_colour_scales():
    values = np.array([[0, 5, 1_000_000]])
    linear, log = colour_scale(values, "linear"), colour_scale(values, "log")
    assert linear.to_index(values).tolist() == [[0, 1, 255]]
    # 5 bytes lie below the four decades and are drawn like the least of them
    assert (log.min_bytes, log.max_bytes) == (100, 1_000_000)
    assert log.to_index([0, 5, 100, 10_000, 1_000_000]).tolist() == [0, 1, 1, 128, 255]
    assert colour_scale(np.zeros((0, 0), np.int64), "log").max_bytes == 1
    assert colour_scale(np.array([[7, 7]]), "log").to_index([7]).tolist() == [255]


def test_the_plotly_twin_of_the_heat_map(run, light):
    figure = light["heat"]
    cells, marks, collections = figure.data

    assert list(cells.x) == [0, 1, 2, 3, 4, 5, 6, 7, 8]
    assert cells.y[0] == "pdfplumber/page.py:430 in chars"
    assert cells.text[0][3] == "30.0 MB"
    assert marks.text[0] == "start of page 1"
    assert [x for x in collections.x if x is not None] == [1.5, 1.5, 3.5, 3.5]

    # without the table the colour tells: 30 MB is the most there was
    alone = heatmap(to_view(run.table)).data[0]
    assert alone.text[0][3] == "30.0 MB"


def test_colours_of_sizes_leave_nothing_clear():
    for dark in (True, False):
        scale = size_colours(dark=dark)
        assert scale[0] == (0.0, "rgba(0,0,0,0)")
        places = [place for place, _ in scale]
        assert places == sorted(places)
        assert places[-1] == 1.0
        # index 1 is past the clear part and has the first colour
        assert 1 / 255 in places
        assert dict(scale)[1 / 255] != "rgba(0,0,0,0)"


def test_without_data_a_figure_says_so(tmp_path):
    empty = memory_curves(LiveSeries())
    account = GcAccount()
    for figure, words in [
        (timeline(empty, unit_marks([])), "No memory was measured yet."),
        (unit_peaks([]), "No peaks were recorded."),
        (gc_pauses(pause_table(account)), "The collector has not run."),
        (gc_generations(generation_table(account)), "The collector has not run."),
        (heatmap(to_view(SiteHeat().table())), "No heap was recorded."),
    ]:
        assert [note.text for note in figure.layout.annotations] == [words]
        assert not figure.data
        # nothing is measured, so nothing stands beside it that measures
        assert (figure.layout.xaxis.visible, figure.layout.yaxis.visible) == (False, False)


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_has_the_letters_of_the_page(light, dark, name):
    for figure in (light[name], dark[name]):
        assert figure.layout.font.family.startswith('"Source Sans"')
        assert figure.layout.title.font.family is None  # what is not said is inherited
        assert figure.layout.title.font.weight == 600
    assert light[name].layout.font.color != dark[name].layout.font.color


def test_labels_are_text_not_markup():
    unit = UnitRow(1, "page", "<b>page</b>", 0, S, "failed", "ValueError", "<i>")
    figures = unit_figures([unit], {1: UnitPeak(1, MB, MB, 9 * MB, METHOD)}, S)
    assert "<b>" not in unit_peaks(figures).data[0].hovertext[0]
    assert "&lt;i&gt;" in unit_peaks(figures).data[0].hovertext[0]


def test_a_collection_on_the_map_says_who_freed_what_the_heap_lost(tmp_path, run):
    # given a heap that falls from 56 MB at 3 s to 12 MB at 6 s, and a collection of 40 objects in
    # between; the one at 1.5 s stands where the heap grows
    with RecordingReader(build(tmp_path / "run.p87")) as reader:
        view = to_view(run.table, gc=run.account, drops=heap_drops(reader))
    assert [line.text for line in view.gc_lines] == [
        "generation 0, 2.0 ms, 5 collected",
        "generation 2, 70.0 ms, 40 collected; the heap fell by 44.0 MB: reference count"
        " (estimated)",
    ]


def test_a_collection_on_the_map_says_what_it_freed_where_that_was_counted(tmp_path, run):
    writer = RecordingWriter(tmp_path / "run.p87", {})
    writer.add_gc_events([GcEvent(2 * S, 100 * MS, 2, 9, 0, 1, False, 60 * MB, 20 * MB)])
    writer.close()
    account = GcAccount()
    with RecordingReader(tmp_path / "run.p87") as reader:
        account.feed(reader)
    # The drop is seen at the tick after the collection was over, 0.1 s after it began.
    drop = Drop(2 * S + 50 * MS, 3 * S, 60 * MB, 22 * MB, 9, 40 * MB, "collector", certain=True)
    [line] = to_view(run.table, gc=account, drops=[drop]).gc_lines
    assert line.text == (
        "generation 2, 100 ms, 9 collected, 40.0 MB freed; the heap fell by 38.0 MB: collector"
    )
