"""How every figure looks: one frame, one set of colours, light and dark."""

from __future__ import annotations

import plotly.graph_objects as go

# Written as rgb(): Streamlit takes some hexadecimal colours for placeholders of its theme. Each
# stands out on white as on near-black, and they differ in lightness for people who see no hue.
BLUE = "rgb(64,132,214)"
ORANGE = "rgb(230,126,34)"
GREEN = "rgb(46,160,110)"
PURPLE = "rgb(155,112,204)"
RED = "rgb(214,69,65)"
GREY = "rgb(140,140,140)"
FAINT = "rgba(140,140,140,0.35)"

CURVES = {"RSS": BLUE, "USS": GREEN, "PSS": PURPLE, "Python heap": ORANGE}
GENERATIONS = {0: GREY, 1: BLUE, 2: ORANGE}

# For sizes, from little to much, lighter or darker than the background in even steps; index 0 of
# a heat map is nothing and stays clear.
_SIZES_DARK = (
    "rgb(65,42,122)",
    "rgb(105,43,147)",
    "rgb(152,39,160)",
    "rgb(202,45,141)",
    "rgb(246,61,107)",
    "rgb(255,111,78)",
    "rgb(255,157,71)",
    "rgb(255,206,108)",
    "rgb(255,249,169)",
)
_SIZES_LIGHT = (
    "rgb(238,210,134)",
    "rgb(246,180,88)",
    "rgb(254,145,53)",
    "rgb(246,101,58)",
    "rgb(229,53,81)",
    "rgb(182,31,112)",
    "rgb(129,20,125)",
    "rgb(77,17,106)",
    "rgb(33,9,75)",
)

FONT = '"Source Sans", "Source Sans 3", sans-serif'
"""The workbench's own letters where they are there, else the reader's."""
_INK_LIGHT, _INK_DARK = "rgb(47,45,43)", "rgb(237,235,232)"

BYTES_AXIS = {"tickformat": "~s", "ticksuffix": "B", "rangemode": "tozero"}
"""Ticks such as "200MB"; the SI letters are the same as in ``format_bytes``."""


def framed(title: str, x_title: str, y_title: str, *, dark: bool) -> go.Figure:
    """An empty figure with its title and axes, on whatever background the page has."""
    figure = go.Figure()
    figure.update_layout(
        # Set here, since importing streamlit changes Plotly's default.
        template="plotly_dark" if dark else "plotly_white",
        font={"family": FONT, "size": 13, "color": _INK_DARK if dark else _INK_LIGHT},
        title={
            "text": title,
            "x": 0,
            "xanchor": "left",
            "font": {"size": 16, "weight": 600},
        },
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        margin={"l": 10, "r": 10, "t": 56, "b": 10},
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.0, "x": 1, "xanchor": "right"},
        hoverlabel={"align": "left"},
        uirevision="kept",  # a live refresh leaves the reader's zoom alone
    )
    figure.update_xaxes(title=x_title, automargin=True, zeroline=False)
    figure.update_yaxes(title=y_title, automargin=True, zeroline=False)
    return figure


def legend_below(figure: go.Figure, *, y: float = -0.22) -> None:
    """For more names than there is room for beside the title in a narrow window. ``y`` is in
    heights of the plot: a low one needs more of them for the title of its axis."""
    figure.update_layout(
        legend={"x": 0, "xanchor": "left", "y": y, "yanchor": "top", "traceorder": "normal"}
    )


def say_empty(figure: go.Figure, text: str) -> go.Figure:
    """Say in words why a figure shows nothing, without axes that would measure it."""
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False)
    figure.add_annotation(
        text=text, x=0.5, y=0.5, xref="paper", yref="paper", showarrow=False, font={"size": 14}
    )
    return figure


def size_colours(*, dark: bool) -> list[tuple[float, str]]:
    """The colour scale of a heat map of indexes 0 to 255: 0 is clear, 1 the least, 255 the most."""
    colours = _SIZES_DARK if dark else _SIZES_LIGHT
    first = 1 / 255
    steps = [
        (first + (1 - first) * place / (len(colours) - 1), colour)
        for place, colour in enumerate(colours)
    ]
    return [(0.0, "rgba(0,0,0,0)"), (first / 2, "rgba(0,0,0,0)"), (first / 2, colours[0]), *steps]
