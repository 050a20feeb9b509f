"""``page87 run``: run a loader or a script under the recorder."""

from __future__ import annotations

import argparse
import getpass
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from diagnostics import Recorder
from diagnostics.commands.progress_bar import ProgressBar
from diagnostics.commands.replacing import replaced
from diagnostics.commands.show import report
from diagnostics.commands.streams import Interrupts, Streams, interrupts, take_standard_output
from diagnostics.errors import PasswordError, RecordingError, UsageError
from diagnostics.launch.inline import run_plan
from diagnostics.launch.plan import Measures, RunPlan
from diagnostics.launch.supervisor import ChildRun
from diagnostics.launch.verdicts import exit_status, exit_status_of_child
from diagnostics.loaders.base import LoadOptions
from diagnostics.probes.heap import DEFAULT
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
    parser.add_argument(
        "--engine",
        default=DEFAULT,
        help="heap engine: sampled, exact or none (default: sampled where it was built)",
    )
    parser.add_argument(
        "--frames", type=int, help="frames kept of each stack, up to 64 (sampled) or 25 (exact)"
    )
    parser.add_argument(
        "--lines",
        action="append",
        default=[],
        metavar="MODULE:FUNCTION",
        help="a function for the line profile; script.py:function for a script (repeatable)",
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="the recording to write")
    parser.add_argument("--force", action="store_true", help="replace FILE if it is a recording")
    parser.add_argument("--child", action="store_true", help="run in a process of its own")
    parser.add_argument(
        "--password", metavar="TEXT", help="of the document; without it, it is asked for"
    )
    parser.add_argument("--encoding", help="of a text document")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument(
        "--verbose", action="store_true", help="print all that the recording says, as show does"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress and no summary")
    parser.add_argument("subject", metavar="DOC|SCRIPT.py")
    rest = parser.add_argument(
        "arguments", nargs=argparse.REMAINDER, help="the script's own arguments"
    )
    rest.required = False  # else argparse names it where only the document is missing
    parser.set_defaults(main=main, parser=parser)


def main(chosen: argparse.Namespace) -> int:
    plan = _plan(_with_late_options(chosen))
    with ExitStack() as stack:
        answer = stack.enter_context(take_standard_output()) if chosen.json else None
        streams = Streams()
        if chosen.force:
            stack.enter_context(replaced(plan.recording))
        hands_off = stack.enter_context(interrupts())
        try:
            status = _run_with_password(plan, chosen, hands_off)
        finally:
            streams.restore()
        if not plan.recording.exists():
            print(f"page87: {plan.recording} was deleted while it was written.", file=sys.stderr)
            return status
        if chosen.json or not chosen.quiet:
            report(
                plan.recording,
                answer or sys.stdout,
                as_json=chosen.json,
                details=chosen.verbose,
            )
        if not chosen.json and not chosen.quiet:
            print(f"Open it           page87 app {chosen.output or plan.recording}")
        return status


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
    recording = chosen.output if chosen.output is not None else new_path(subject.stem)
    return RunPlan(
        recording=recording.absolute(),  # the loader may change to another folder
        document=None if is_script else subject,
        loader=chosen.loader,
        options=LoadOptions(password=chosen.password, encoding=chosen.encoding),
        script=subject if is_script else None,
        arguments=tuple(chosen.arguments),
        measures=Measures(chosen.engine, chosen.frames, tuple(chosen.lines)),
    )


def _run_with_password(plan: RunPlan, chosen: argparse.Namespace, hands_off: Interrupts) -> int:
    """Run; where the document turns out to be encrypted, ask for the password and run again.

    Returns the exit status, as does all that follows.
    """
    try:
        return _run(plan, chosen, hands_off)
    except PasswordError:
        if plan.options.password is not None or not sys.stdin.isatty():
            raise
    try:
        password = getpass.getpass("Password of the document: ")
    except EOFError:
        raise PasswordError(
            f"{plan.subject.name} is encrypted, and no password was given.",
            "Give it when it is asked for, or with --password.",
        ) from None
    plan = replace(plan, options=replace(plan.options, password=password))
    return _run(plan, chosen, hands_off)


def _run(plan: RunPlan, chosen: argparse.Namespace, hands_off: Interrupts) -> int:
    wants_bar = sys.stderr.isatty() and not chosen.quiet
    bar = ProgressBar(plan.recording, sys.stderr) if wants_bar else None
    where = _in_child if chosen.child else _here
    return where(plan, bar, hands_off)


def _here(plan: RunPlan, bar: ProgressBar | None, hands_off: Interrupts) -> int:
    """In this process, in the main thread: signals and asyncio behave as in a plain run."""

    def started(recorder: Recorder) -> None:
        if bar is not None:
            bar.start()

    def ending() -> None:
        hands_off.hold()
        if bar is not None:
            bar.stop()

    outcome = run_plan(
        plan,
        on_started=started,
        on_ending=ending,
        is_workbench_thread=lambda thread: bar is not None and bar.thread == thread,
    )
    return exit_status(outcome)


def _in_child(plan: RunPlan, bar: ProgressBar | None, hands_off: Interrupts) -> int:
    run = ChildRun(plan)
    try:
        run.start()
        if bar is not None:
            bar.start()
        run.wait()
    except KeyboardInterrupt:
        hands_off.hold()
        run.cancel()
        run.wait()
    except RecordingError:
        if not run.deleted:
            raise
    finally:
        if bar is not None:
            bar.stop()
    if run.deleted and run.returncode is not None:
        return exit_status_of_child(run.returncode)
    if run.error is not None:
        raise run.error
    with RecordingReader(plan.recording) as reader:
        return exit_status(reader.outcome())
