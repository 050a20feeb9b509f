"""From the states of the heap to what changed between them."""

from __future__ import annotations

from diagnostics.recording.reader import FrameState


def site_changes(frame: FrameState, known: dict[int, int]) -> dict[int, int]:
    """By how many bytes each site changed since the state in ``known``.

    ``known`` holds bytes by site and is brought up to date. The cost is that of what the frame
    names, not of what the heap holds.
    """
    sites = set(frame.changed)
    if len(sites) >= len(frame.values):  # perhaps a key frame: those do not name what is gone
        sites |= known.keys()
    changes: dict[int, int] = {}
    for site in sites:
        new = frame.values[site][0] if site in frame.values else 0
        change = new - known.pop(site, 0)
        if new:
            known[site] = new
        if change:
            changes[site] = change
    return changes
