"""What explains a run: the verdict, its suspects, the ledger and the settlement, drawn once.

Standard library only, so that a run on the command line ends without waiting for pandas.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TypedDict, cast

from diagnostics.analysis.format import format_bytes
from diagnostics.analysis.kinds import Judgement, judge
from diagnostics.analysis.ledger import LedgerParts, LiveLedger
from diagnostics.analysis.settlement import SettlementReport, last_settlement
from diagnostics.analysis.suspects import suspects_json
from diagnostics.analysis.verdict_text import verdict_json
from diagnostics.analysis.whole_run import WholeRun
from diagnostics.recording.model import SettlementName, SettlementStep
from diagnostics.recording.reader import RecordingReader

_NS = 1e9
_LITTLE = 0.01  # of the highest resident set: what a reading may be off without a word
_ONCE = frozenset({"peak", "open"})
"""Parts of the memory that a run takes once, so that bytes for each unit would mean nothing."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """``at_peak``, ``at_end`` and ``after_settlement`` split RSS where it was highest, before
    anything was let go of, and after all was; None without readings, the latter also where nothing
    was let go of at the run's end. ``missed_bytes`` is how far the resident set rose above
    ``at_peak`` where no reading came, 0 where that is little. ``settlement`` is the last one,
    None where there was none."""

    judgement: Judgement
    at_peak: LedgerParts | None
    at_end: LedgerParts | None
    after_settlement: LedgerParts | None
    settlement: SettlementReport | None
    missed_bytes: int = 0

    @property
    def missed(self) -> str:
        """A sentence about ``missed_bytes``, empty without them."""
        if not self.missed_bytes:
            return ""
        return f"The nearest reading is {format_bytes(self.missed_bytes)} below the peak."


class FindingInfo(TypedDict):
    """A kind as its rule sees it; ``bytes_share`` is a part of what the process took at most."""

    kind: int
    title: str
    confidence: float
    bytes: int
    bytes_share: float
    evidence: list[str]
    disproof: str


class RerunInfo(TypedDict):
    """A measurement that would decide, and the options of the run that makes it."""

    why: str
    options: dict[str, bool | str]


class VerdictInfo(FindingInfo):
    """``bytes_per_unit`` is None where no unit ended, and for what a run takes only once."""

    bytes_per_unit: int | None
    fix: list[str]
    stacked: list[FindingInfo]
    alternatives: list[FindingInfo]
    rerun: RerunInfo | None


class BirthUnitsInfo(TypedDict):
    first: int
    last: int
    count: int


class StackInfo(TypedDict):
    file: str
    line: int
    function: str


class HolderInfo(TypedDict):
    """One object of a holder chain. ``role`` is the kind of root, "holder", or "object"."""

    role: str
    type: str
    name: str
    file: str
    line: int | None


class SuspectInfo(TypedDict):
    """``stack`` begins with the outermost frame, ``holders`` with the root."""

    bytes: int
    blocks: int
    type: str
    birth_units: BirthUnitsInfo
    stack: list[StackInfo]
    holders: list[HolderInfo]


class LedgerMomentInfo(TypedDict):
    """RSS at one moment and its parts, in bytes; what is no part of it stands behind ``rest``."""

    t_s: float
    rss: int
    python: int | None
    pymalloc_empty: int | None
    native: int | None
    malloc_free: int | None
    recorder: int
    file_backed: int
    shared: int
    rest: int
    not_resident: int
    children: int | None
    group_anonymous: int | None
    group_cache: int | None
    note: str


class LedgerInfo(TypedDict):
    at_peak: LedgerMomentInfo | None
    at_end: LedgerMomentInfo | None
    after_settlement: LedgerMomentInfo | None


class SettlementInfo(TypedDict):
    step: SettlementName
    rss_before: int
    rss_after: int
    python_before: int | None
    python_after: int | None
    objects: int
    uncollectable: int


class ExplanationInfo(TypedDict):
    """The JSON form of an explanation; the names are the keys."""

    verdict: VerdictInfo
    suspects: list[SuspectInfo]
    ledger: LedgerInfo
    settlement: list[SettlementInfo]


def explain(
    reader: RecordingReader, run: WholeRun | None = None, rss_peak: int | None = None
) -> Explanation:
    """The explanation of the run in ``reader``, finished or not; ``run``, if given, has all of it,
    and ``rss_peak`` is the highest resident set that anybody read.

    Raises ``RecordingError`` on a damaged file.
    """
    if run is None:
        run = WholeRun.of(reader)
    ledger, after = LiveLedger(), None
    if run.steps and _settles(reader):
        ledger.feed(reader, until_ns=run.steps[0].t_ns)
        at_end = ledger.end()
        ledger.feed(reader)
        last = ledger.end()
        # Where the ledger could not be read any more, the last reading shows what was let go of.
        after = last if last is not None and last.t_ns >= run.steps[-1].t_ns else None
    else:
        ledger.feed(reader)
        at_end = ledger.end()
    peak = ledger.peak()
    missed = (rss_peak or 0) - peak.rss if peak is not None else 0
    return Explanation(
        judge(reader, run),
        peak,
        at_end,
        after,
        last_settlement(reader),
        missed if missed > _LITTLE * (rss_peak or 0) else 0,
    )


def _settles(reader: RecordingReader) -> bool:
    """Whether the run was to settle at its end."""
    settings = reader.meta().get("settings")
    return isinstance(settings, dict) and settings.get("settle") is True


def explanation_json(explanation: Explanation) -> ExplanationInfo:
    """The same as JSON can hold it; its keys are a contract (docs/json.md)."""
    judgement, settlement = explanation.judgement, explanation.settlement
    verdict = verdict_json(judgement) | {"bytes_per_unit": _bytes_per_unit(judgement)}
    return ExplanationInfo(
        verdict=cast(VerdictInfo, verdict),
        suspects=cast(list[SuspectInfo], suspects_json(judgement.suspects)),
        ledger=LedgerInfo(
            at_peak=_moment(explanation.at_peak, explanation.missed),
            at_end=_moment(explanation.at_end),
            after_settlement=_moment(explanation.after_settlement),
        ),
        settlement=[_step(step) for step in settlement.steps] if settlement else [],
    )


def _bytes_per_unit(judgement: Judgement) -> int | None:
    if judgement.units == 0 or judgement.kind.part in _ONCE:
        return None
    return round(judgement.main.bytes / judgement.units)


def _moment(parts: LedgerParts | None, missed: str = "") -> LedgerMomentInfo | None:
    if parts is None:
        return None
    sizes = asdict(parts)
    t_ns = sizes.pop("t_ns")
    sizes["note"] = " ".join(filter(None, (parts.note, missed)))
    return cast(LedgerMomentInfo, {"t_s": t_ns / _NS} | sizes)


def _step(step: SettlementStep) -> SettlementInfo:
    return SettlementInfo(
        step=step.step,
        rss_before=step.rss_before,
        rss_after=step.rss_after,
        python_before=step.python_before,
        python_after=step.python_after,
        objects=step.objects,
        uncollectable=step.uncollectable,
    )
