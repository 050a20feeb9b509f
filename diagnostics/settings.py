"""Checks what the recorder is asked for, before anything is created."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterable, Mapping
from typing import Any

from diagnostics.errors import UsageError

_TICK_S = (0.01, 60.0)


def checked_tick(tick_s: float) -> float:
    """Seconds between two commits; raises ``UsageError`` unless it is a number in the range."""
    least, most = _TICK_S
    is_number = isinstance(tick_s, (int, float)) and not isinstance(tick_s, bool)
    if not is_number or not least <= tick_s <= most:
        raise UsageError(
            f"tick_s is {tick_s!r}.", f"Give the seconds between two commits, {least} to {most:g}."
        )
    return tick_s


def checked_frames(frames: int | None) -> int | None:
    """Frames per allocation stack; the range depends on the engine, which checks it."""
    if frames is not None and (not isinstance(frames, int) or isinstance(frames, bool)):
        raise UsageError(f"frames is {frames!r}.", "Give a whole number, or None.")
    return frames


def checked_lines(lines: str | Iterable[str]) -> list[str]:
    """Names of functions for the line profile; a plain string is one name."""
    if isinstance(lines, str):
        return [lines]
    names = list(lines) if isinstance(lines, Iterable) else [lines]
    for name in names:
        if not isinstance(name, str):
            raise UsageError(f"lines names {name!r}.", 'Give names such as "module:function".')
    return names


def checked_switch(name: str, value: bool) -> bool:
    """A setting that is on or off."""
    if not isinstance(value, bool):
        raise UsageError(f"{name} is {value!r}.", "Give True or False.")
    return value


def checked_signal(name: str, value: str | None) -> str | None:
    """The name of a signal that this system knows."""
    if value is not None and value not in signal.Signals.__members__:
        raise UsageError(f"{name} is {value!r}.", 'Name a signal, such as "SIGUSR1", or None.')
    return value


def checked_text(name: str, value: str) -> str:
    """A setting that must be text."""
    if not isinstance(value, str):
        raise UsageError(f"{name} is {value!r}.", "Give a text.")
    return value


def checked_mapping(name: str, values: Mapping[str, Any] | None) -> dict[str, Any]:
    """A copy of what is to be kept as JSON; raises ``UsageError`` where JSON cannot hold it."""
    if values is None:
        return {}
    try:
        copy = json.loads(json.dumps(dict(values), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(
            f"{name} holds what JSON cannot hold: {error}.",
            "Give a dict of texts, whole or finite numbers, True, False, None, lists and dicts.",
        ) from error
    return dict(copy)
