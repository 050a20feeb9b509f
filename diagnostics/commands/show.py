"""``page87 show``: what a recording says."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TextIO

from diagnostics.analysis.summary import summarise, summary_json, summary_text
from diagnostics.recording.reader import RecordingReader


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("show", help="print what a recording says")
    parser.add_argument("recording", type=Path, metavar="FILE")
    parser.add_argument("--json", action="store_true", help="as JSON, see docs/json.md")
    parser.set_defaults(main=main)


def main(chosen: argparse.Namespace) -> int:
    report(chosen.recording, sys.stdout, as_json=chosen.json)
    return 0


def report(recording: Path, target: TextIO, *, as_json: bool) -> None:
    """Print the summary of ``recording`` on ``target``."""
    with RecordingReader(recording) as reader:
        summary = summarise(reader)
    if as_json:
        print(json.dumps(summary_json(summary), indent=2), file=target)
    else:
        print(summary_text(summary), file=target)
