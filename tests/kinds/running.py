"""Runs loads as their users would, with Page 87 and without it; each once in a test session."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from threading import Lock

from documents import document
from environments import NotInstallableError, python_with
from loads import Load
from measures import Bare, Recorded

import diagnostics

_HERE = Path(__file__).parent
_LOADERS = _HERE / "loaders"
_STAND_IN = _HERE / "bare"
_UNDER_TEST = Path(diagnostics.__file__).parents[1]
_TIMEOUT_S = 120
_MOST_AT_A_TIME = 4


class Runner:
    """``kept`` outlives the session and takes the environments, ``folder`` takes the rest.

    Loads run side by side, as many as there are processors (up to four), in the order in which
    they were asked for. Both ways of running raise ``NotInstallableError`` where the load's library
    cannot be had.
    """

    def __init__(self, kept: Path, folder: Path) -> None:
        self._kept = kept
        self._folder = folder
        self._pool = ThreadPoolExecutor(min(len(os.sched_getaffinity(0)), _MOST_AT_A_TIME))
        self._making = Lock()  # of documents and environments
        self._not_made: dict[str, NotInstallableError] = {}
        self.begin_recorded = cache(partial(self._pool.submit, self._recorded))
        self.begin_bare = cache(partial(self._pool.submit, self._bare))

    def recorded(self, load: Load) -> Recorded:
        """The run with Page 87; it waits for its end."""
        return self.begin_recorded(load).result()

    def bare(self, load: Load) -> Bare:
        """The run without Page 87; it waits for its end."""
        return self.begin_bare(load).result()

    def close(self) -> None:
        """Wait for the loads that run; those that have not begun never will."""
        self._pool.shutdown(cancel_futures=True)

    def _recorded(self, load: Load) -> Recorded:
        recording = self._folder / f"{load.name}.p87"
        named = ("--loader", load.target) if ":" in load.target else (load.target,)
        options = ("-m", "diagnostics", "run", "--json", "-o", str(recording))
        output = self._called(load, _UNDER_TEST, *options, *named, *self._arguments(load))
        return Recorded(json.loads(output), recording)

    def _bare(self, load: Load) -> Bare:
        if load.measure is None:
            raise ValueError(f"{load.name} has nothing to measure")
        readings = self._folder / f"{load.name}.json"
        gauge = {"BARE_GAUGE": load.measure.gauge, "BARE_OUT": str(readings)}
        named = ("-m", "diagnostics", load.target) if ":" in load.target else (load.target,)
        self._called(load, _STAND_IN, *named, *self._arguments(load), **gauge)
        return Bare(**json.loads(readings.read_text()))

    def _arguments(self, load: Load) -> list[str]:
        if not load.document:
            return list(load.words)
        with self._making:
            return [str(document(load.document, self._folder)), *load.words]

    def _called(self, load: Load, first: Path, *words: str, **variables: str) -> str:
        """What the load's own Python prints; ``first`` is where it finds ``diagnostics``."""
        python = self._python(load)
        done = subprocess.run(
            [str(python), *words],
            cwd=_LOADERS,
            env={
                **os.environ,
                "PYTHONPATH": str(first),
                "PYTHONDONTWRITEBYTECODE": "1",
                **variables,
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _python(self, load: Load) -> Path:
        if not load.environment:
            return Path(sys.executable)
        with self._making:
            # Tried once: where nothing answers it takes long.
            if load.environment in self._not_made:
                raise self._not_made[load.environment]
            try:
                return python_with(load.environment, self._kept)
            except NotInstallableError as reason:
                self._not_made[load.environment] = reason
                raise
