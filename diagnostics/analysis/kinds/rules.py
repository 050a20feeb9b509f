"""All rules, one a kind."""

from __future__ import annotations

from collections.abc import Callable

from diagnostics.analysis.kinds.evidence import Evidence
from diagnostics.analysis.kinds.finding import Finding
from diagnostics.analysis.kinds.rules_bounds import bounded_cache, queue_without_backpressure
from diagnostics.analysis.kinds.rules_document import (
    one_unit_peak,
    phantom_dimensions,
    whole_document,
)
from diagnostics.analysis.kinds.rules_held import (
    exception_pins_frames,
    per_unit_cache,
    registry,
    release_without_effect,
    small_value_pins,
)
from diagnostics.analysis.kinds.rules_native import (
    model_caches,
    native_cache,
    native_handles,
    somebody_elses,
)
from diagnostics.analysis.kinds.rules_unheld import (
    arenas_pinned,
    cycles_waiting,
    freed_and_pinned,
    freed_and_returnable,
    missing_decref,
)

Rule = Callable[[Evidence], Finding]

RULES: dict[int, Rule] = {
    1: per_unit_cache,
    2: release_without_effect,
    3: small_value_pins,
    4: native_handles,
    5: native_cache,
    6: missing_decref,
    7: cycles_waiting,
    8: freed_and_returnable,
    9: freed_and_pinned,
    10: arenas_pinned,
    11: exception_pins_frames,
    12: registry,
    13: bounded_cache,
    14: one_unit_peak,
    15: whole_document,
    16: phantom_dimensions,
    17: somebody_elses,
    18: queue_without_backpressure,
    19: model_caches,
}
"""The rules by the number of their kind."""
