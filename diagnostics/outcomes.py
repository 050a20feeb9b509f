"""From what ended a run to the outcome that the recording keeps."""

from __future__ import annotations

from diagnostics.errors import RunCancelled
from diagnostics.recording.model import Outcome
from diagnostics.recording.texts import message_of, storable, traceback_of


def outcome_of(error: BaseException | None, t_ns: int, last_unit: int) -> Outcome:
    """The outcome of a run that ended with ``error`` at ``t_ns``, or without one."""
    at = f" in unit {last_unit}" if last_unit else ""
    if error is None:
        return Outcome("finished", "The run came to its end.", t_ns, last_unit)
    if isinstance(error, RunCancelled):
        return Outcome("cancelled", f"Stopped by the user{at}.", t_ns, last_unit)
    if isinstance(error, KeyboardInterrupt):
        return Outcome("cancelled", f"Interrupted from the keyboard{at}.", t_ns, last_unit)
    if isinstance(error, SystemExit):
        # As the interpreter itself takes it: nothing is 0, a number is itself, all else is 1.
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
        if not -(2**31) <= status < 2**31:
            status = -1  # again as the interpreter: what is no C int
        if status == 0:
            return Outcome("finished", "The program ended itself.", t_ns, last_unit, exit_status=0)
        reason = f"The program ended itself with exit status {status}{at}."
        return Outcome("exited", reason, t_ns, last_unit, exit_status=status)
    name = storable(type(error).__name__)
    return Outcome(
        "raised",
        f"{name} left the loader{at}.",
        t_ns,
        last_unit,
        error_type=name,
        error_message=message_of(error),
        traceback=traceback_of(error),
    )
