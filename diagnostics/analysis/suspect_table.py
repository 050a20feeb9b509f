"""The suspects of a capture as a table for the screen."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from diagnostics.analysis.format import format_bytes, span
from diagnostics.analysis.held_graph import ROOT_NAMES
from diagnostics.analysis.kinds.holding import blocks_in_words
from diagnostics.analysis.sites import site_label
from diagnostics.analysis.suspects import Held


def suspect_table(suspects: Sequence[Held], unit_kind: str = "page") -> pd.DataFrame:
    """One row a suspect, in their order: ``alive``, ``share`` (of all suspects' bytes, per cent),
    ``what``, ``born in``, ``steadiness`` (per cent), ``allocated in``, ``held by``."""
    total = sum(suspect.bytes for suspect in suspects) or 1
    return pd.DataFrame(
        [
            (
                format_bytes(suspect.bytes),
                100 * suspect.bytes / total,
                blocks_in_words(suspect),
                span(unit_kind, suspect.first_unit, suspect.last_unit),
                100 * suspect.steadiness,
                _allocated_in(suspect),
                _held_by(suspect),
            )
            for suspect in suspects
        ],
        columns=["alive", "share", "what", "born in", "steadiness", "allocated in", "held by"],
    )


def _allocated_in(suspect: Held) -> str:
    frame = suspect.own_frame
    return "not known" if frame is None else site_label(frame.file, frame.line, frame.function)


def _held_by(suspect: Held) -> str:
    if not suspect.chains:
        return "not found"
    chain = suspect.chains[0][0]
    root = chain[0]
    if root.root == "unknown":
        return root.name or ROOT_NAMES["unknown"]
    name = chain[1].name or chain[1].label.lstrip(".") if len(chain) > 1 else ""
    place = f"{ROOT_NAMES[root.root]} {root.name.rpartition('.')[2]}".rstrip()
    return f"{name} of {place}" if name else place
