"""What a recording holds, as plain data.

Times are monotonic nanoseconds since the start of the recording, sizes are bytes, unit 0 means
outside any unit. These classes are the boundary: the writer takes them, the reader gives them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

UnitStatus = Literal["running", "finished", "failed", "left", "cancelled"]
"""``left``: the loop over ``units()`` was left early, by ``break`` or by an exception that was
handled outside of the loop; the iterator cannot tell which."""

OutcomeState = Literal["running", "finished", "raised", "exited", "cancelled", "killed", "lost"]
ProbeState = Literal["on", "off", "missing", "failed"]
LogLevel = Literal["info", "warning", "error"]
PeakMethod = Literal["kernel high-water mark", "sampled maximum"]
MappingKind = Literal["heap", "stack", "anonymous", "file-backed", "special"]
SettlementName = Literal["result released", "collection", "malloc_trim"]
CaptureReason = Literal["end of the run", "retention grew", "near the limit", "asked for", "signal"]
RootKind = Literal[
    "module", "frame", "thread", "class", "closure", "task", "exception", "unknown", ""
]
"""What keeps a holder chain's first object: ``unknown`` where no Python object refers to it (an
extension, or the interpreter itself), empty for an object that is no root."""

OLDEST_GENERATION = 2
"""The number of the collector's generation whose collections look at everything."""

OUT_OF_TIME = "the time for the search was up"
"""What the note of a capture says, among other things, that was cut off."""

IN_A_CYCLE = "a cycle of references"
"""The name of a root of the kind ``unknown`` that is none: what is left refers to itself in a
cycle, which the collector will find."""


@dataclass(frozen=True, slots=True)
class UnitRow:
    """One unit of work: a page, a chunk, a request."""

    index: int
    kind: str
    label: str
    start_ns: int
    end_ns: int | None = None
    status: UnitStatus = "running"
    error_type: str | None = None
    error_message: str | None = None
    bytes: int = 0
    characters: int = 0
    thread: str = ""


@dataclass(frozen=True, slots=True)
class UnitPeak:
    """The resident set around one unit: at its start, at its end, and its highest between."""

    index: int
    rss_start: int
    rss_end: int
    rss_peak: int
    method: PeakMethod


@dataclass(frozen=True, slots=True)
class UnitHeap:
    """What was allocated in one unit, as the sampled engine estimates it.

    ``born`` is everything that was ever allocated in it, ``peak`` the most of it that was alive at
    one time; the series "alive" tells what is alive of it when.
    """

    index: int
    born: int
    peak: int


_SITE_BITS = 24


def alive_id(unit: int, site: int) -> int:
    """The id of a pair in the series "alive": a birth unit and an allocation site."""
    return unit << _SITE_BITS | site


def unit_and_site(alive: int) -> tuple[int, int]:
    """The birth unit and the allocation site behind an id of the series "alive"."""
    return alive >> _SITE_BITS, alive & ((1 << _SITE_BITS) - 1)


@dataclass(frozen=True, slots=True)
class ProcessSample:
    """The process at one tick. ``uss`` and ``pss`` come at a slower pace and are None between."""

    t_ns: int
    rss: int
    uss: int | None
    pss: int | None
    minor_faults: int
    major_faults: int
    threads: int
    cpu_ns: int


@dataclass(frozen=True, slots=True)
class HeapTotal:
    """Live Python bytes as the heap engine counts them, and the engine's own memory beside it.

    ``t_ns`` is the moment of the count: other rows of the same tick have their own.
    """

    t_ns: int
    bytes: int
    engine_bytes: int


@dataclass(frozen=True, slots=True)
class GcEvent:
    """One collection worth its own row: generation 2, or a pause of more than 1 ms.

    ``own`` is true when a thread of the workbench triggered it. ``heap_before`` and ``heap_after``
    are the live Python bytes at its start and end, None where nobody counts them that fast.
    """

    t_ns: int
    pause_ns: int
    generation: int
    collected: int
    uncollectable: int
    unit: int
    own: bool = False
    heap_before: int | None = None
    heap_after: int | None = None


@dataclass(frozen=True, slots=True)
class GcSummary:
    """The collections of one generation in one tick that got no row of their own, added up.

    ``freed`` are the live Python bytes that they gave back together, None where nobody counts.
    """

    t_ns: int
    generation: int
    count: int
    pause_total_ns: int
    pause_max_ns: int
    collected: int
    uncollectable: int
    freed: int | None = None


@dataclass(frozen=True, slots=True)
class Frame:
    """One line of code in a stack. ``function`` is empty where it is not known."""

    file: str
    line: int
    function: str = ""


@dataclass(frozen=True, slots=True)
class Site:
    """A node in the tree of allocation stacks; ``parent`` is the node of the caller."""

    id: int
    parent: int | None
    file: str
    line: int
    function: str


@dataclass(frozen=True, slots=True)
class MappingRow:
    """A range of the process's addresses: the widest from ``start`` to before ``end`` that it had.

    ``name`` is the mapped file's path, or what the kernel calls the range, often nothing. A row
    with ``start`` and ``end`` 0 stands for all mappings of its kind without a row of their own.
    """

    id: int
    kind: MappingKind
    start: int
    end: int
    name: str


class MappingMemory(NamedTuple):
    """What a mapping takes, in bytes: the values of the series "mappings".

    ``anonymous`` is the part of ``rss`` that no file backs, ``size`` the addresses mapped.
    """

    rss: int
    pss: int
    anonymous: int
    swap: int
    size: int


BIN_BYTES = 1 << 16
"""The addresses that an id of the series "residency" stands for, from id × 65,536 on."""
BIN_PAGE_BYTES = 1 << 12
"""The pages in which the series "residency" counts, whatever pages the machine has."""


@dataclass(frozen=True, slots=True)
class LineRow:
    """One source line of a line-profiled function.

    ``rss`` is the resident set after the line when it ran last (bytes), ``increment`` what the
    line added over all its executions (bytes, may be negative). All three figures are None for a
    line that did not run.
    """

    function: str
    file: str
    line: int
    source: str
    rss: int | None
    increment: int | None
    hits: int | None


@dataclass(frozen=True, slots=True)
class LedgerReading:
    """What the ledger is made of at one tick: readings in bytes, None where there is none.

    ``anonymous``, ``file_backed`` and ``shared`` add up to ``rss``. ``python`` are the live blocks
    that the heap engine counts, ``python_small`` those of them that lie in pymalloc's ``arenas``.
    ``native_used`` and ``native_free`` are malloc's, with what Python takes from it inside.
    ``children`` is the memory of child processes; ``group_anonymous`` and ``group_cache`` that of
    the control group.
    """

    t_ns: int
    rss: int
    anonymous: int
    file_backed: int
    shared: int
    python: int | None
    python_small: int | None
    arenas: int | None
    native_used: int | None
    native_free: int | None
    children: int | None
    group_anonymous: int | None
    group_cache: int | None


@dataclass(frozen=True, slots=True)
class SettlementStep:
    """One step of letting go at the end of a run, and what it gave back.

    ``objects`` is how many objects the step freed as far as it can tell, ``uncollectable`` what a
    collection had to leave; ``python_before`` and ``python_after`` are live Python blocks in bytes.
    """

    position: int
    step: SettlementName
    t_ns: int
    rss_before: int
    rss_after: int
    python_before: int | None
    python_after: int | None
    objects: int
    uncollectable: int


@dataclass(frozen=True, slots=True)
class Capture:
    """One look at who holds what: when, why, how long it took and how far it came.

    ``objects`` is how many objects were looked at; where ``complete`` is false, ``note`` says what
    ended the search.
    """

    id: int
    t_ns: int
    unit: int
    reason: CaptureReason
    duration_ns: int
    objects: int
    complete: bool
    note: str


@dataclass(frozen=True, slots=True)
class Suspect:
    """Live blocks of one allocation stack (or, without one, of one type) born in old units.

    ``steadiness`` is the share of the units between ``first_unit`` and ``last_unit`` that left
    such blocks behind, 0 to 1.
    """

    capture: int
    rank: int
    site: int | None
    type: str
    bytes: int
    blocks: int
    first_unit: int
    last_unit: int
    units: int
    steadiness: float


@dataclass(frozen=True, slots=True)
class HeldObject:
    """One object of a capture's graph, or ``count`` alike ones that stand in the same place.

    ``name`` is what code calls it (a module's attribute, a frame's local), empty where it has no
    name of its own; ``file`` and ``line`` are where a frame, function or class stands. ``unit``
    and ``site`` tell its birth, where a sample knows it.
    """

    capture: int
    id: int
    type: str
    name: str
    size: int
    count: int
    root: RootKind
    unit: int | None
    site: int | None
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Reference:
    """``holder`` refers to ``held``, two ids; ``label`` says how: ``.pages``, ``[12]``."""

    capture: int
    holder: int
    held: int
    label: str


@dataclass(frozen=True, slots=True)
class ChainLink:
    """One object in a holder chain, from the root (position 0) down to the suspect's object.

    ``count`` is how many chains differ from this one in indexes only, itself included.
    ``likely_wrong`` marks the reference into this object: above it somebody has a reason to live,
    below it nobody has.
    """

    capture: int
    suspect: int
    chain: int
    position: int
    object: int
    count: int
    likely_wrong: bool


@dataclass(frozen=True, slots=True)
class LogEntry:
    t_ns: int
    level: LogLevel
    source: str
    message: str


@dataclass(frozen=True, slots=True)
class ProbeStatus:
    """How a probe fared and what it cost: CPU nanoseconds in any thread, and what it dropped."""

    name: str
    state: ProbeState
    detail: str = ""
    cost_ns: int = 0
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended. ``last_unit`` is the last unit that the recording knows of, 0 if none."""

    state: OutcomeState
    reason: str
    t_ns: int
    last_unit: int = 0
    exit_status: int | None = None
    signal: int | None = None
    error_type: str | None = None
    error_message: str | None = None
    traceback: str | None = None
