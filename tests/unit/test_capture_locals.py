"""A look at a program's functions leaves their locals as they are."""

import gc
import sys

import pytest
from looking import Leaf, the_leaf, words

from diagnostics.holders.frames import local_ids

HERE = "test_capture_locals.py"


def test_locals_that_the_program_keeps():
    def load(leaf):
        kept = [leaf]
        names = locals()
        names["kept"], names["extra"] = "the program's own", 3
        del leaf
        found = words(the_leaf)
        return found, names, kept, sys._getframe().f_lineno - 1

    found, names, _kept, line = load(Leaf())
    assert (names["kept"], names["extra"]) == ("the program's own", 3)
    # `names` has the leaf too, as it was when locals() was called.
    place = f"test_locals_that_the_program_keeps.load, {HERE}:{line}"
    assert f"`kept` (local of {place}) -> `Leaf[0]`" in found


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="exec() leaves nothing in a function there")
def test_names_that_exec_has_made_in_a_function():
    def load():
        exec("made = 87")
        local_ids(sys._getframe())
        return locals().get("made")

    assert load() == 87


def test_nothing_is_kept_in_a_frame():
    def load():
        leaf = Leaf()
        assert local_ids(sys._getframe())["leaf"] == id(leaf)
        del leaf
        return [item for item in gc.get_objects() if type(item) is Leaf]

    assert load() == []


def test_variables_that_inner_functions_share():
    def load():
        leaf = Leaf()

        def read():
            return leaf

        return local_ids(sys._getframe()), id(leaf), read

    names, expected, _read = load()
    assert names["leaf"] == expected


def test_a_function_that_is_being_traced():
    seen = []

    def trace(frame, event, _argument):
        if frame.f_code.co_name == "load" and event == "line":
            names = local_ids(frame)
            if "leaf" in names:
                seen.append(names["leaf"])
        return trace

    def load():
        leaf = Leaf()
        number = 1
        number += 1
        return id(leaf), number

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        expected, number = load()
    finally:
        sys.settrace(before)
    assert number == 2
    assert set(seen) == {expected}
