"""Which lines of a Python file belong to which function."""

from __future__ import annotations

import importlib.util
import tokenize
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.machinery import SourcelessFileLoader
from pathlib import Path
from types import CodeType
from typing import NamedTuple

MODULE = "<module>"

_HEADER_BYTES = 16


@dataclass(frozen=True, slots=True)
class Span:
    """The body of a function or class: first and last line, and its qualified name."""

    start: int
    end: int
    name: str


def name_at(spans: Sequence[Span], line: int) -> str:
    """The innermost function or class whose body holds ``line``; ``<module>`` where none does.

    ``spans`` are sorted by start, outer ones first. Decorators and signatures run where the
    function is defined, so they belong to what is around it.
    """
    for index in range(bisect_right(spans, line, key=lambda span: span.start) - 1, -1, -1):
        if spans[index].end >= line:
            return spans[index].name
    return MODULE


def compiled_spans(file: str) -> list[Span] | None:
    """Spans from the bytecode that Python keeps beside a module; None where it does not fit.

    Tokenizing reads about 1 MB a second, and 300 kB while allocations are traced; this is 20 times
    faster, and the very code that the interpreter has loaded.
    """
    try:
        status = Path(file).stat()
        cached = importlib.util.cache_from_source(file)
        with Path(cached).open("rb") as bytecode:
            header = bytecode.read(_HEADER_BYTES)
        # PEP 552: magic number, flags (0: made for a source of this time and size), time, size.
        made_for = (0, int(status.st_mtime) & 0xFFFFFFFF, status.st_size & 0xFFFFFFFF)
        fields = b"".join(number.to_bytes(4, "little") for number in made_for)
        if header != importlib.util.MAGIC_NUMBER + fields:
            return None
        module = SourcelessFileLoader(MODULE, cached).get_code(MODULE)
    except (OSError, NotImplementedError, ImportError, EOFError, ValueError, TypeError):
        return None
    if module is None:
        return None
    spans: list[Span] = []
    _collect(module, spans)
    return sorted(spans, key=_outer_first)


def _collect(code: CodeType, spans: list[Span]) -> int:
    """Add the spans inside ``code`` and its own; the last line of it all comes back."""
    lines = {line for _start, _end, line in code.co_lines() if line}
    end = max(lines, default=0)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            end = max(end, _collect(constant, spans))
    if not code.co_name.startswith("<"):
        body = lines - {code.co_firstlineno}
        spans.append(Span(min(body, default=code.co_firstlineno), end, code.co_qualname))
    return end


def token_spans(file: str) -> list[Span]:
    """Spans from the tokens of a source file, read line by line.

    Raises ``OSError`` when it cannot be read, ``SyntaxError`` or ``tokenize.TokenError`` when it
    is not Python.
    """
    with Path(file).open("rb") as source:
        return sorted(_scan(tokenize.tokenize(source.readline)), key=_outer_first)


_NOT_CODE = frozenset({tokenize.COMMENT, tokenize.NL, tokenize.ENCODING, tokenize.ENDMARKER})
_DEFINING = frozenset({"def", "class", "async"})


def _outer_first(span: Span) -> tuple[int, int, int]:
    return span.start, -span.end, len(span.name)


class _Block(NamedTuple):
    """An open indentation. Its name is empty where no definition stands above it."""

    name: str
    start: int
    prefix: str


class _Definition(NamedTuple):
    """What a ``def`` or ``class`` statement opens; ``body_line`` is 0 unless it is a one-liner."""

    name: str
    prefix: str
    body_line: int


def _scan(tokens: Iterator[tokenize.TokenInfo]) -> Iterator[Span]:
    blocks = [_Block("", 0, "")]
    statement: list[tokenize.TokenInfo] = []  # kept only where it may be a definition
    is_first = True
    defined: _Definition | None = None
    last_line = 0
    for token in tokens:
        if token.type in _NOT_CODE:
            continue
        if token.type == tokenize.INDENT:
            name, prefix = defined[:2] if defined is not None else ("", blocks[-1].prefix)
            blocks.append(_Block(name, token.start[0], prefix))
        elif token.type == tokenize.DEDENT:
            block = blocks.pop()
            if block.name:
                yield Span(block.start, last_line, block.name)
        elif token.type == tokenize.NEWLINE:
            defined = _definition(statement, blocks[-1].prefix)
            if defined is not None and defined.body_line:
                yield Span(defined.body_line, last_line, defined.name)
            statement.clear()
            is_first = True
        else:
            last_line = token.end[0]
            if statement or (is_first and token.string in _DEFINING):
                statement.append(token)
            is_first = False


def _definition(statement: Sequence[tokenize.TokenInfo], prefix: str) -> _Definition | None:
    words = [token.string for token in statement]
    if words[:1] == ["async"]:
        del words[0]
        statement = statement[1:]
    if len(words) < 3 or words[0] not in ("def", "class"):
        return None  # nothing was kept, or `async for`, `async with`
    name = prefix + words[1]
    inside = name + (".<locals>." if words[0] == "def" else ".")
    depth = 0
    for index, word in enumerate(words):
        depth += (word in "([{") - (word in ")]}")
        if word == ":" and depth == 0:
            body = statement[index + 1 :]
            return _Definition(name, inside, body[0].start[0] if body else 0)
    return None
