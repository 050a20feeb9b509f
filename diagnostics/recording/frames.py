"""Key frames and change frames: how a large series is kept small.

A series maps ids to small tuples of whole numbers (a site to bytes and blocks, a type to a
count). Most entries stay as they are from one moment to the next, so a frame holds only the
changes, and a key frame, which holds everything, is written when the changes since the last one
have grown as large as a key frame would be. Reading any moment therefore costs at most about
twice its size, and a file grows with activity instead of duration.
"""

from __future__ import annotations

import struct
import sys
import zlib
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate, islice, pairwise

Values = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class EncodedFrame:
    key: bool
    payload: bytes


class FrameEncoder:
    """Turns the successive states of one series into frames. ``width`` numbers belong to an id."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._nothing: Values = (0,) * width
        self._state: dict[int, Values] = {}
        self._changes_since_key = 0
        self._has_key = False

    def encode(self, state: Mapping[int, Values]) -> EncodedFrame | None:
        """The frame that leads to ``state`` (all of it), or None when nothing changed."""
        gone = dict.fromkeys(self._state.keys() - state.keys(), self._nothing)
        changed = {key: new for key, new in state.items() if self._state.get(key) != new}
        return self.encode_changes(gone | changed)

    def encode_changes(self, changes: Mapping[int, Values]) -> EncodedFrame | None:
        """The frame that holds ``changes``, or None when there are none. All zeros removes."""
        if not changes and self._has_key:
            return None
        for key, values in changes.items():
            if any(values):
                self._state[key] = values
            else:
                self._state.pop(key, None)
        if not self._has_key or self._changes_since_key + len(changes) > len(self._state):
            self._has_key = True
            self._changes_since_key = 0
            return EncodedFrame(True, encode(self._state, self._width))
        self._changes_since_key += len(changes)
        return EncodedFrame(False, encode(changes, self._width))


def encode(entries: Mapping[int, Values], width: int) -> bytes:
    """``entries`` as bytes: columns of the narrowest numbers that hold them, compressed where that
    is worth its price (a compressor takes 260 KB, and lets go of the GIL, for each frame).

    The columns are the sorted ids, each as its distance from the one before, and then the values
    one after the other: neighbours in a column are alike, and that is what compresses well.
    """
    ids = sorted(entries)
    columns = [[after - before for before, after in pairwise([0, *ids])]]
    columns += [[entries[key][place] for key in ids] for place in range(width)]
    packed = bytearray(_HEADER.pack(width, len(ids)))
    for column in columns:
        numbers = _narrow(column)
        packed += numbers.typecode.encode()
        packed += _little_endian(numbers).tobytes()
    return bytes(packed) if len(packed) < _WORTH_COMPRESSING else zlib.compress(packed, 1)


def decode(payload: bytes, width: int) -> dict[int, Values]:
    """The entries of one frame: id -> ``width`` values; all zeros means that the id is gone.

    Raises ``ValueError`` when the bytes are not a frame of that width, or say what cannot be.
    """
    try:
        raw = payload
        if payload[:1] == _COMPRESSED:
            # A file from somebody else may claim anything: the limit keeps a small one from
            # growing into all of the memory.
            raw = zlib.decompressobj().decompress(payload, _MOST_BYTES)
        found, count = _HEADER.unpack_from(raw)
    except (zlib.error, struct.error) as error:
        raise ValueError(f"not a frame: {error}") from error
    if found != width or count > _MOST_ENTRIES:
        raise ValueError(f"not a frame: {count} entries of {found} values")
    first_form = raw[_HEADER.size : _HEADER.size + 1] == b"\0"
    ids, *columns = _rows_of_numbers(raw, width) if first_form else _columns(raw, width, count)
    if ids and (ids[0] < 0 or min(islice(ids, 1, None), default=1) < 1):
        raise ValueError("not a frame: its ids are not in order")
    if any(min(column, default=0) < 0 or sum(column) > _MOST_IN_ALL for column in columns):
        raise ValueError("not a frame: its values are out of all proportion")
    return dict(zip(accumulate(ids), zip(*columns, strict=True), strict=True))


def _columns(raw: bytes, width: int, count: int) -> list[array[int]]:
    """The distances of the ids and the columns of values behind the header of a frame."""
    at = _HEADER.size
    columns: list[array[int]] = []
    for _ in range(width + 1):
        typecode = raw[at : at + 1].decode("latin-1")
        if typecode not in _TYPECODES or not typecode:
            raise ValueError(f"not a frame: a column of type {typecode!r}")
        numbers = array(typecode)
        end = at + 1 + count * numbers.itemsize
        if end > len(raw):
            raise ValueError("not a frame: entries are cut off")
        numbers.frombytes(raw[at + 1 : end])
        columns.append(_little_endian(numbers))
        at = end
    if at != len(raw):
        raise ValueError("not a frame: more than its entries")
    return columns


def _rows_of_numbers(raw: bytes, width: int) -> list[array[int]]:
    """The same from the first form that frames had: 64-bit numbers, the width before all, then for
    each entry its id and its values."""
    if len(raw) % 8:
        raise ValueError("not a frame: not a row of 64-bit numbers")
    numbers = _little_endian(array("q", raw))[1:]
    if len(numbers) % (width + 1):
        raise ValueError("not a frame: entries are cut off")
    order = sorted(range(0, len(numbers), width + 1), key=numbers.__getitem__)
    ids = [numbers[at] for at in order]
    distances = [after - before for before, after in pairwise([0, *ids])]
    return [
        array("q", distances),
        *(array("q", [numbers[at + place] for at in order]) for place in range(1, width + 1)),
    ]


_HEADER = struct.Struct("<BI")
_TYPECODES = "bhiq"
_COMPRESSED = b"\x78"
"""What zlib's output begins with; a frame that is not compressed begins with its width."""
_WORTH_COMPRESSING = 1024
_MOST_BYTES = 1 << 28
_MOST_ENTRIES = 1 << 22
_MOST_IN_ALL = 1 << 50  # 1 PB; thousands of frames add up to a number of 64 bits


def _narrow(column: list[int]) -> array[int]:
    lowest, highest = min(column, default=0), max(column, default=0)
    for typecode in _TYPECODES:
        limit = 1 << (array(typecode).itemsize * 8 - 1)
        if -limit <= lowest and highest < limit:
            return array(typecode, column)
    raise OverflowError("a value needs more than 64 bits")


def _little_endian(numbers: array[int]) -> array[int]:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def apply(state: dict[int, Values], entries: Mapping[int, Values], *, key: bool) -> None:
    """Bring ``state`` from the frame before to the frame with ``entries``."""
    if key:
        state.clear()
    for entry, values in entries.items():
        if any(values):
            state[entry] = values
        else:
            state.pop(entry, None)
