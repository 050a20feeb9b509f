"""``page87 show``: what a recording says."""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from diagnostics.recording.reader import RecordingReader


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("show", help="print all that a recording says")
    parser.add_argument("recording", type=Path, metavar="FILE")
    parser.add_argument("--json", action="store_true", help="as JSON, see docs/json.md")
    parser.set_defaults(main=main)


def main(chosen: argparse.Namespace) -> int:
    report(chosen.recording, sys.stdout, as_json=chosen.json, details=True)
    return 0


def report(recording: Path, target: TextIO, *, as_json: bool, details: bool) -> None:
    """Print the summary of ``recording`` on ``target``; ``details`` is for people, JSON has all."""
    # Here, since the process of a run must not hold the analysis while it is measured.
    from diagnostics.analysis.json_text import json_text
    from diagnostics.analysis.summary import summarise, summary_json, summary_text

    with _no_collections():
        with RecordingReader(recording) as reader:
            summary = summarise(reader)
        if as_json:
            print(json_text(summary_json(summary)), file=target)
        else:
            print(summary_text(summary, details=details), file=target)


@contextmanager
def _no_collections() -> Iterator[None]:
    """Everything that a summary is made of stays until it is printed, and holds no cycles: the
    collector would go through a hundred thousand units again and again, for a third of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
