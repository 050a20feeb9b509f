"""What recording a run took, in words. Standard library only."""

from __future__ import annotations

from collections.abc import Iterable

from diagnostics.analysis.format import counted, format_bytes, format_seconds
from diagnostics.analysis.summary_model import CostInfo, ProbeInfo


def cost_in_words(cost: CostInfo) -> str:
    """ "2.5 s of CPU and 25.3 MB of memory", with what nobody can measure of it."""
    if cost.recorder_cpu_s:
        parts = f"{format_seconds(cost.recorder_cpu_s)} of CPU"
    else:  # it is noted down each second and at the end
        parts = "CPU time that it did not come to note down"
    if cost.engine_bytes_max:
        parts += f" and {format_bytes(cost.engine_bytes_max)} of memory"
    if cost.engine == "exact":
        parts += ", beside the time that tracing takes at each block and the memory of snapshots"
    return parts


def losses(probes: Iterable[ProbeInfo], cost: CostInfo) -> list[str]:
    """What was lost, why, and what that means: a sentence for each probe that lost something."""
    # A pick stands for the distance to the next one, of a larger block for the block's own size.
    each = "their size"
    if cost.sampling_bytes:
        each = f"up to {format_bytes(cost.sampling_bytes)} for each, and by all of a larger block"
    return [
        _LOST.get(probe.name, _OTHERS).format(
            count=counted(probe.dropped, _NOUNS.get(probe.name, "measurement")),
            probe=probe.name,
            each=each,
        )
        for probe in probes
        if probe.dropped
    ]


_NOUNS = {"heap": "pick", "gc": "collection", "mappings": "reading", "recorder": "reading"}
_LOST = {
    "heap": (
        "{count} of the heap engine: blocks that were allocated where no stack can be read (without"
        " the GIL), or when its tables were full. No line has them, and what is told of live Python"
        " memory may be too low by {each}."
    ),
    "gc": (
        "{count} of the collector: more came between two ticks than are noted down, or one was"
        " going on when the recording began. Their pauses are in no sum."
    ),
    "mappings": (
        "{count} of mappings too large to be walked through page by page. The lens by address shows"
        " these as a whole only."
    ),
    "recorder": (
        "{count} that could not be stored; the log says why. The figures of those moments are"
        " missing, all others are there."
    ),
}
_OTHERS = "{count} of the probe {probe}. The figures of those moments are missing."
