"""From an outcome to an exit status, and from a dead child to an outcome."""

from __future__ import annotations

import signal

from diagnostics.recording.model import Outcome, OutcomeState

_STATUS: dict[OutcomeState, int] = {
    "finished": 0,
    "running": 0,
    "raised": 3,
    "exited": 3,
    "killed": 4,
    "lost": 4,
    "cancelled": 130,
}


def exit_status(outcome: Outcome) -> int:
    """The exit status of the command line: 0 finished, 3 raised, 4 killed, 130 cancelled."""
    return _STATUS[outcome.state]


def is_of_a_run(returncode: int) -> bool:
    """Whether a child with this status came as far as to record."""
    return returncode in _STATUS.values()


def exit_status_of_child(returncode: int) -> int:
    """The exit status for a child whose recording is gone: its own, or 4 if a signal killed it."""
    return returncode if returncode >= 0 else _STATUS["killed"]


def outcome_of_death(returncode: int, last: Outcome, *, cancelled: bool) -> Outcome:
    """How a child ended that left no outcome: ``returncode`` as ``subprocess`` gives it.

    ``last`` is what the recording itself knows: its last unit, and the time of its last tick.
    """
    name = signal_name(-returncode) if returncode < 0 else f"exit status {returncode}"
    signal_number = -returncode if returncode < 0 else None
    status = returncode if returncode >= 0 else None
    if cancelled:
        state: OutcomeState = "cancelled"
        reason = f"Stopped by the user; the process did not end by itself ({name})."
    elif returncode < 0:
        state, reason = "killed", f"Killed by {name}."
    else:
        state, reason = "exited", f"The process left with {name} and said nothing."
    if last.last_unit:
        reason += f" The last unit it recorded is {last.last_unit}."
    return Outcome(
        state, reason, last.t_ns, last.last_unit, exit_status=status, signal=signal_number
    )


def signal_name(number: int) -> str:
    """ "SIGKILL" for 9."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
