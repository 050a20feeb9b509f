"""The pages through AppTest: what they say when there is nothing, and on a recording."""

import contextlib
import json
import os
import re
import sqlite3
from pathlib import Path

import pytest
import streamlit
from births import leak
from hand_built import build
from kinds_runs import Run, write
from streamlit.testing.v1 import AppTest

from diagnostics.launch.app import AppSettings

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PAGE87_RECORDINGS", str(tmp_path))
    monkeypatch.chdir(ROOT)
    monkeypatch.syspath_prepend(str(ROOT))
    return tmp_path


def shown(page, recording=None):
    app = AppTest.from_file(str(ROOT / "pages/router/script.py"), default_timeout=30)
    if recording is not None:
        app.query_params["recording"] = recording
    app.run()
    if page != "record":
        app.switch_page(f"../{page}/page.py").run()
    assert not app.exception, app.exception
    return app


@pytest.mark.parametrize(
    ("page", "title"),
    [
        ("overview", "Overview"),
        ("heatmap", "Heat map"),
        ("collector", "Garbage collector"),
        ("lines", "Lines"),
    ],
)
def test_without_a_recording_a_page_says_what_to_do_next(folder, page, title):
    app = shown(page)
    assert any("No recording is open" in info.value for info in app.info)


def test_a_name_that_is_gone_says_so(folder):
    app = shown("overview", "gone.p87")
    assert any("gone.p87" in warning.value for warning in app.warning)


IMAGE = "![seen](http://elsewhere/seen.png)"


@pytest.mark.parametrize("page", ["overview", "heatmap", "collector", "leaks", "recordings"])
def test_no_image_in_a_recording_s_names_is_followed(folder, page):
    # given a recording from elsewhere, whose file, kind of units and labels name an image
    path = write(folder / "![seen](x:y).p87", Run(python=leak(1_000_000), failed=(3,)))
    with contextlib.closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE units SET kind = ?, label = ?", (IMAGE, IMAGE))
    assert "![" not in without_code(shown(page, path.name))


@pytest.mark.parametrize("name", ["gone![seen](x:y).p87", "damaged![seen](x:y).p87"])
def test_no_image_in_an_address_is_followed(folder, name):
    (folder / "damaged![seen](x:y).p87").write_text("no recording")
    assert "![" not in without_code(shown("overview", name))


def without_code(app):
    """All that the page shows as Markdown, but for what is code in it."""
    texts = [element.value for element in (*app.markdown, *app.caption, *app.subheader)]
    texts += [element.value for element in (*app.info, *app.warning, *app.error)]
    texts += [str(text) for box in app.metric for text in (box.label, box.value, box.delta)]
    return re.sub(r"(`+).*?\1", "", "\n".join(texts))


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "..%2Fx.p87", "x.txt"])
def test_an_address_cannot_open_any_file(folder, name):
    app = shown("overview", name)
    assert any("There is no recording" in warning.value for warning in app.warning)


@pytest.mark.parametrize(
    ("page", "title"),
    [
        ("overview", "Overview"),
        ("heatmap", "Heat map"),
        ("collector", "Garbage collector"),
        ("lines", "Lines"),
        ("recordings", "Recordings"),
    ],
)
def test_every_page_shows_a_recording(folder, page, title):
    build(folder / "built.p87")
    app = shown(page, "built.p87")
    assert [element.value for element in app.title] == [title]
    assert not app.error or page == "overview"


def test_lines_of_code_stand_as_code_beside_their_figures(folder):
    # given a function of which the first line never runs, and the second ran three times
    build(folder / "built.p87")
    [table] = [element.value for element in shown("lines", "built.p87").table]
    assert table["line"].tolist() == [13, 14]
    assert table["source"].tolist() == ["`def read(path):`", "`    return path.read_bytes()`"]
    for column, value in (("added (MB)", 5.0), ("after (MB)", 61.0), ("runs", 3)):
        assert table[column].isna().tolist() == [True, False]
        assert table[column].iloc[1] == value


def test_the_first_screen_offers_the_sample(folder):
    app = shown("record")
    assert [element.value for element in app.title] == ["Record"]
    assert "Record the sample" in [button.label for button in app.button]
    assert "Start" in [button.label for button in app.button]


@pytest.mark.parametrize(("started_with", "opens"), [("built.p87", False), ("other.p87", True)])
def test_a_recording_does_not_open_another_one_of_its_name(
    folder, monkeypatch, started_with, opens
):
    # given an app that was started with a file outside of the folder of recordings
    (folder / "elsewhere").mkdir()
    build(folder / "built.p87")
    outside = folder / "elsewhere" / started_with
    build(outside)
    for name, value in AppSettings(recordings=(outside,)).to_environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(streamlit, "dataframe", lambda *_, **__: {"selection": {"rows": [0]}})
    app = shown("recordings")
    [button] = [button for button in app.button if button.label == "Open"]
    assert button.disabled is not opens
    assert any(str(outside) in warning.value for warning in app.warning) is not opens


def test_a_file_name_that_is_no_utf_8_leaves_the_recordings_on_screen(folder, monkeypatch):
    name = os.fsdecode(b"bad\xff.p87")
    try:
        build(folder / "built.p87").rename(folder / name)
    except OSError:
        pytest.skip("this file system takes no such name")
    monkeypatch.setattr(streamlit, "dataframe", lambda *_, **__: {"selection": {"rows": [0]}})
    app = shown("recordings")
    assert [element.value for element in app.subheader] == [r"`bad\udcff.p87`"]
    assert any("no UTF-8" in warning.value for warning in app.warning)


def test_no_column_of_the_recordings_is_narrower_than_what_stands_in_it(folder):
    build(folder / "a-long-name-of-a-recording-of-the-annual-report.p87")
    app = shown("recordings")
    widths = {
        name: column["width"]
        for name, column in json.loads(app.dataframe[0].proto.columns).items()
        if "width" in column
    }
    # 14 px letters of this face are 6 to 7 px wide on average, and a cell has 8 px on both sides.
    assert widths["name"] >= 7 * len("a-long-name-of-a-recording-of-the-annual-report") + 16
    assert widths["document"] >= 7 * len("report.pdf") + 16
    assert widths["units"] >= 7 * len("3 pages") + 16


def test_a_damaged_recording_is_an_error_in_words(folder):
    (folder / "broken.p87").write_text("nothing of the kind")
    app = shown("overview", "broken.p87")
    assert any("not a Page 87 recording" in error.value for error in app.error)


def test_the_forced_collection_is_warned_of(folder, monkeypatch):
    import streamlit as st

    before = st.get_option("runner.postScriptGC")
    st._config.set_option("runner.postScriptGC", True)
    try:
        app = shown("record")
        assert any("Recordings in this process would be wrong" in e.value for e in app.error)
        st._config.set_option("runner.postScriptGC", False)
        assert not shown("record").error
    finally:
        st._config.set_option("runner.postScriptGC", before)
