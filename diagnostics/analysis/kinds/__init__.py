"""The verdict: which kind of memory trouble a recording shows, if any.

``judge(reader)`` draws the evidence (``drawing``), asks every rule (``rules``) and ranks what they
say (``verdict``).
"""

from diagnostics.analysis.kinds.evidence import Evidence
from diagnostics.analysis.kinds.finding import Finding, Rerun
from diagnostics.analysis.kinds.table import KINDS, Kind
from diagnostics.analysis.kinds.verdict import Judgement, judge, judge_evidence

__all__ = ["KINDS", "Evidence", "Finding", "Judgement", "Kind", "Rerun", "judge", "judge_evidence"]
