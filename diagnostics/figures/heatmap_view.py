"""What a memory heat map shows, as plain data that the canvas and every other drawing share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

RowKey: TypeAlias = str | int
Scale: TypeAlias = Literal["linear", "log"]

BRIGHTEST = 255


@dataclass(frozen=True)
class ColourScale:
    """How bytes become one of 256 colour indices, and back.

    Index 0 means nothing. A linear scale starts at zero: index *i* stands for ``i / 255`` of
    ``max_bytes``. A log scale puts ``min_bytes`` (and what is below it) at 1, ``max_bytes`` at 255.
    """

    kind: Scale
    max_bytes: float
    min_bytes: float = 0.0

    def __post_init__(self) -> None:
        if not self.max_bytes > 0:
            raise ValueError(f"max_bytes has to be positive, not {self.max_bytes}")
        if self.kind == "log" and not 0 < self.min_bytes <= self.max_bytes:
            raise ValueError(f"a log scale needs 0 < min_bytes <= max_bytes, not {self.min_bytes}")

    def to_index(self, sizes: npt.ArrayLike) -> npt.NDArray[np.uint8]:
        """Colour indices of sizes in bytes, same shape; anything above zero gets at least 1."""
        array = np.asarray(sizes, dtype=np.float64)
        if self.kind == "linear":
            exact = array * (BRIGHTEST / self.max_bytes)
        elif self.min_bytes == self.max_bytes:
            exact = np.full(array.shape, float(BRIGHTEST))
        else:
            floor = np.maximum(array, self.min_bytes)
            share = np.log(floor / self.min_bytes) / math.log(self.max_bytes / self.min_bytes)
            exact = 1 + (BRIGHTEST - 1) * share
        indices = np.clip(np.rint(exact), 1, BRIGHTEST)
        return np.where(array > 0, indices, 0).astype(np.uint8)

    def to_bytes(self, index: int) -> float:
        """The size in bytes that a colour index stands for; 0 for index 0."""
        if index == 0:
            return 0.0
        if self.kind == "linear":
            return self.max_bytes * index / BRIGHTEST
        ratio = self.max_bytes / self.min_bytes
        return float(self.min_bytes * ratio ** ((index - 1) / (BRIGHTEST - 1)))

    def legend(self) -> list[tuple[int, str]]:
        """Ticks of the colour bar, (colour index, text), ascending: round sizes and the largest."""
        round_sizes = _round_sizes_log(self) if self.kind == "log" else _round_sizes_linear(self)
        sizes = [*(size for size in round_sizes if size < self.max_bytes), self.max_bytes]
        indices = self.to_index(np.array(sizes))
        return [(int(index), _round_text(size)) for index, size in zip(indices, sizes, strict=True)]


@dataclass(frozen=True)
class HeatmapSelection:
    """Rows and a moment that somebody picked on a heat map.

    ``row_key`` is where the pick began; ``row_to`` is the other end of a range of rows, None for
    one row. ``t_s`` is the middle of the picked column in seconds. ``column`` is that column's
    number at the time of the pick: a live map merges its columns as it grows, so go by ``t_s``.
    """

    row_key: RowKey
    row_to: RowKey | None
    t_s: float
    column: int | None = None


class GcLine(NamedTuple):
    """A collection worth a line of its own: generation 2, or a long pause."""

    t_s: float
    pause_ms: float
    generation: int
    text: str


@dataclass(frozen=True, eq=False)
class HeatmapView:
    """One picture: rows (units or sites) against time, colour for bytes.

    ``values`` holds colour indices by ``scale``, shape (rows, columns). Row 0 is drawn at the
    bottom when ``y_up``, else at the top. ``column_edges_s`` has one entry more than there are
    columns, in seconds, ascending. ``row_keys`` are stable from one update to the next and come
    back in a selection. ``gc_density`` tells for each column how busy small collections were (255
    = most). ``unit_marks`` are the starts of units, (seconds, short label), ascending. An empty
    ``legend`` means the scale's own ticks.

    Raises ValueError when the parts do not fit together.
    """

    values: npt.NDArray[np.uint8]
    row_labels: Sequence[str]
    row_details: Sequence[str]
    row_keys: Sequence[RowKey]
    column_edges_s: Sequence[float] | npt.NDArray[np.floating]
    scale: ColourScale
    title: str
    y_title: str
    legend: Sequence[tuple[int, str]] = ()
    gc_lines: Sequence[GcLine] = ()
    gc_density: npt.NDArray[np.uint8] | None = None
    unit_marks: Sequence[tuple[float, str]] = ()
    unit_title: str = "page"
    now_row_key: RowKey | None = None
    selection: HeatmapSelection | None = None
    y_up: bool = False

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or self.values.dtype != np.uint8:
            raise ValueError("values has to be a two-dimensional uint8 array")
        rows, columns = self.values.shape
        for name in ("row_labels", "row_details", "row_keys"):
            if len(getattr(self, name)) != rows:
                raise ValueError(f"{name} has {len(getattr(self, name))} entries for {rows} rows")
        if columns and len(self.column_edges_s) != columns + 1:
            raise ValueError(f"{len(self.column_edges_s)} edges for {columns} columns")
        if self.gc_density is not None and self.gc_density.shape != (columns,):
            raise ValueError(f"gc_density has shape {self.gc_density.shape} for {columns} columns")


def _round_sizes_log(scale: ColourScale) -> list[float]:
    first = math.floor(math.log10(scale.min_bytes))
    last = math.ceil(math.log10(scale.max_bytes))
    decades = last - first
    mantissas = (1, 2, 5) if decades <= 2 else (1,)
    stride = max(1, math.ceil(decades / 6))
    sizes = [
        mantissa * 10.0**power
        for power in range(first, last + 1)
        for mantissa in mantissas
        if power % stride == 0
    ]
    return [size for size in sizes if size >= scale.min_bytes]


def _round_sizes_linear(scale: ColourScale) -> list[float]:
    rough = scale.max_bytes / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= rough)
    return [step * k for k in range(1, int(scale.max_bytes / step) + 1)]


def _round_text(size: float) -> str:
    for factor, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size:.3g} B"
