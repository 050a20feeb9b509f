"""Key frames and change frames give back every state that went in."""

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diagnostics.recording.frames import FrameEncoder, apply, decode, encode

states = st.lists(
    st.dictionaries(
        st.integers(0, 40), st.tuples(st.integers(1, 2**44), st.integers(0, 10**6)), max_size=30
    ),
    max_size=25,
)


@given(states)
def test_every_state_comes_back(successive):
    encoder = FrameEncoder(width=2)
    state: dict = {}
    for wanted in successive:
        frame = encoder.encode(wanted)
        if frame is not None:
            apply(state, decode(frame.payload, 2), key=frame.key)
        assert state == wanted


def test_the_first_frame_is_a_key_frame_even_when_empty():
    encoder = FrameEncoder(width=1)
    frame = encoder.encode({})
    assert frame is not None
    assert frame.key
    assert decode(frame.payload, 1) == {}


def test_a_change_frame_holds_only_what_changed():
    encoder = FrameEncoder(width=1)
    encoder.encode(dict.fromkeys(range(100), (5,)))
    frame = encoder.encode(dict.fromkeys(range(99), (5,)) | {7: (6,)})
    assert frame is not None
    assert not frame.key
    assert decode(frame.payload, 1) == {7: (6,), 99: (0,)}


def test_nothing_changed_is_no_frame():
    encoder = FrameEncoder(width=1)
    encoder.encode({1: (5,)})
    assert encoder.encode({1: (5,)}) is None


def test_a_key_frame_comes_when_the_changes_outgrow_the_state():
    # 10 entries, 4 changes a frame: 4, 8, then 12 > 10.
    encoder = FrameEncoder(width=1)
    keys = []
    for step in range(1, 6):
        frame = encoder.encode({number: (step if number < 4 else 1,) for number in range(10)})
        if frame is not None:
            keys.append(frame.key)
    assert keys == [True, False, False, True, False]


def test_numbers_of_every_width_come_back():
    numbers = [0, 1, 127, 128, 2**15, 2**31 - 1, 2**31, 2**48]
    for highest in range(1, len(numbers)):
        entries = {key * 2**40: (value, 1) for key, value in enumerate(numbers[:highest])}
        assert decode(encode(entries, 2), 2) == entries


def test_what_claims_to_be_huge_is_refused_before_it_is_read():
    claim = zlib.compress(b"\x01\x00\x00\x10\x00" + b"q" + bytes(1000))
    with pytest.raises(ValueError, match="cut off"):
        decode(claim, 1)


def frame(width, count, *columns):
    """The bytes of a frame, as docs/recording.md describes them."""
    return struct.pack("<BI", width, count) + b"".join(columns)


@pytest.mark.parametrize(
    ("payload", "width"),
    [
        (b"", 1),
        (b"no frame", 1),
        (zlib.compress(b""), 1),
        (frame(1, 1, b"x"), 1),
        (frame(1, 1, b"b\x05", b"b\x07"), 2),
        (frame(0, 1, b"b\x05"), 1),
        (frame(1, 1, b"b\x05", b"b\x07", b"\x00"), 1),
        (frame(1, 1, b"b\xff", b"b\x07"), 1),
        (frame(1, 2, b"b\x05\x00", b"b\x07\x07"), 1),
        (frame(1, 1, b"b\x05", b"q" + struct.pack("<q", 2**62)), 1),
        (frame(1, 1, b"b\x05", b"b\xff"), 1),
        (zlib.compress(frame(1, 2**23, b"b" + bytes(2**23), b"b" + bytes(2**23))), 1),
    ],
    ids=[
        "empty",
        "text",
        "nothing compressed",
        "a letter that is no width",
        "another series",
        "no values",
        "a byte too many",
        "an id below 0",
        "an id twice",
        "more bytes than there can be",
        "fewer than none",
        "more entries than memory",
    ],
)
def test_bytes_that_are_no_frame_are_refused(payload, width):
    with pytest.raises(ValueError, match="not a frame"):
        decode(payload, width)


def test_the_form_of_the_first_recordings_is_read():
    # The width, then an entry after the other in any order, all as 64-bit numbers.
    entries = struct.pack("<7q", 2, 9, 500, 3, 4, 100, 1)
    assert decode(zlib.compress(entries), 2) == {4: (100, 1), 9: (500, 3)}
    assert decode(zlib.compress(struct.pack("<q", 2)), 2) == {}


def test_an_entry_cut_off_in_the_first_form_is_refused():
    with pytest.raises(ValueError, match="cut off"):
        decode(zlib.compress(struct.pack("<3q", 2, 9, 500)), 2)
    with pytest.raises(ValueError, match="64-bit"):
        decode(zlib.compress(struct.pack("<4q", 2, 9, 500, 3) + b"x"), 2)
