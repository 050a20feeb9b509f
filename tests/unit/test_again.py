"""A run that was recorded, made once more: by the form, or the command line to type."""

from __future__ import annotations

import pytest

from diagnostics.launch.again import Again, again
from diagnostics.launch.app import AppSettings

SAMPLED = {"engine": "sampled", "capture": True}


def test_a_script_that_the_app_may_start_is_found(tmp_path):
    script = tmp_path / "job.py"
    meta = {"command": f"page87 run --frames 9 {script}", "document": None}
    assert again(meta, SAMPLED, AppSettings(scripts=(script,))) == Again(script=script)


@pytest.mark.parametrize(
    ("words", "options", "told"),
    [
        (
            "page87 run job.py a.docx",
            SAMPLED,
            "This app was not opened with `job.py`. Type: `page87 run --engine sampled job.py"
            " a.docx`",
        ),
        (
            "page87 run --engine exact --frames 9 job.py",
            {"where": "child"},
            "This app was not opened with `job.py`. Type: `page87 run --child --engine exact"
            " --frames 9 job.py`",
        ),
        (
            "page87 run --engine exact job.py",
            SAMPLED,
            "This app was not opened with `job.py`. Type: `page87 run --engine sampled job.py`",
        ),
    ],
)
def test_a_script_that_it_may_not_start_is_told_as_a_command_line(words, options, told):
    assert again({"command": words, "document": None}, options, AppSettings()).why_not == told


def test_the_form_gives_a_script_no_arguments(tmp_path):
    script = tmp_path / "job.py"
    meta = {"command": f"page87 run {script} a.docx 60", "document": None}
    told = again(meta, {"settle": True}, AppSettings(scripts=(script,))).why_not
    assert told == (f"The form gives a script no arguments. Type: `page87 run {script} a.docx 60`")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"settle": True}, "with `record(settle=True)`."),
        (SAMPLED, 'with `record(engine="sampled", captures=True)`.'),
        ({"engine": "sampled"}, 'with `record(engine="sampled")`.'),
        ({"where": "child"}, "with nothing else in its process."),
    ],
)
def test_a_program_that_records_itself_is_told_what_to_write(options, told):
    meta = {"command": "server.py --port 80", "document": {"name": "a.pdf"}}
    assert again(meta, options, AppSettings()).why_not.endswith(told)
