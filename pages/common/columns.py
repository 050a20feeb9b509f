"""Columns of tables as wide as what stands in them, so that none is cut."""

from __future__ import annotations

import pandas as pd
import streamlit as st
from streamlit.elements.lib.column_types import ColumnConfig

_LETTER_PX = 7.2  # a little more than the mean of the table's face at 14 px
_PADDING_PX = 22
_MOST_PX = 460  # what is longer is read with a double click


def fitted(table: pd.DataFrame) -> dict[str, ColumnConfig]:
    """The settings of ``table``'s columns of text by their names. The table scrolls sideways where
    they find no room; by itself it would cut them instead.

    The last column has no width of its own: it fills what is left.
    """
    return {
        str(name): st.column_config.TextColumn(width=_width_px([str(name), *map(str, table[name])]))
        for name in table.columns[:-1]
    }


def _width_px(texts: list[str]) -> int:
    """The width of a column that holds ``texts``, its title among them."""
    return min(_MOST_PX, round(_PADDING_PX + _LETTER_PX * max(map(len, texts))))
