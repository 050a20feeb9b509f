"""What a child says is passed on, and its end remembered."""

import io
import os

from diagnostics.launch.relay import Relay

PATIENCE_S = 5.0


def said_through(target, said, **options):
    """A relay that has read ``said`` to its end, and what it remembers."""
    reading, writing = os.pipe()
    relay = Relay(os.fdopen(reading, "rb"), target, **options)
    with os.fdopen(writing, "wb") as child:
        child.write(said)
    return relay.last_words(PATIENCE_S)


def test_everything_is_passed_on_and_the_last_64_kib_are_kept():
    target = io.StringIO()
    said = "".join(f"{number:09d}\n" for number in range(20_000))  # 200,000 bytes
    kept = said_through(target, said.encode())
    assert target.getvalue() == said
    assert kept == said[-65_536:]


def test_what_comes_too_early_is_remembered_but_not_passed_on():
    target = io.StringIO()
    assert said_through(target, b"why I cannot start\n", only_if=lambda: False) == (
        "why I cannot start\n"
    )
    assert target.getvalue() == ""


def test_a_closed_target_does_not_stop_the_reading():
    target = io.StringIO()
    target.close()
    # A megabyte does not fit into a pipe: were it not read on, the writer would stand still here.
    assert len(said_through(target, b"x" * 1_000_000)) == 65_536


def test_bytes_that_are_no_text_do_no_harm():
    assert said_through(io.StringIO(), b"caf\xe9\n") == "caf�\n"


def test_a_source_that_stays_open_is_not_waited_for():
    reading, writing = os.pipe()
    relay = Relay(os.fdopen(reading, "rb"), io.StringIO())
    os.write(writing, b"so far\n")
    assert relay.last_words(0.2) == "so far\n"
    os.close(writing)
