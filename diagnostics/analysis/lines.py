"""The line profile, as a table."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from diagnostics.recording.model import LineRow

_COLUMNS = {
    "function": "str",
    "file": "str",
    "line": "int64",
    "source": "str",
    "rss_bytes": "Int64",
    "increment_bytes": "Int64",
    "hits": "Int64",
}


def line_table(rows: Iterable[LineRow]) -> pd.DataFrame:
    """One row a source line, in the order of the source: ``function``, ``file``, ``line``,
    ``source`` (without its line end), ``rss_bytes`` (the resident set after the line ran last),
    ``increment_bytes`` (added over all runs of the line), ``hits``; NA for lines that never ran."""
    values = [
        (row.function, row.file, row.line, row.source.rstrip(), row.rss, row.increment, row.hits)
        for row in rows
    ]
    return pd.DataFrame(values, columns=list(_COLUMNS)).astype(_COLUMNS)
