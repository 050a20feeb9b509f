"""A report as JSON text: exactly what ``json.dumps`` lays out, for tables of any shape."""

import json

import pytest

from diagnostics.analysis.json_text import json_text

ROW = {"index": 1, "label": "page 1", "born_bytes": None, "share": 0.25, "alive": True}
ODD = 'a "page",\n      {"},\n      {}\u2028 \ud800 é'


@pytest.mark.parametrize(
    "value",
    [
        [ROW],
        [ROW, {"index": 2}, ROW],
        [{ODD: ODD}, {ODD: "},\n      {"}],
        [{"},\n      {": 1}, {"}": "{"}],
        [],
        [{}],
        [ROW, {}, ROW],
        [[ROW], [ROW]],
        [ROW, None],
        [{"holders": [ROW, ROW], "stack": []}],
        [{"birth_units": ROW}],
        [1, "two", None],
        {"a table inside": [ROW, ROW], "": {}},
        ODD,
        None,
        0.1,
    ],
)
def test_each_part_is_laid_out_as_json_does(value):
    report = {"format": 1, "part": value, ODD: value, "last": value}
    assert json_text(report) == json.dumps(report, indent=2)
