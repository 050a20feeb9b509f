"""A child's error arrives as it was, whatever else was said."""

import pytest

from diagnostics.errors import DocumentError, LoaderError, Page87Error, PasswordError, UsageError
from diagnostics.launch.complaints import from_output, to_line


@pytest.mark.parametrize("kind", [DocumentError, PasswordError, LoaderError, UsageError])
def test_class_message_and_next_step_arrive(kind):
    sent = kind("Two\nlines, 第二行.", "Do that.")
    got = from_output(f"a library warns\n{to_line(sent)}\nand again at the exit\n")
    assert type(got) is kind
    assert (got.message, got.next_step) == ("Two\nlines, 第二行.", "Do that.")


def test_without_an_error_there_is_none():
    assert from_output("Traceback (most recent call last):\n  ...\n") is None


def test_a_class_that_is_not_one_of_ours_is_not_looked_up():
    line = to_line(UsageError("What.", "How.")).replace("UsageError", "annotations")
    assert type(from_output(line)) is Page87Error
