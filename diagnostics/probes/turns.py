"""Several probes, one budget: who may measure now."""

from __future__ import annotations

from diagnostics.probes.base import Budget


class Turn:
    """One probe's place at a shared budget.

    The hooks of the probes are called in a fixed order, so the first would take every opportunity.
    A probe that measured last therefore lets one opportunity pass, for the others to take.
    """

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._spent_after_mine: int | None = None

    def has_come(self) -> bool:
        """Whether this probe may measure now; to be asked once for each opportunity."""
        if not self._budget.is_due():
            return False
        if self._spent_after_mine == self._budget.spent_ns:
            self._spent_after_mine = None  # passed once: nobody else wants it, or it is ours next
            return False
        return True

    def taken(self) -> None:
        """This probe has measured."""
        self._spent_after_mine = self._budget.spent_ns
