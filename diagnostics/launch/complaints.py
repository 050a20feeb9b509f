"""How a child tells its supervisor what is wrong with the input, in between other output."""

from __future__ import annotations

import json

from diagnostics import errors
from diagnostics.errors import Page87Error

_MARK = "page87-complaint: "


def to_line(error: Page87Error) -> str:
    """The error in one line of text, for standard error."""
    return _MARK + json.dumps([type(error).__name__, error.message, error.next_step])


def from_output(text: str) -> Page87Error | None:
    """The last error in what a child said, of the class it had there; None if there is none.

    Libraries write to standard error as well, before and after it.
    """
    lines = [line for line in text.splitlines() if line.startswith(_MARK)]
    if not lines:
        return None
    name, message, next_step = json.loads(lines[-1].removeprefix(_MARK))
    known = getattr(errors, name, None)
    kind = known if isinstance(known, type) and issubclass(known, Page87Error) else Page87Error
    return kind(message, next_step)
