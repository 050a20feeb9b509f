"""What is known about libraries: their release calls, their limits, and the code that cures.

Data, not code: ``libraries.json``. An entry names a ``library``, its ``package``, the ``kinds`` it
is about, the ``call`` and a code ``hint``. ``file`` narrows it to stacks through a part of the
package, ``release`` names the methods that let go, ``wide_bytes`` is from which mean size on blocks
of such a stack are wider than a document's own rows, ``model`` marks libraries of models.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Library:
    """One entry of ``libraries.json``."""

    library: str
    package: str
    kinds: tuple[int, ...]
    call: str
    hint: str
    file: str = ""
    release: tuple[str, ...] = ()
    wide_bytes: int = 0
    model: bool = False


@cache
def libraries() -> tuple[Library, ...]:
    """All entries, in the order of the file."""
    text = files(__package__).joinpath("libraries.json").read_text(encoding="utf-8")
    return tuple(
        Library(
            **{**entry, "kinds": tuple(entry["kinds"]), "release": tuple(entry.get("release", ()))}
        )
        for entry in json.loads(text)
    )


def advice(kind: int, packages: Iterable[str]) -> list[str]:
    """What to write for a kind where these packages are involved: call and code, one entry each.

    ``packages`` in order of how much they have to do with it: the first one that an entry is known
    for decides.
    """
    for package in packages:
        found = [entry for entry in libraries() if entry.package == package and kind in entry.kinds]
        if found:
            return [f"{entry.library}: {entry.call}\n{entry.hint}" for entry in found]
    return []


@cache
def release_names() -> frozenset[str]:
    """The methods that let go of memory, in whatever library."""
    return frozenset(name for entry in libraries() for name in entry.release)
