"""What people need to recognise a line of code: its function, and the lines around it."""

from __future__ import annotations

import tokenize
from collections import OrderedDict
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from diagnostics.probes.spans import Span, compiled_spans, name_at, token_spans
from diagnostics.recording.blocks import placed

_LARGEST_FILE = 2 * 1024 * 1024
_AROUND = 3
_FILES_KEPT = 256


class SourceIndex:
    """Names and lines of source files, for one thread. Reads each file once, on first need."""

    def __init__(self, files_kept: int = _FILES_KEPT) -> None:
        self._files_kept = files_kept
        self._spans: OrderedDict[str, list[Span] | None] = OrderedDict()

    def function(self, file: str, line: int) -> str:
        """The qualified name of the function around a line, ``<module>`` outside of any.

        Empty for a file that is not there, is no Python, or is larger than 2 MiB.
        """
        if file not in self._spans:
            self._spans[file] = _spans_of(file)
            if len(self._spans) > self._files_kept:
                self._spans.popitem(last=False)
        self._spans.move_to_end(file)
        spans = self._spans[file]
        return name_at(spans, line) if spans is not None else ""

    def contexts(self, file: str, lines: Iterable[int]) -> dict[int, str]:
        """The source from three lines before each of ``lines`` to three after, and the lines that
        open the blocks they stand in (loops, functions): number -> text.

        Empty where ``function`` is.
        """
        if not _is_readable(file):
            return {}
        wanted = {near for line in lines for near in range(line - _AROUND, line + _AROUND + 1)}
        try:
            with tokenize.open(file) as source:
                until = islice(source, max(wanted, default=0))
                texts = {number: text.rstrip("\n") for number, text in enumerate(until, 1)}
        except (OSError, SyntaxError, UnicodeDecodeError):
            return {}
        for line in placed(texts.items()):
            if line.number in wanted:
                wanted.update(line.around)
        return {number: text for number, text in texts.items() if number in wanted}


def _spans_of(file: str) -> list[Span] | None:
    if not _is_readable(file):
        return None
    spans = compiled_spans(file)
    if spans is not None:
        return spans
    try:
        return token_spans(file)
    except (OSError, SyntaxError, UnicodeDecodeError, tokenize.TokenError):
        return None


def _is_readable(file: str) -> bool:
    try:
        return Path(file).is_file() and Path(file).stat().st_size <= _LARGEST_FILE
    except (OSError, ValueError):
        return False
