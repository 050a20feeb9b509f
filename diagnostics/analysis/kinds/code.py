"""What stacks and files tell about the code that ran: which libraries, what they held, what was
released. Nothing here reads a file but the recording."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from diagnostics.analysis.heap_changes import site_changes
from diagnostics.analysis.kinds.evidence import KnownCode, ReleaseCall
from diagnostics.analysis.kinds.libraries import libraries, release_names
from diagnostics.analysis.kinds.readings import Span
from diagnostics.analysis.retention import Births
from diagnostics.analysis.sites import library_of
from diagnostics.analysis.stacks import OWN_CODE, Stacks, callers_first, is_own
from diagnostics.recording.blocks import Placed, placed
from diagnostics.recording.model import Frame, unit_and_site
from diagnostics.recording.reader import RecordingReader

_CALL = re.compile(r"\.\s*(\w+)\s*\(")
_LOOP = re.compile(r"\s*(async\s+)?(for|while)\b")
_FUNCTION = re.compile(r"\s*(async\s+)?(def|class)\b")
_USUAL_RELEASES = frozenset({"close", "release", "clear", "dispose", "free", "unload", "cleanup"})
_LIBRARY_BYTES = 100_000  # of code and classes; less is a module that came late
_LIBRARY_SHARE = 0.05  # of all code there is; less may be the error of the estimate
_NEAR_LINES = 12  # a loop's body; further away it is another thought


def packages(reader: RecordingReader, stacks: Stacks) -> tuple[str, ...]:
    """The libraries whose code is on a stack or whose files are mapped: those first through which
    most of the memory came that was alive when the heap was measured last, then by name."""
    size: Counter[str] = Counter()
    heap = reader.state_at("heap", reader.last_ns())
    for site, values in heap.values.items() if heap else ():
        if not stacks.is_import(site):
            size[stacks.library(site)] += values[0]
    mapped = {row.name for row in reader.mappings().values() if row.kind == "file-backed"}
    found = {library_of(file) for file in stacks.files | mapped}
    found -= {OWN_CODE, "standard library", "interpreter"}
    return tuple(sorted(found, key=lambda name: (-size[name], name)))


def import_spans(reader: RecordingReader, stacks: Stacks, births: Births) -> list[Span]:
    """When libraries were imported, in order and apart: while the units went on that did it.
    Outside of units, or where they are not known, from a look at the heap to the next one that
    found more code."""
    if not stacks.has_imports:
        return []
    units = births.units.rows
    first_ns = min((row.start_ns for row in units.values()), default=reader.last_ns())
    spans: list[Span] = []
    before_ns, known = -1, 0
    for t_ns, came in _imports(reader, stacks, by_unit=not births.gap):
        known += sum(came.values())
        for unit, size in came.items():
            if size < max(_LIBRARY_BYTES, _LIBRARY_SHARE * known):
                continue
            if unit is not None and unit in units:
                ended_ns = units[unit].end_ns
                spans.append((units[unit].start_ns, t_ns if ended_ns is None else ended_ns))
            else:
                came_before_units = unit == 0 and before_ns < first_ns
                spans.append((before_ns, min(first_ns, t_ns) if came_before_units else t_ns))
        before_ns = t_ns
    return _apart(spans)


def _imports(
    reader: RecordingReader, stacks: Stacks, *, by_unit: bool
) -> Iterator[tuple[int, Counter[int | None]]]:
    """At each look at the heap, by how many bytes of code each unit had more than before; all of
    it under None where the engine does not know birth units."""
    known: dict[int, int] = {}
    for frame in reader.changes("alive" if by_unit else "heap", after_ns=-1):
        came: Counter[int | None] = Counter()
        for key, change in site_changes(frame, known).items():
            unit, site = unit_and_site(key) if by_unit else (None, key)
            if stacks.is_import(site):
                came[unit] += change
        yield frame.t_ns, came


def _apart(spans: Iterable[Span]) -> list[Span]:
    """``spans`` in order; those that overlap are one."""
    apart: list[Span] = []
    for since_ns, until_ns in sorted(spans):
        if apart and since_ns <= apart[-1][1]:
            apart[-1] = apart[-1][0], max(apart[-1][1], until_ns)
        else:
            apart.append((since_ns, until_ns))
    return apart


def known_code(reader: RecordingReader, stacks: Stacks) -> tuple[KnownCode, ...]:
    """What the entries of ``libraries.json`` that name a file held, those with anything."""
    parts = {place: entry.file for place, entry in enumerate(libraries()) if entry.file}
    of_file = {
        file: frozenset(place for place, part in parts.items() if part in file)
        for file in stacks.files
    }
    matches: dict[int | None, frozenset[int]] = {None: frozenset()}
    for site, row, caller in callers_first(stacks.sites):
        matches[site] = of_file[row.file] | matches[caller]
    if not any(matches.values()):
        return ()
    now: Counter[int] = Counter()
    most: Counter[int] = Counter()
    widest: dict[int, int] = {}
    known: dict[int, int] = {}
    for frame in reader.changes("heap", after_ns=-1):
        for site, change in site_changes(frame, known).items():
            blocks = frame.entries.get(site, (0, 0))[1]
            for place in matches.get(site, frozenset()):
                now[place] += change
                most[place] = max(most[place], now[place])
                if blocks:
                    mean = known.get(site, 0) // blocks
                    widest[place] = max(widest.get(place, 0), mean)
    return tuple(
        KnownCode(place, most[place], widest.get(place, 0)) for place in parts if most[place] > 0
    )


def release_calls(
    reader: RecordingReader, stacks: Iterable[tuple[Frame, ...]]
) -> list[ReleaseCall]:
    """The calls that let go, in the loops of people's own code that led to these stacks.

    A call counts in the innermost loop on a stack, and in the functions that this loop calls: what
    follows the loop lets go of everything once, not of each unit.
    """
    names = _USUAL_RELEASES | release_names()
    profiled: dict[str, dict[int, str]] = {}
    for row in reader.line_profile():
        profiled.setdefault(row.file, {})[row.line] = row.source
    files: dict[str, dict[int, Placed]] = {}
    found: dict[tuple[str, int], ReleaseCall] = {}
    for stack in stacks:
        own = [frame for frame in stack if is_own(frame.file)]
        for file in {frame.file for frame in own} - files.keys():
            known = {**reader.source(file), **profiled.get(file, {})}
            files[file] = {line.number: line for line in placed(sorted(known.items()))}
        for frame, block in _in_the_loop(own, files):
            lines = files[frame.file]
            for line in lines.values():
                near = abs(line.number - frame.line) <= _NEAR_LINES
                runs = line.number == block or block in _blocks(line, lines)
                if near and runs and not names.isdisjoint(_CALL.findall(line.text)):
                    place = frame.file, line.number
                    found[place] = ReleaseCall(*place, line.text.strip())
    return [found[place] for place in sorted(found)]


def _in_the_loop(
    own: Sequence[Frame], files: Mapping[str, Mapping[int, Placed]]
) -> list[tuple[Frame, int]]:
    """What the innermost loop on a stack runs: the frames from there on, and for each the line that
    opens the loop or the function. Empty where no loop is seen."""
    blocks: list[tuple[Frame, int]] = []
    for frame in own:
        lines = files[frame.file]
        here = lines.get(frame.line)
        if here is None:
            continue
        around = [frame.line, *_blocks(here, lines)]
        loop = next((number for number in around if _LOOP.match(lines[number].text)), None)
        if loop is not None:
            blocks = [(frame, loop)]
        elif blocks and _FUNCTION.match(lines[around[-1]].text):
            blocks.append((frame, around[-1]))
    return blocks


def _blocks(line: Placed, lines: Mapping[int, Placed]) -> list[int]:
    """The numbers of the lines that open the blocks around a line, the innermost first, up to its
    function."""
    found: list[int] = []
    for number in reversed(line.around):
        found.append(number)
        if _FUNCTION.match(lines[number].text):
            break
    return found
