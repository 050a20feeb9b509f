"""Texts as a recording can hold them, whatever the observed program put into them."""

from __future__ import annotations

import traceback

_MESSAGE_LIMIT = 10_000
_TRACEBACK_LIMIT = 100_000


def storable(text: str) -> str:
    """``text`` with escapes for lone surrogates, which UTF-8 has no bytes for, and for NULs, at
    which SQLite's JSON functions end a text.
    """
    if "\0" in text:
        text = text.replace("\0", "\\x00")
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode()


def message_of(error: BaseException) -> str:
    """The message of an exception: storable, not endless, and told if it cannot be had."""
    try:
        message = str(error)
    except Exception as problem:  # noqa: BLE001 - an exception class of the observed program
        return f"<message not available: {type(problem).__name__}>"
    return storable(_cut(message, _MESSAGE_LIMIT))


def traceback_of(error: BaseException) -> str:
    """The formatted traceback of an exception: storable and not endless."""
    try:
        lines = traceback.format_exception(error)
    except Exception as problem:  # noqa: BLE001 - as above
        return f"<traceback not available: {type(problem).__name__}>"
    return storable(_cut("".join(lines), _TRACEBACK_LIMIT))


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return f"{text[:limit]} [cut: {limit:,} of {len(text):,} characters kept]"
