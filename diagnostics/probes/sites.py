"""Gives allocation stacks their sites in the recording, and the small ones one site together."""

from __future__ import annotations

from collections.abc import Iterable

from diagnostics.probes.grouping import Stack, StackSum
from diagnostics.probes.source import SourceIndex
from diagnostics.recording.frames import Values
from diagnostics.recording.model import Frame
from diagnostics.recording.writer import RecordingWriter

OTHER = 0
"""The site id under which small stacks are added up; no row in ``sites`` has it."""

_OWN_SITE_BYTES = 8 * 1024
_OWN_SITE_SHARE = 0.001


class SiteBook:
    """Knows the site of each stack that was ever large enough to have one. For one thread."""

    def __init__(self) -> None:
        self._sites: dict[Stack, int] = {}
        self._source = SourceIndex()
        self._shown: set[tuple[str, int]] = set()

    def state(self, writer: RecordingWriter, sums: Iterable[StackSum]) -> dict[int, Values]:
        """Site id -> (bytes, blocks).

        A stack gets a site when it holds 8 KiB or 0.1 % of the total, and keeps it: a series must
        not end because it shrank.
        """
        sums = list(sums)
        enough = min(_OWN_SITE_BYTES, _OWN_SITE_SHARE * sum(size for _stack, size, _blocks in sums))
        state: dict[int, Values] = {}
        for stack, size, blocks in sums:
            site = self._sites.get(stack)
            if site is None and size >= enough:
                site = self._sites[stack] = self._new(writer, stack)
            site = OTHER if site is None else site
            had_bytes, had_blocks = state.get(site, (0, 0))
            state[site] = (had_bytes + size, had_blocks + blocks)
        return state

    def _new(self, writer: RecordingWriter, stack: Stack) -> int:
        for file, line in stack:
            if (file, line) not in self._shown:
                self._shown.add((file, line))
                writer.put_source(file, self._source.contexts(file, [line]))
        return writer.site(
            Frame(file, line, self._source.function(file, line)) for file, line in reversed(stack)
        )
