"""Descriptors of ours in a program that closes or reuses them."""

import os

from diagnostics.handles import Handle


def opened(path):
    return os.open(path, os.O_CREAT | os.O_RDWR)


def test_a_handle_is_closed_once_and_tolerates_that_the_program_did_it(tmp_path):
    handle = Handle(opened(tmp_path / "a"))
    os.close(handle.number)
    assert not handle.is_ours
    handle.close()
    handle.close()


def test_a_number_that_became_the_programs_file_is_left_alone(tmp_path):
    handle = Handle(opened(tmp_path / "ours"))
    number = handle.number
    theirs = opened(tmp_path / "theirs")
    os.dup2(theirs, number)
    handle.close()
    assert os.fstat(number).st_ino == (tmp_path / "theirs").stat().st_ino
    os.close(number)
    os.close(theirs)
