"""The process's mappings: what the kernel keeps resident, and at which addresses."""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from diagnostics.probes.base import BaseProbe, Budget, ProbeMissingError, Session
from diagnostics.recording.model import (
    BIN_BYTES,
    BIN_PAGE_BYTES,
    MappingKind,
    MappingMemory,
    MappingRow,
)
from diagnostics.recording.writer import RecordingWriter

_SMAPS = Path("/proc/self/smaps")
_PAGEMAP = Path("/proc/self/pagemap")

_SHARE = 0.005
_OWN_ROWS = 64
_WITH_BINS = 8
_MOST_BIN_BYTES = 4 << 30  # 65,536 bins: a reserved range of terabytes must not be walked through


class MappingProbe(BaseProbe):
    """The series "mappings" and "residency", every ``every_s`` seconds at most, and at the end.

    The pace slows down where readings would take more than 0.5 % of the time. ``dropped`` counts,
    at each reading, the mappings too large for their pages to be read.
    """

    name = "mappings"

    def __init__(self, every_s: float = 2.0) -> None:
        super().__init__()
        self._every_ns = int(every_s * 1e9)
        self._next_ns = 0
        self._budget = Budget(_SHARE)
        self._book = MappingBook(_OWN_ROWS)
        self._has_bins = True

    def start(self, session: Session) -> None:
        super().start(session)
        try:
            with _SMAPS.open("rb") as smaps:
                smaps.read(1)
        except OSError as error:
            raise ProbeMissingError(f"{_SMAPS} cannot be read ({error.strerror})") from error
        self.detail = (
            f"from {_SMAPS}; the largest {_OWN_ROWS} by themselves, the rest by kind; pages of the"
            f" largest {_WITH_BINS}, as far as they lie in {_MOST_BIN_BYTES >> 30} GiB of addresses"
        )
        try:
            _PAGEMAP.open("rb").close()
        except OSError as error:
            self._has_bins = False
            self.detail += f"; but {_PAGEMAP} cannot be read ({error.strerror})"

    def tick(self, writer: RecordingWriter, t_ns: int) -> None:
        if t_ns >= self._next_ns and self._budget.is_due():
            self._next_ns = t_ns + self._every_ns
            self._read(writer, t_ns)

    def finish(self, writer: RecordingWriter, t_ns: int) -> None:
        self._read(writer, t_ns)

    def _read(self, writer: RecordingWriter, t_ns: int) -> None:
        # Reading and encoding: both grow with the process, and the budget is for the whole.
        with self._budget.measured():
            with _SMAPS.open("rb") as smaps:
                found = group(ranges(smaps))
            rows, state = self._book.enter(found)
            writer.put_mappings(rows)
            unit = self.session.current_unit()
            writer.add_frame("mappings", t_ns, unit, state)
            if self._has_bins:
                chosen = self._within_reach(largest_writable(found, _WITH_BINS))
                writer.add_frame("residency", t_ns, unit, resident_bins(chosen))

    def _within_reach(self, mappings: Sequence[Mapped]) -> list[Mapped]:
        """Those that fit together into what one reading may walk through, the largest first."""
        left = _MOST_BIN_BYTES
        chosen: list[Mapped] = []
        for mapping in mappings:
            if mapping.end - mapping.start <= left:
                left -= mapping.end - mapping.start
                chosen.append(mapping)
        self.dropped += len(mappings) - len(chosen)
        return chosen


@dataclass(slots=True)
class Mapped:
    """One mapping as it stands. ``memory`` holds the fields of ``MappingMemory``, in bytes."""

    kind: MappingKind
    name: str
    start: int
    end: int
    access: str
    """What may be done with it: "rw-p", "r-xp"; of a group the first one's."""
    memory: list[int] = field(default_factory=lambda: [0] * len(MappingMemory._fields))
    id: int = 0
    """Its number in the recording, 0 as long as it has none."""

    @property
    def rss(self) -> int:
        return self.memory[0]


# The first five characters tell the fields apart: "Pss: " from "Pss_D", "Swap:" from "SwapP".
_FIELDS = {
    line[:5]: place
    for place, line in enumerate((b"Rss: ", b"Pss: ", b"Anonymous:", b"Swap:", b"Size:"))
}
_KERNEL = 1 << 63  # the upper half of the addresses; [vsyscall] lies there
_UPPER_A, _UPPER_Z = ord("A"), ord("Z")


def ranges(smaps: Iterable[bytes]) -> Iterator[Mapped]:
    """The ranges in the lines of an smaps file, in order of address."""
    found: Mapped | None = None
    for line in smaps:
        place = _FIELDS.get(line[:5])
        if place is not None:
            if found is not None:
                found.memory[place] = int(line.split()[1]) * 1024
        elif not _UPPER_A <= line[0] <= _UPPER_Z:  # an address: hexadecimal, in small letters
            if found is not None:
                yield found
            found = _header(line)
    if found is not None:
        yield found


def group(found: Iterable[Mapped]) -> list[Mapped]:
    """Ranges that belong together as one mapping.

    A file's sections make one mapping; so do anonymous neighbours with the same access rights.
    Left out are reserved addresses that may not be touched and hold nothing, and the kernel's own.
    """
    mappings: list[Mapped] = []
    for new in found:
        reserved = new.access.startswith("---") and not any(new.memory[:-1])
        if reserved or new.start >= _KERNEL:
            continue
        last = mappings[-1] if mappings else None
        if last is not None and _belongs_to(last, new):
            last.end = new.end
            last.memory = [a + b for a, b in zip(last.memory, new.memory, strict=True)]
        else:
            mappings.append(new)
    return mappings


def largest_writable(mappings: Iterable[Mapped], most: int) -> list[Mapped]:
    """The ``most`` heap and anonymous mappings that may be written to, by resident bytes."""
    writable = [
        m for m in mappings if m.rss and m.kind in ("heap", "anonymous") and "w" in m.access
    ]
    return sorted(writable, key=lambda mapping: -mapping.rss)[:most]


class MappingBook:
    """Gives mappings their ids, and keeps the smaller ones together.

    A mapping is the one of the reading before when kind and name are the same and it begins at the
    same address, or ends there: the kernel lets anonymous mappings grow downwards. The largest
    ``own_rows`` of a reading have ids of their own, and keep them as long as they are there.
    """

    def __init__(self, own_rows: int) -> None:
        self._own_rows = own_rows
        self._last_id = 0
        self._rest: dict[MappingKind, int] = {}
        self._rows: dict[int, MappingRow] = {}
        self._before: list[Mapped] = []

    def enter(self, found: Sequence[Mapped]) -> tuple[list[MappingRow], dict[int, MappingMemory]]:
        """The rows that are new or wider than before, and the state: id -> memory."""
        self._recognise(found)
        by_size = sorted(found, key=lambda mapping: -mapping.rss)
        own, small = by_size[: self._own_rows], by_size[self._own_rows :]
        for mapping in own:
            mapping.id = mapping.id or self._new_id()
        state = {mapping.id: MappingMemory(*mapping.memory) for mapping in own}
        changed = self._widened([mapping for mapping in found if mapping.id])

        rest: defaultdict[MappingKind, list[list[int]]] = defaultdict(list)
        for mapping in small:
            rest[mapping.kind].append(mapping.memory)
        for kind, memories in rest.items():
            if kind not in self._rest:
                self._rest[kind] = self._new_id()
                changed.append(MappingRow(self._rest[kind], kind, 0, 0, ""))
            state[self._rest[kind]] = MappingMemory(*map(sum, zip(*memories, strict=True)))
        return changed, state

    def _recognise(self, found: Sequence[Mapped]) -> None:
        """Give the mappings that were there at the reading before their ids again."""
        starts = {(m.kind, m.name, m.start): m.id for m in self._before}
        ends = {(m.kind, m.name, m.end): m.id for m in self._before}
        for mapping in found:
            mapping.id = starts.get((mapping.kind, mapping.name, mapping.start), 0)
        taken = {mapping.id for mapping in found}
        for mapping in found:
            at_end = ends.get((mapping.kind, mapping.name, mapping.end), 0)
            if not mapping.id and at_end not in taken:
                mapping.id = at_end

    def _widened(self, known: list[Mapped]) -> list[MappingRow]:
        """The rows of ``known`` that are not as they were."""
        rows: dict[int, MappingRow] = {}
        for new in known:
            start, end = new.start, new.end
            if new.id in self._rows:
                old = self._rows[new.id]
                start, end = min(start, old.start), max(end, old.end)
            rows[new.id] = MappingRow(new.id, new.kind, start, end, new.name)
        changed = [row for row in rows.values() if row != self._rows.get(row.id)]
        self._rows, self._before = rows, known
        return changed

    def _new_id(self) -> int:
        self._last_id += 1
        return self._last_id


# A page's entry in the pagemap is a number of eight bytes whose highest bit says "present".
_ENTRY_BYTES = 8
_HIGHEST_BYTE = 7 if sys.byteorder == "little" else 0
_PRESENT = bytes(byte >> 7 for byte in range(256))
_CHUNK_BINS = 256
_COUNTS = tuple((pages,) for pages in range(BIN_BYTES // BIN_PAGE_BYTES + 1))


def resident_bins(mappings: Iterable[Mapped]) -> dict[int, tuple[int]]:
    """The pages resident in each bin that a mapping touches: bin -> (pages,), without the zeros.

    A bin at the edge of a mapping counts its neighbour's pages too: it is a range of addresses.
    """
    page = os.sysconf("SC_PAGE_SIZE")
    entries, weight = BIN_BYTES // page, page // BIN_PAGE_BYTES
    bins: dict[int, tuple[int]] = {}
    with _PAGEMAP.open("rb", buffering=0) as pagemap:
        for mapping in mappings:
            end = -(-mapping.end // BIN_BYTES)
            for first in range(mapping.start // BIN_BYTES, end, _CHUNK_BINS):
                chunk = range(first, min(first + _CHUNK_BINS, end))
                at, length = first * entries * _ENTRY_BYTES, len(chunk) * entries * _ENTRY_BYTES
                found = os.pread(pagemap.fileno(), length, at)
                present = found[_HIGHEST_BYTE::_ENTRY_BYTES].translate(_PRESENT)
                resident = present.count(1)
                if resident == len(chunk) * entries:  # the common case, in one step
                    bins.update(dict.fromkeys(chunk, _COUNTS[-1]))
                elif resident:
                    for number, place in enumerate(range(0, len(present), entries), start=first):
                        pages = present.count(1, place, place + entries)
                        if pages:
                            bins[number] = _COUNTS[pages * weight]
    return bins


def _header(line: bytes) -> Mapped:
    """The mapping that a line "start-end access offset device inode name" announces."""
    # A path may hold spaces, so only the five fields before it are split off.
    fields = line.split(None, 5)
    start, _, end = fields[0].partition(b"-")
    path = fields[5].rstrip(b"\n").decode("utf-8", "backslashreplace") if len(fields) > 5 else ""
    kind, name = _kind_and_name(path)
    return Mapped(kind, name, int(start, 16), int(end, 16), fields[1].decode("ascii"))


def _kind_and_name(path: str) -> tuple[MappingKind, str]:
    if path == "[heap]":
        return "heap", ""
    if path.startswith("[stack"):
        return "stack", ""
    if path.startswith("[anon"):  # "[anon:…]", "[anon_shmem:…]": the program gave it a name
        return "anonymous", path.partition(":")[2].rstrip("]").strip()
    if path.startswith(("/dev/zero", "/SYSV", "/memfd:")):  # shared memory that no file backs
        return "anonymous", "shared memory"
    if path.startswith("/"):
        return "file-backed", path
    return ("special", path) if path else ("anonymous", "")


def _belongs_to(last: Mapped, new: Mapped) -> bool:
    if (last.kind, last.name) != (new.kind, new.name):
        return False
    if new.kind == "file-backed":
        return True
    return new.kind == "anonymous" and last.end == new.start and last.access == new.access
