"""``page87 app``: open the workbench in a browser."""

from __future__ import annotations

import argparse
from pathlib import Path

from diagnostics.errors import UsageError
from diagnostics.launch.app import AppSettings, run_app
from diagnostics.loaders.registry import find_loader
from diagnostics.recording.reader import RecordingReader


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "app",
        help="open the workbench in a browser",
        description="Open the workbench in a browser. It listens on this machine only.",
    )
    parser.add_argument("recording", nargs="?", type=Path, help="a recording to open first")
    parser.add_argument(
        "--loader",
        action="append",
        default=[],
        metavar="MODULE:FUNCTION",
        help="a loader of yours that the browser may start (repeatable)",
    )
    parser.add_argument(
        "--script",
        action="append",
        default=[],
        type=Path,
        metavar="SCRIPT",
        help="a script of yours that the browser may start (repeatable)",
    )
    parser.add_argument("--port", type=int, help="the port (default: the first free from 8787)")
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser")
    parser.set_defaults(main=main)


def main(chosen: argparse.Namespace) -> int:
    if chosen.recording is not None:
        with RecordingReader(chosen.recording):
            pass  # what is wrong with it is said here, not in the browser
    for name in chosen.loader:
        find_loader(name, Path())
    for script in chosen.script:
        if not script.is_file():
            raise UsageError(f"There is no script {script}.", "Check the path.")
    settings = AppSettings(
        recordings=(chosen.recording.resolve(),) if chosen.recording is not None else (),
        loaders=tuple(chosen.loader),
        scripts=tuple(script.resolve() for script in chosen.script),
    )
    return run_app(settings, port=chosen.port, open_browser=not chosen.no_browser)
