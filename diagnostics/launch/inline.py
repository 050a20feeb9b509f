"""Run a plan in the calling thread, under a recorder."""

from __future__ import annotations

import importlib.metadata
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from diagnostics import Recorder, produced, units
from diagnostics.errors import LoaderError, Page87Error
from diagnostics.launch.plan import RunPlan
from diagnostics.launch.script import prepared_script
from diagnostics.loaders.base import Loader, OpenDocument
from diagnostics.loaders.registry import default_loader, find_loader
from diagnostics.recording.model import Outcome

Started = Callable[[Recorder], None]

_NO_UNITS = (
    "No unit was marked, so nothing can be told apart by page: yield the pages from the loader,"
    " or wrap its loop in units()."
)


def run_plan(
    plan: RunPlan,
    *,
    on_started: Started = lambda recorder: None,
    on_ending: Callable[[], None] = lambda: None,
    is_workbench_thread: Callable[[int], bool] = lambda thread: False,
) -> Outcome:
    """Run ``plan`` and write its recording.

    ``on_started`` gets the recorder when the input turned out to be right, before the first unit;
    ``on_ending`` is called when the loader's code has come to its end, before the recording is
    completed.

    Whatever the loader raises is the outcome, and is not raised again. Only what is wrong with the
    input itself, seen before the first unit (no such file, not a PDF, no such loader, a recording
    that exists), is raised, as ``Page87Error``, and leaves no recording behind.
    """
    run = _Run(plan, on_started, on_ending, is_workbench_thread)
    return run.script() if plan.script is not None else run.document()


class _Run:
    def __init__(
        self,
        plan: RunPlan,
        on_started: Started,
        on_ending: Callable[[], None],
        is_workbench_thread: Callable[[int], bool],
    ) -> None:
        self._plan = plan
        self._on_started = on_started
        self._on_ending = on_ending
        self._is_workbench_thread = is_workbench_thread

    def script(self) -> Outcome:
        plan = self._plan
        with prepared_script(plan.subject, plan.arguments) as run:
            recorder = self._recorder(plan.subject, {}, None)

            def start_and_run() -> None:
                recorder.describe({})
                self._on_started(recorder)
                run()

            # What the script has left in its own namespace stays: functions that it registered
            # for the interpreter's end, and threads, may need it.
            return self._record(recorder, start_and_run)

    def document(self) -> Outcome:
        plan = self._plan
        path = plan.subject
        with _told_as_input(plan.loader or path.name):
            loader = find_loader(plan.loader, path) if plan.loader else default_loader(path)
        about = {
            "name": path.name,
            "loader": loader.name,
            "format": path.suffix.lstrip(".").lower(),
        }
        recorder = self._recorder(path, about, loader)

        def load() -> object:
            # Inside the recording: opening is where some loaders take most of their memory.
            with _told_as_input(plan.loader or path.name):
                opened = loader.open(path, plan.options)
            document = stack.enter_context(opened)
            recorder.describe({"bytes": path.stat().st_size, "split": document.split})
            self._on_started(recorder)
            return _load(document, recorder)

        with ExitStack() as stack:  # the document stays open until the last picture was taken
            return self._record(recorder, load, stack.close)

    def _recorder(self, subject: Path, about: dict[str, Any], loader: Loader | None) -> Recorder:
        measures = self._plan.measures
        return Recorder(
            self._plan.recording,
            engine=measures.engine,
            frames=measures.frames,
            lines=measures.lines,
            settle=measures.settle,
            capture_signal=_free_signal(),
            name=subject.stem,
            command=self._plan.command,
            document=about,
            versions=_versions(loader),
            is_workbench_thread=self._is_workbench_thread,
        )

    def _record(
        self,
        recorder: Recorder,
        work: Callable[[], object],
        close: Callable[[], None] | None = None,
    ) -> Outcome:
        recorder.start()
        error: BaseException | None = None
        result: list[object] = []
        try:
            # What the work returns is kept until the recorder releases it: the last picture of
            # the heap shows what a caller would go on holding.
            result.append(work())
        except BaseException as raised:  # noqa: BLE001 - the outcome says it
            error = raised
        finally:
            self._on_ending()
        if error is None and not recorder.book.last_index:
            recorder.log("warning", "units", _NO_UNITS)

        def release() -> None:
            result.clear()
            _release_frames(error)
            if close is not None:
                close()

        holds_something = close is not None or error is not None
        outcome = recorder.stop(error, release=release if holds_something else None)
        if isinstance(error, SystemExit):
            _print_reason(error)
        if isinstance(error, Page87Error) and not outcome.last_unit:
            recorder.path.unlink(missing_ok=True)  # it holds nothing that ever ran
            raise error
        return outcome


def _free_signal() -> str | None:
    """The signal that takes a capture: SIGUSR1, where this thread can await it and nobody does."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGUSR1"):
        return None
    return "SIGUSR1" if signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL else None


def _release_frames(error: BaseException | None) -> None:
    """Empty the frames that an exception has left: their variables hold what was loaded so far."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


def _print_reason(error: SystemExit) -> None:
    """What ``sys.exit("reason")`` says, where the interpreter would say it."""
    if error.code is None or isinstance(error.code, int) or sys.stderr is None:
        return
    if not sys.stderr.closed:
        print(error.code, file=sys.stderr, flush=True)  # noqa: T201


@contextmanager
def _told_as_input(name: str) -> Iterator[None]:
    """Whatever people's own code raises before there is a recording is an error of the input."""
    try:
        yield
    except Page87Error:
        raise
    except (Exception, SystemExit) as error:
        raise LoaderError(
            f"{name} cannot be opened: {type(error).__name__}: {error}.",
            "Call the loader by itself, without page87, to see where it fails.",
        ) from error


def _load(document: OpenDocument, recorder: Recorder) -> object:
    """Read every unit, let each go before the next is read, and note what it produced."""
    pages = document.pages()  # people's function is called here, and may mark its own units
    if document.marks_own_units or recorder.book.last_index:
        return _own_units(pages)
    for page in units(pages, kind=document.unit_kind, total=document.unit_count):
        produced(characters=len(page.text), bytes=len(page.text.encode("utf-8", "replace")))
        del page
    return None


def _own_units(pages: Iterator[Any]) -> object:
    """Somebody's function that may mark units itself: its items are kept, as its caller would."""
    return list(pages)


def _versions(loader: Loader | None) -> dict[str, str]:
    if loader is None or loader.library is None:
        return {}
    try:
        return {loader.library: importlib.metadata.version(loader.library)}
    except importlib.metadata.PackageNotFoundError:
        return {}
