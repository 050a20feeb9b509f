"""What a rule says about a recording."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from diagnostics.analysis.kinds.table import KINDS, Kind


@dataclass(frozen=True, slots=True)
class Rerun:
    """A measurement that would decide: what it is in words, and the options of a run that makes
    it, such as ``{"settle": True}``, ``{"collector": True}``, ``{"where": "child"}``; none where
    no option makes it, but a call in people's own code."""

    why: str
    options: Mapping[str, bool | str]


SETTLE = Rerun(
    "A run that is let go step by step at its end tells what was held, what waited for the"
    " collector and what malloc kept.",
    {"settle": True},
)
CAPTURE = Rerun(
    "A capture with the sampled engine shows who holds the memory.",
    {"engine": "sampled", "capture": True},
)
SMALLER_CAPTURE = Rerun(
    "capture() in the loop, after a few units, looks who holds the memory while there is less to"
    " search: the time was too short for all that was there. A document with fewer units, or a"
    " machine with less to do, helps as well.",
    {},
)
"""For where a capture ran out of its time: the same run would end the same way."""

EARLIER_CAPTURE = Rerun(
    "capture() in the loop looks who holds the memory while it is in use: when this run was looked"
    " through, nothing more was to be seen.",
    {},
)
COLLECT = Rerun(
    "A run with a full collection after each unit shows whether the memory only waits for the"
    " collector.",
    {"collector": True},
)
STREAM = Rerun(
    "The same document read as a stream shows what holding all of it costs.",
    {"strategy": "stream"},
)
CHILD = Rerun(
    "A run in a child process shows what the system gets back when it ends, and has no other"
    " program's memory in it.",
    {"where": "child"},
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One kind as one rule sees it.

    ``score`` says how well the evidence fits and decides, 0 (not at all) to 1. ``bytes`` is what
    the kind explains. ``evidence`` are sentences with numbers, ``disproof`` says what would
    disprove it, ``rerun`` which measurement would, if there is one. ``named`` and ``advice`` stand
    for the kind's title and fix where they would say more than was seen.
    """

    number: int
    score: float
    bytes: int
    evidence: tuple[str, ...]
    disproof: str
    rerun: Rerun | None = None
    named: str = ""
    advice: str = ""

    @property
    def kind(self) -> Kind:
        return KINDS[self.number]

    @property
    def title(self) -> str:
        """The kind in words, as far as it was seen."""
        return self.named or self.kind.title

    @property
    def fix(self) -> str:
        """What to do in general; empty where nothing is wrong."""
        return self.advice or self.kind.fix


def silent(number: int) -> Finding:
    """What a rule says that sees nothing of its kind."""
    return Finding(number, 0.0, 0, (), "")
