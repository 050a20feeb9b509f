"""A report as indented JSON text, laid out at once also where it has a row for each unit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_PLAIN = {str, int, float, bool, type(None)}


def json_text(report: Mapping[str, Any]) -> str:
    """What ``json.dumps(report, indent=2)`` gives, for a report that is not empty.

    That leaves the C encoder aside, which a table of a hundred thousand units waits half a second
    for: its rows are laid out here.
    """
    parts = (f"{json.dumps(key)}: {_part(value)}" for key, value in report.items())
    return "{\n  " + ",\n  ".join(parts) + "\n}"


def _part(value: Any) -> str:
    if _is_table(value):
        return _table(value)
    # No text holds a line break in JSON: those here are the layout's.
    return json.dumps(value, indent=2).replace("\n", "\n  ")


def _is_table(value: Any) -> bool:
    """Whether ``value`` is a list of rows: objects, none of them empty, of plain values."""
    return (
        isinstance(value, list)
        and set(map(type, value)) == {dict}
        and all(value)
        and {type(cell) for row in value for cell in row.values()} <= _PLAIN
    )


def _table(rows: list[dict[str, Any]]) -> str:
    text = json.dumps(rows, separators=(",\n      ", ": "))
    inside = text[2:-2].replace("},\n      {", "\n    },\n    {\n      ")
    return "[\n    {\n      " + inside + "\n    }\n  ]"
