"""Key frames and change frames give back every state that went in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diagnostics.recording.frames import FrameEncoder, apply, decode

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
    encoder.encode({number: (5,) for number in range(100)})
    frame = encoder.encode({number: (5,) for number in range(99)} | {7: (6,)})
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


@pytest.mark.parametrize("payload", [b"", b"no frame", b"x\x9c\x03\x00\x00\x00\x00\x01"])
def test_bytes_that_are_no_frame_are_refused(payload):
    with pytest.raises(ValueError, match="not a frame"):
        decode(payload)
