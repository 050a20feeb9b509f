"""What recording a run took, in words. Standard library only."""

from __future__ import annotations

from diagnostics.analysis.format import format_bytes, format_seconds
from diagnostics.analysis.summary_model import CostInfo


def cost_in_words(cost: CostInfo) -> str:
    """ "2.5 s of CPU and 25.3 MB of memory", with what nobody can measure of it."""
    parts = f"{format_seconds(cost.recorder_cpu_s)} of CPU"
    if cost.engine_bytes_max:
        parts += f" and {format_bytes(cost.engine_bytes_max)} of memory"
    if cost.engine == "exact":
        parts += ", beside the time that tracing takes at each block and the memory of snapshots"
    return parts
