"""Lines of code find their function, in files of every kind."""

import inspect
import json.decoder
import py_compile
import sys
import textwrap
import tokenize
from pathlib import Path

import pytest

from diagnostics.probes.source import SourceIndex
from diagnostics.probes.spans import compiled_spans, name_at, token_spans

SOURCE = '''
import functools  # 2


def plain(
    first,  # 6
    second=[1, 2],  # 7
):
    """Text that says: def no_function(): here."""
    value = [first for _ in range(3)]  # 10
    return value


class LTChar:  # 14
    x = {1: 2}  # 15

    @functools.lru_cache(  # 17
        maxsize=None,
    )
    def __init__(self):  # 20
        self.a = 1  # 21

        async def inner():
            async with self as it:  # 24
                return it  # 25

        self.b = inner  # 27
    # a comment at an odd place
        self.c = lambda: 1  # 29

    class Deep:
        def method(self): return {"a": 1}  # 32

    last = 34


if LTChar:
    def conditional(): pass  # 38
else:
    def conditional():
        text = """
def not_this():
"""
        return text  # 44


after = plain(lambda: 1, 47)
'''

EXPECTED = {
    2: "<module>",
    6: "<module>",
    7: "<module>",
    10: "plain",
    11: "plain",
    14: "<module>",
    15: "LTChar",
    17: "LTChar",
    20: "LTChar",
    21: "LTChar.__init__",
    24: "LTChar.__init__.<locals>.inner",
    25: "LTChar.__init__.<locals>.inner",
    27: "LTChar.__init__",
    29: "LTChar.__init__",
    32: "LTChar.Deep.method",
    34: "LTChar",
    38: "conditional",
    44: "conditional",
    47: "<module>",
}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "chars.py"
    path.write_text(SOURCE)
    return str(path)


@pytest.mark.parametrize(("line", "name"), EXPECTED.items())
def test_tokens_tell_the_function_of_a_line(file, line, name):
    assert name_at(token_spans(file), line) == name


@pytest.mark.parametrize(("line", "name"), EXPECTED.items())
def test_bytecode_tells_the_function_of_a_line(file, line, name):
    py_compile.compile(file, doraise=True)
    assert name_at(compiled_spans(file), line) == name


@pytest.mark.parametrize("module", [inspect, json.decoder, tokenize, textwrap, pytest.main])
def test_both_agree_with_the_functions_themselves(module):
    file = inspect.getsourcefile(module)
    tokens, bytecode = token_spans(file), compiled_spans(file)
    names = set()
    for value in vars(sys.modules[inspect.getmodule(module).__name__]).values():
        members = vars(value).values() if inspect.isclass(value) else [value]
        for function in members:
            if inspect.isfunction(function) and function.__code__.co_filename == file:
                code = function.__code__
                last = max(line for _, _, line in code.co_lines() if line)
                assert name_at(tokens, last) == code.co_qualname
                assert bytecode is None or name_at(bytecode, last) == code.co_qualname
                names.add(code.co_qualname)
    assert len(names) > 2


def test_stale_bytecode_is_not_believed(file):
    py_compile.compile(file, doraise=True)
    with open(file, "a") as source:  # noqa: PTH123
        source.write("def added():\n    return 1\n")
    assert compiled_spans(file) is None
    assert SourceIndex().function(file, 49) == "added"


def test_damaged_bytecode_is_not_believed(file):
    cached = Path(py_compile.compile(file, doraise=True))
    whole = cached.read_bytes()
    for damaged in (whole[:10], whole[:16], whole[:60], whole[:16] + b"N"):
        cached.write_bytes(damaged)
        assert compiled_spans(file) is None
    assert SourceIndex().function(file, 21) == "LTChar.__init__"


def test_the_index_gives_the_lines_around(file):
    assert SourceIndex().contexts(file, [2]) == {
        1: "",
        2: "import functools  # 2",
        3: "",
        4: "",
        5: "def plain(",
    }
    assert list(SourceIndex().contexts(file, [47])) == [43, 44, 45, 46, 47]  # 43 is less far in


def test_the_lines_that_open_the_blocks_come_along(tmp_path):
    file = tmp_path / "ingest.py"
    file.write_text(
        textwrap.dedent("""\
            def other():
                pass
            def load(paths):
                first = 4
                for path in sorted(
                    paths, key=len
                ):
                    # a comment
                    second = 9
            # a comment at the margin
                    third = 11

                    if second:
                        fifth = 14
                        sixth = 15
                        seventh = 16
                        eighth = 17
                        ninth = 18
            """)
    )
    assert list(SourceIndex().contexts(str(file), [18])) == [3, 5, 13, 15, 16, 17, 18]
    assert list(SourceIndex().contexts(str(file), [11])) == [3, 5, *range(8, 15)]


def test_files_that_cannot_be_read_give_nothing(tmp_path):
    index = SourceIndex()
    (tmp_path / "broken.py").write_text("def f(:\n  '''")
    (tmp_path / "binary.so").write_bytes(bytes(range(256)) * 20)
    (tmp_path / "huge.py").write_text("x = 1\n" * 400_000)
    for name in ("broken.py", "binary.so", "huge.py", "missing.py"):
        assert index.function(str(tmp_path / name), 1) == ""
    for name in ("binary.so", "huge.py", "missing.py"):
        assert index.contexts(str(tmp_path / name), [1]) == {}
    for name in ("<frozen importlib._bootstrap>", "<string>", "", "a\0b", str(tmp_path)):
        assert index.function(name, 1) == ""
        assert index.contexts(name, [1]) == {}


def test_only_so_many_files_are_remembered(tmp_path):
    index = SourceIndex(files_kept=2)
    for number in range(5):
        path = tmp_path / f"m{number}.py"
        path.write_text(f"def f{number}():\n    return 1\n")
        assert index.function(str(path), 2) == f"f{number}"
    assert len(index._spans) == 2
    assert index.function(str(tmp_path / "m0.py"), 2) == "f0"
