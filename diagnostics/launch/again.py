"""A run that was recorded, made once more with other options: by the form, or by hand."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from diagnostics.launch.app import AppSettings

_OWN = ["page87", "run"]
_WITH_VALUE = frozenset({"--loader", "--engine", "--frames", "--lines"})
"""Options that a run's own command line can have (see ``RunPlan.command``): each takes a value."""

_SWITCHES = {"settle": "settle=True", "capture": "captures=True"}
"""Options of a rerun as ``record`` takes them."""


@dataclass(frozen=True, slots=True)
class Again:
    """What the Record page would have to be filled with, or why it cannot make that run.

    Where ``why_not`` is empty, the run is of ``document`` with ``loader`` (empty: the format's
    default), or of ``script``. Else it says to the user how to make the run.
    """

    document: Path | None = None
    loader: str = ""
    script: Path | None = None
    why_not: str = ""


def again(
    meta: Mapping[str, object], options: Mapping[str, bool | str], settings: AppSettings
) -> Again:
    """How to make the run that left ``meta`` once more, with the options of a ``Rerun``.

    ``settings`` tell which code the app may start.
    """
    told = str(meta.get("command", ""))
    try:
        words = shlex.split(told)
    except ValueError as error:  # an unclosed quote: whoever records may name any command
        return Again(
            why_not=f"The command line that this recording keeps cannot be read ({error})."
            f" Run it as before, with {_in_code(options)}."
        )
    if words[:2] != _OWN:
        return Again(
            why_not="A program of yours made this recording, and this app cannot start it. Run it"
            f" as before, with {_in_code(options)}."
        )
    typed = f"`{_command(words, options)}`"
    subject, arguments = _subject(words)
    document = meta.get("document")
    if not isinstance(document, Mapping):
        script = subject.resolve()
        if script not in settings.scripts:
            return Again(why_not=f"This app was not opened with `{subject}`. Type: {typed}")
        if arguments:
            return Again(why_not=f"The form gives a script no arguments. Type: {typed}")
        return Again(script=script)
    if not subject.is_file():
        return Again(why_not=f"`{subject}` is not there, seen from this app. Type: {typed}")
    loader = str(document.get("loader") or "")
    if loader and loader not in settings.offered_loaders(subject.suffix.lower()):
        return Again(why_not=f"This app was not opened with the loader `{loader}`. Type: {typed}")
    return Again(document=subject, loader=loader)


def _subject(words: list[str]) -> tuple[Path, list[str]]:
    """The document or script of a ``page87 run``, and what follows it."""
    place = len(_OWN)
    while place < len(words) and words[place] in _WITH_VALUE:
        place += 2
    rest = words[place:]
    return (Path(rest[0]), rest[1:]) if rest else (Path(), [])


def _command(words: list[str], options: Mapping[str, bool | str]) -> str:
    """The command line with the options of a rerun; a run settles and looks by itself."""
    kept = words[len(_OWN) :]
    added = []
    if options.get("where") == "child":
        added.append("--child")
    engine = options.get("engine")
    if isinstance(engine, str):
        added += ["--engine", engine]
        if "--engine" in kept:
            place = kept.index("--engine")
            del kept[place : place + 2]
    return shlex.join([*_OWN, *added, *kept])


def _in_code(options: Mapping[str, bool | str]) -> str:
    """What to write in a program that records itself."""
    if options.get("where") == "child":
        return "nothing else in its process"
    words = {"engine": f'engine="{options.get("engine")}"', **_SWITCHES}
    return f"`record({', '.join(words[name] for name in options if name in words)})`"
