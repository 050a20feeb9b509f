"""What is asserted of every load, with words for what differs."""

from __future__ import annotations

import json

import pytest
from loads import Load
from measures import Bare, Recorded

from diagnostics.analysis.ledger import PART_NAMES

_FIRST = 3  # suspects: who looks at the result looks at these
_WITHIN = 0.10
_LEDGER_SHARE, _LEDGER_BYTES = 0.03, 5_000_000


def the_kind_is_right(load: Load, recorded: Recorded) -> None:
    verdict = recorded.result["verdict"]
    assert verdict["kind"] == load.kind, verdict


def the_culprit_is_named(load: Load, recorded: Recorded) -> None:
    suspects = json.dumps(recorded.result["suspects"][:_FIRST], indent=1)
    verdict = json.dumps(recorded.result["verdict"], indent=1)
    assert [words for words in load.culprit if words not in suspects] == [], suspects
    assert [words for words in load.told if words not in verdict] == [], verdict


def the_bytes_are_right(load: Load, recorded: Recorded, bare: Bare) -> None:
    assert load.measure is not None
    expected = load.measure.bare(bare)
    assert expected > 0
    assert load.measure.recorded(recorded) == pytest.approx(expected, rel=_WITHIN)


def the_ledger_adds_up(recorded: Recorded) -> None:
    """At the end, to the resident set that another probe read; no part is negative.

    That one read it before and after: within 5 ms in between, malloc once gave 5 MB back by itself.
    """
    ledger = recorded.result["ledger"]["at_end"]
    parts = {name: ledger[name] for name in PART_NAMES if ledger[name] is not None}
    assert min(parts.values()) >= 0, parts
    around = recorded.resident_around(ledger["t_s"])
    least, most = min(around), max(around)
    allowed = max(_LEDGER_SHARE * most, _LEDGER_BYTES)
    assert least - allowed <= sum(parts.values()) <= most + allowed, (parts, around)
