"""Sentences of the analysis as Markdown: names between backticks become code, nothing else counts.

A recording is data from anywhere, and the names in it are too: an image or a link among them must
not be followed.
"""

from __future__ import annotations

import re

from diagnostics.recording.texts import storable

_SPECIAL = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~$:&=])")


def prose(text: str) -> str:
    """``text`` with its backticks as code and everything else as it stands."""
    parts = " ".join(text.split()).split("`")
    if len(parts) % 2 == 0:  # a lone backtick quotes nothing
        parts[-2:] = ["`".join(parts[-2:])]
    return "".join(
        code(part) if place % 2 else _SPECIAL.sub(r"\\\1", part) for place, part in enumerate(parts)
    )


def code_line(text: str) -> str:
    """A line of source as code, with all its spaces; empty for an empty one."""
    line = text.expandtabs().rstrip()
    return _fenced(line) if line else ""


def code(text: str) -> str:
    """``text`` as code, whatever is in it, what the browser cannot take as escapes; empty for an
    empty one."""
    plain = storable(" ".join(text.split()))
    return _fenced(plain) if plain else ""


def _fenced(plain: str) -> str:
    fence = "`" * (max((len(run) for run in re.findall("`+", plain)), default=0) + 1)
    pad = " " if plain.startswith("`") or plain.endswith("`") else ""
    return f"{fence}{pad}{plain}{pad}{fence}"
