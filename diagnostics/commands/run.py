"""``page87 run``: run a loader or a script under the recorder."""

from __future__ import annotations

import argparse
import getpass
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from pathlib import Path

from diagnostics import Recorder
from diagnostics.commands.progress_bar import ProgressBar
from diagnostics.commands.show import report
from diagnostics.errors import PasswordError, UsageError
from diagnostics.launch.inline import run_plan
from diagnostics.launch.plan import Measures, RunPlan
from diagnostics.launch.supervisor import ChildRun
from diagnostics.launch.verdicts import exit_status
from diagnostics.loaders.base import LoadOptions
from diagnostics.recording import shelf
from diagnostics.recording.model import Outcome
from diagnostics.recording.places import new_path
from diagnostics.recording.reader import RecordingReader


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "run",
        help="run a loader on a document, or a script, and record it",
        description="Options come first; what follows a script belongs to the script.",
    )
    parser.add_argument(
        "--loader", metavar="NAME", help="a loader's name, or module:function (see docs)"
    )
    parser.add_argument("--engine", default="exact", help="heap engine: exact, none")
    parser.add_argument("--frames", type=int, default=1, help="frames of each stack, 1 to 25")
    parser.add_argument(
        "--lines",
        action="append",
        default=[],
        metavar="MODULE:FUNCTION",
        help="a function for the line profile (repeatable)",
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="the recording to write")
    parser.add_argument("--force", action="store_true", help="replace FILE if it exists")
    parser.add_argument("--child", action="store_true", help="run in a process of its own")
    parser.add_argument(
        "--password", metavar="TEXT", help="of the document; without it, it is asked for"
    )
    parser.add_argument("--encoding", help="of a text document")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--quiet", action="store_true", help="no progress and no summary")
    parser.add_argument("subject", metavar="DOC|SCRIPT.py")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="the script's own arguments")
    parser.set_defaults(main=main, parser=parser)


def main(chosen: argparse.Namespace) -> int:
    plan = _plan(_with_late_options(chosen))
    try:
        outcome = _run(plan, chosen)
    except PasswordError:
        if plan.options.password is not None or not sys.stdin.isatty():
            raise
        outcome = _run(_with_password(plan), chosen)
    if not chosen.quiet or chosen.json:
        report(plan.recording, as_json=chosen.json)
        if not chosen.json:
            print(f"\nRecording: {plan.recording}\nOpen it:   page87 app {plan.recording}")
    return exit_status(outcome)


def _is_script(chosen: argparse.Namespace) -> bool:
    return chosen.subject.endswith(".py") and chosen.loader is None


def _with_late_options(chosen: argparse.Namespace) -> argparse.Namespace:
    """A document has no arguments of its own, so options that follow it are ours as well."""
    if _is_script(chosen) or not chosen.arguments:
        return chosen
    document = chosen.subject
    chosen.parser.parse_args([*chosen.arguments, document], namespace=chosen)
    if chosen.subject != document or chosen.arguments:
        raise UsageError(
            f"There is more than one document: {document}, {chosen.subject}.",
            "A recording is of one run: page87 run [options] DOC",
        )
    return chosen


def _plan(chosen: argparse.Namespace) -> RunPlan:
    subject = Path(chosen.subject)
    is_script = _is_script(chosen)
    if chosen.output is not None and chosen.output.exists() and chosen.force:
        shelf.delete(chosen.output)
    return RunPlan(
        recording=chosen.output if chosen.output is not None else new_path(subject.stem),
        document=None if is_script else subject,
        loader=chosen.loader,
        options=LoadOptions(password=chosen.password, encoding=chosen.encoding),
        script=subject if is_script else None,
        arguments=tuple(chosen.arguments),
        measures=Measures(chosen.engine, chosen.frames, tuple(chosen.lines)),
    )


def _with_password(plan: RunPlan) -> RunPlan:
    options = replace(plan.options, password=getpass.getpass("Password of the document: "))
    return replace(plan, options=options)


def _wants_bar(chosen: argparse.Namespace) -> bool:
    return sys.stderr.isatty() and not chosen.quiet


def _run(plan: RunPlan, chosen: argparse.Namespace) -> Outcome:
    bar = ProgressBar(plan.recording, sys.stderr) if _wants_bar(chosen) else None
    return _in_child(plan, bar) if chosen.child else _here(plan, bar, chosen)


def _here(plan: RunPlan, bar: ProgressBar | None, chosen: argparse.Namespace) -> Outcome:
    """In this process, in the main thread: signals and asyncio behave as in a plain run."""

    def started(recorder: Recorder) -> None:
        if bar is not None:
            bar.start()

    def ending() -> None:
        if bar is not None:
            bar.stop()

    with _stdout_kept_clean(chosen.json):
        return run_plan(
            plan,
            on_started=started,
            on_ending=ending,
            is_workbench_thread=lambda thread: bar is not None and bar.thread == thread,
        )


@contextmanager
def _stdout_kept_clean(as_json: bool) -> Iterator[None]:
    """With --json standard output carries the JSON alone: what the code prints goes to stderr."""
    if as_json:
        with redirect_stdout(sys.stderr):
            yield
    else:
        yield


def _in_child(plan: RunPlan, bar: ProgressBar | None) -> Outcome:
    run = ChildRun(plan)
    run.start()
    if bar is not None:
        bar.start()
    try:
        run.wait()
    except KeyboardInterrupt:
        run.cancel()
        run.wait()
    finally:
        if bar is not None:
            bar.stop()
    if run.error is not None:
        raise run.error
    with RecordingReader(plan.recording) as reader:
        return reader.outcome()
