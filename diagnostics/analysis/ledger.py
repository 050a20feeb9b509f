"""The ledger: RSS split into parts that add up to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from diagnostics.analysis.format import format_bytes
from diagnostics.analysis.series import Thinned
from diagnostics.recording.model import LedgerReading
from diagnostics.recording.reader import RecordingReader

if TYPE_CHECKING:
    import pandas as pd

NS = 1e9

PART_NAMES: Mapping[str, str] = {
    "python": "live Python blocks",
    "pymalloc_empty": "pymalloc's empty space",
    "native": "native blocks in use",
    "malloc_free": "malloc's free space",
    "recorder": "the recorder's tables",
    "file_backed": "file-backed pages",
    "shared": "shared memory",
    "rest": "the rest",
}
"""The parts, by field of ``LedgerParts``, in the order in which they are drawn and told."""


@dataclass(frozen=True, slots=True)
class LedgerParts:
    """RSS at one moment in parts that add up to it exactly; bytes.

    A part that cannot be told here is None, lies in the ``rest``, and ``note`` says why.

    ``python`` are the live blocks allocated since the recording began, the recorder's own among
    them. ``pymalloc_empty`` is what pymalloc's arenas hold beside them: empty pools, freed blocks,
    and what rounding up to 16 bytes costs. ``native`` are malloc's blocks in use that are not
    Python's; the large Python blocks from before the recording are among them. ``malloc_free`` is
    what was freed and malloc has kept. ``recorder`` are the heap engine's tables. ``rest`` is the
    interpreter itself, stacks, small Python blocks from before the recording, and what libraries
    map without asking malloc.

    ``not_resident`` is in no part: bytes that the allocators count and RSS does not hold, because
    they were given back to the system, never touched, or swapped out. ``children`` and the control
    group's ``group_anonymous`` and ``group_cache`` stand beside RSS.
    """

    t_ns: int
    rss: int
    python: int | None
    pymalloc_empty: int | None
    native: int | None
    malloc_free: int | None
    recorder: int
    file_backed: int
    shared: int
    rest: int
    not_resident: int
    children: int | None
    group_anonymous: int | None
    group_cache: int | None
    note: str

    def known(self) -> dict[str, int]:
        """The parts that could be told, by field, in order; they add up to ``rss``."""
        found = {name: getattr(self, name) for name in PART_NAMES}
        return {name: size for name, size in found.items() if size is not None}


def parts(reading: LedgerReading, *, recorder: int = 0, rest_at_start: int = 0) -> LedgerParts:
    """The parts of one reading.

    ``recorder`` are the bytes of the heap engine's tables at that time, which malloc counts among
    the used ones. ``rest_at_start`` is the rest of the recording's first reading: what was there
    before hardly goes away, so it is no room for malloc's free space.

    What the allocators count need not be resident, and no cheap reading tells how much of it is.
    Where their counts do not fit into the anonymous part of RSS, they are cut:

    1. malloc's free space, and after it pymalloc's empty space, to what the others and
       ``rest_at_start`` leave: free chunks stay counted when ``malloc_trim`` has given back their
       pages, and the newest arena has pools that nobody has touched;
    2. the blocks in use, all by the same share, to the whole anonymous part: blocks that were
       asked for and never written (``bytes(n)``), or swapped out.

    Small blocks beyond the arenas mapped since the start lie in older arenas, so they take from
    ``rest_at_start``. Arenas from before that were unmapped can make their sum negative: then
    there is no empty space.
    """
    claims = _claims(reading, recorder)
    claimed = sum(claims.values())
    in_old_arenas = max(0, (reading.python_small or 0) - (reading.arenas or 0))
    floor = max(0, rest_at_start - in_old_arenas)
    excess = max(0, claimed - max(0, reading.anonymous - floor))
    for name in ("malloc_free", "pymalloc_empty"):
        cut = min(claims.get(name, 0), excess)
        excess -= cut
        if name in claims:
            claims[name] -= cut
    in_use = sum(claims.values())  # the rest of the excess goes at the cost of the floor
    if in_use > reading.anonymous:
        claims = {name: size * reading.anonymous // in_use for name, size in claims.items()}
    told = sum(claims.values())
    return LedgerParts(
        t_ns=reading.t_ns,
        rss=reading.rss,
        python=claims.get("python"),
        pymalloc_empty=claims.get("pymalloc_empty"),
        native=claims.get("native"),
        malloc_free=claims.get("malloc_free"),
        recorder=claims["recorder"],
        file_backed=reading.file_backed,
        shared=reading.shared,
        rest=reading.rss - reading.file_backed - reading.shared - told,
        not_resident=claimed - told,
        children=reading.children,
        group_anonymous=reading.group_anonymous,
        group_cache=reading.group_cache,
        note=_note(reading),
    )


def _claims(reading: LedgerReading, recorder: int) -> dict[str, int]:
    """What the allocators count, by part, as far as the readings can tell them apart."""
    claims = {"recorder": recorder}
    if reading.native_free is not None:
        claims["malloc_free"] = reading.native_free
    if reading.python is None:
        return claims
    claims["python"] = reading.python
    if reading.python_small is not None:
        empty = empty_in_arenas(reading)
        if empty is not None:
            claims["pymalloc_empty"] = empty
        if reading.native_used is not None:
            large = reading.python - reading.python_small
            claims["native"] = max(0, reading.native_used - large - recorder)
    return claims


def empty_in_arenas(reading: LedgerReading) -> int | None:
    """What pymalloc's arenas hold beyond the live blocks in them; None where it cannot be told."""
    if reading.arenas is None or reading.python_small is None:
        return None
    return max(0, reading.arenas - reading.python_small)


def _note(reading: LedgerReading) -> str:
    if reading.python is None:
        return (
            "Without a heap engine nobody counts the Python blocks, so they and the native blocks"
            " are one part with the rest."
        )
    if reading.python_small is None:
        return (
            "The exact engine cannot tell which Python blocks lie in pymalloc's arenas, so"
            " pymalloc's empty space and the native blocks are one part with the rest."
        )
    if reading.native_used is None:
        return (
            "The C library does not tell what malloc holds here, so native blocks and malloc's"
            " free space are one part with the rest."
        )
    return ""


def line_of(parts: LedgerParts) -> str:
    """One moment in a line: "1.2 GB = 700 MB live Python blocks + 310 MB native blocks in use …".

    Largest first; what rounds to less than a hundredth is left to the end of the line.
    """
    ordered = sorted(parts.known().items(), key=lambda item: -item[1])
    shown = [(name, size) for name, size in ordered if size * 100 >= parts.rss]
    small = sum(size for _, size in ordered) - sum(size for _, size in shown)
    terms = [f"{format_bytes(size)} {PART_NAMES[name]}" for name, size in shown]
    if small:
        terms.append(f"{format_bytes(small)} in smaller parts")
    return f"{format_bytes(parts.rss)} = {' + '.join(terms)}"


def ledger_table(rows: Sequence[LedgerParts]) -> pd.DataFrame:
    """One row a moment: ``t_s``, ``rss``, a column a part (bytes), ``children``,
    ``group_anonymous``, ``group_cache``. What is not known is NA."""
    import pandas as pd  # here: the command line needs the rest, and must not wait for it

    columns = ["rss", *PART_NAMES, "children", "group_anonymous", "group_cache"]
    table = pd.DataFrame(
        [(row.t_ns / NS, *(getattr(row, name) for name in columns)) for row in rows],
        columns=["t_s", *columns],
    )
    return table.astype({"t_s": "float64", **dict.fromkeys(columns, "Int64")})


class LiveLedger:
    """The ledger of a recording, brought up to date by reading only what is new.

    Of at most ``buckets`` stretches of time it keeps the moments with the lowest and the highest
    RSS, and the first and the last of all.
    """

    def __init__(self, buckets: int = 500) -> None:
        self._rss = Thinned(buckets)
        self._rows: dict[int, LedgerParts] = {}
        self._rest_at_start: int | None = None
        self._engine: list[tuple[int, int]] = [(-1, 0)]  # t_ns, bytes of the engine's tables

    def feed(self, reader: RecordingReader, *, until_ns: int | None = None) -> None:
        """Take in what the recording has gained since the last call, up to a moment if one is
        given: ``end`` is the last reading at or before it then."""
        totals = reader.heap_totals(after_ns=self._engine[-1][0])
        if totals and self._engine[-1][0] < 0:  # the tables were there before the first count
            self._engine = [(-1, totals[0].engine_bytes)]
        self._engine += [(total.t_ns, total.engine_bytes) for total in totals]
        readings = reader.ledger(after_ns=self._rss.last_ns)
        if until_ns is not None:
            readings = [reading for reading in readings if reading.t_ns <= until_ns]
        self._take(readings)
        del self._engine[:-1]

    def _take(self, readings: Iterable[LedgerReading]) -> None:
        place = 0
        for reading in readings:
            while place + 1 < len(self._engine) and self._engine[place + 1][0] <= reading.t_ns:
                place += 1
            recorder = self._engine[place][1]
            if self._rest_at_start is None:
                self._rest_at_start = parts(reading, recorder=recorder).rest
            row = parts(reading, recorder=recorder, rest_at_start=self._rest_at_start)
            self._rss.add(row.t_ns, row.rss)
            self._rows[row.t_ns] = row
        kept = {point.t_ns for point in self._rss.points()}
        self._rows = {t_ns: row for t_ns, row in self._rows.items() if t_ns in kept}

    def rows(self) -> list[LedgerParts]:
        """What is kept, in order of time."""
        return [self._rows[t_ns] for t_ns in sorted(self._rows)]

    def at(self, t_ns: int) -> LedgerParts | None:
        """The last that is known at a time; None before the first reading."""
        earlier = [row for row in self._rows if row <= t_ns]
        return self._rows[max(earlier)] if earlier else None

    def peak(self) -> LedgerParts | None:
        """The moment with the highest RSS; None without a reading."""
        highest = self._rss.peak()
        return None if highest is None else self._rows[highest.t_ns]

    def end(self) -> LedgerParts | None:
        """The last moment; None without a reading."""
        return self._rows.get(self._rss.last_ns)
