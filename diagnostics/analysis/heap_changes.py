"""From the states of the heap to what changed between them."""

from __future__ import annotations

from collections import Counter

from diagnostics.recording.model import unit_and_site
from diagnostics.recording.reader import FrameChange


def site_changes(frame: FrameChange, known: dict[int, int]) -> dict[int, int]:
    """By how many bytes each site (or pair of unit and site) changed since the state in ``known``.

    ``known`` holds bytes by site and is brought up to date. The cost is that of what the frame
    names, not of what the heap holds.
    """
    gone = known.keys() - frame.entries.keys() if frame.key else set()
    changes: dict[int, int] = {}
    for site in [*frame.entries, *gone]:
        new = frame.entries[site][0] if site in frame.entries else 0
        change = new - known.pop(site, 0)
        if new:
            known[site] = new
        if change:
            changes[site] = change
    return changes


def unit_changes(frame: FrameChange, known: dict[int, int]) -> Counter[int]:
    """By how many bytes each birth unit changed with a frame of the series "alive".

    ``known`` holds bytes by pair of unit and site, and is brought up to date.
    """
    changes: Counter[int] = Counter()
    for pair, change in site_changes(frame, known).items():
        changes[unit_and_site(pair)[0]] += change
    return changes
