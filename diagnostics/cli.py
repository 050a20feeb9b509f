"""The command line: ``page87 app | run | show | list``."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence

from diagnostics.errors import Page87Error
from diagnostics.version import __version__

WRONG_INPUT = 2
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status, see docs/command-line.md."""
    try:
        return _main(arguments)
    except KeyboardInterrupt:  # before a run began, or where there was none
        print("page87: interrupted", file=sys.stderr)
        return INTERRUPTED


def _main(arguments: Sequence[str] | None) -> int:
    # Here, since this takes a third of a second, in which Ctrl-C may come as well.
    from diagnostics.commands import app, list_, run, show

    parser = argparse.ArgumentParser(
        prog="page87",
        description="Which page of the document does the memory belong to?",
    )
    parser.add_argument("--version", action="version", version=f"page87 {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in (app, run, show, list_):
        command.add(commands)
    chosen = parser.parse_args(arguments)
    _print_anything()
    try:
        status: int = chosen.main(chosen)
        sys.stdout.flush()
    except Page87Error as error:
        print(f"page87: {error.message}", file=sys.stderr)
        if error.next_step:
            print(f"        {error.next_step}", file=sys.stderr)
        return WRONG_INPUT
    except BrokenPipeError:
        # Whoever read our output has had enough; Python must not complain about it at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return status


def _print_anything() -> None:
    """Names of files can hold what the terminal's encoding does not; that must stop nothing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
