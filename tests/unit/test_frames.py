"""Key frames and change frames give back every state that went in."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diagnostics.recording.frames import FrameEncoder, apply, decode, encode

states = st.lists(
    st.dictionaries(
        st.integers(0, 40), st.tuples(st.integers(1, 2**62), st.integers(0, 10**6)), max_size=30
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
            apply(state, decode(frame.payload), key=frame.key)
        assert state == wanted


def test_the_first_frame_is_a_key_frame_even_when_empty():
    encoder = FrameEncoder(width=1)
    frame = encoder.encode({})
    assert frame is not None
    assert frame.key
    assert decode(frame.payload) == {}


def test_a_change_frame_holds_only_what_changed():
    encoder = FrameEncoder(width=1)
    encoder.encode(dict.fromkeys(range(100), (5,)))
    frame = encoder.encode(dict.fromkeys(range(99), (5,)) | {7: (6,)})
    assert frame is not None
    assert not frame.key
    assert decode(frame.payload) == {7: (6,), 99: (0,)}


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
    numbers = [0, 1, 127, 128, -129, 2**15, 2**31 - 1, 2**31, 2**62]
    for highest in range(1, len(numbers)):
        entries = {key * 2**40: (value, 1) for key, value in enumerate(numbers[:highest])}
        assert decode(encode(entries, 2)) == entries


def test_what_claims_to_be_huge_is_refused_before_it_is_read():
    claim = zlib.compress(b"\x01\xff\xff\xff\xff" + b"q" + bytes(1000))
    with pytest.raises(ValueError, match="cut off"):
        decode(claim)


@pytest.mark.parametrize(
    "payload",
    [b"", b"no frame", zlib.compress(b""), zlib.compress(b"\x01\x01\x00\x00\x00x")],
)
def test_bytes_that_are_no_frame_are_refused(payload):
    with pytest.raises(ValueError, match="not a frame"):
        decode(payload)
