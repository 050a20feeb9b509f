"""Key frames and change frames: how a large series is kept small.

A series maps ids to small tuples of whole numbers (a site to bytes and blocks, a type to a
count). Most entries stay as they are from one moment to the next, so a frame holds only the
changes, and a key frame, which holds everything, is written when the changes since the last one
have grown as large as a key frame would be. Reading any moment therefore costs at most about
twice its size, and a file grows with activity instead of duration.
"""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

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
            return EncodedFrame(True, self._pack(self._state.items()))
        self._changes_since_key += len(changes)
        return EncodedFrame(False, self._pack(changes.items()))

    def _pack(self, entries: Iterable[tuple[int, Values]]) -> bytes:
        numbers = array("q", [self._width])
        for key, values in entries:
            numbers.append(key)
            numbers.extend(values)
        return zlib.compress(numbers.tobytes(), 1)


def decode(payload: bytes) -> dict[int, Values]:
    """The entries of one frame: id -> values; all zeros means that the id is gone.

    Raises ``ValueError`` when the bytes are not a frame.
    """
    try:
        raw = zlib.decompress(payload)
    except zlib.error as error:
        raise ValueError(f"not a frame: {error}") from error
    if not raw or len(raw) % 8:
        raise ValueError("not a frame: not a row of 64-bit numbers")
    numbers = array("q", raw)
    width = numbers[0]
    if width < 1 or (len(numbers) - 1) % (width + 1):
        raise ValueError("not a frame: entries are cut off")
    body = numbers[1:]
    columns = [body[column :: width + 1] for column in range(width + 1)]
    return {entry[0]: entry[1:] for entry in zip(*columns, strict=True)}


def apply(state: dict[int, Values], entries: Mapping[int, Values], *, key: bool) -> None:
    """Bring ``state`` from the frame before to the frame with ``entries``."""
    if key:
        state.clear()
    for entry, values in entries.items():
        if any(values):
            state[entry] = values
        else:
            state.pop(entry, None)
