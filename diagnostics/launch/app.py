"""Starting the workbench, and what its command line tells the app."""

from __future__ import annotations

import importlib.metadata
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import tomllib
import urllib.error
import urllib.request
import webbrowser
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, Self
from urllib.parse import quote

from diagnostics.errors import Page87Error, UsageError
from diagnostics.launch.plan import RunPlan
from diagnostics.loaders.registry import all_loaders
from diagnostics.probes.targets import parse

_VARIABLE = "PAGE87_APP"
_FIRST_PORT = 8787
_TRIED_PORTS = 20
_GRACE_S = 10.0
HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class AppSettings:
    """What was named on the command line that opened the app, and only there.

    ``recordings`` are files outside of the folder of recordings that may be opened. ``loaders``
    ("module:function") and ``scripts`` are people's own code that the browser may start: a page of
    another program on this machine must not be able to make the app run code.
    """

    recordings: tuple[Path, ...] = ()
    loaders: tuple[str, ...] = ()
    scripts: tuple[Path, ...] = ()

    @classmethod
    def from_environment(cls) -> Self:
        """The settings that ``page87 app`` left for the server; none without it."""
        values = json.loads(os.environ.get(_VARIABLE, "{}"))
        return cls(
            recordings=tuple(Path(path) for path in values.get("recordings", ())),
            loaders=tuple(values.get("loaders", ())),
            scripts=tuple(Path(path) for path in values.get("scripts", ())),
        )

    def offered_loaders(self, suffix: str) -> list[str]:
        """The loaders that a form has for a document with this suffix: those that read the format
        and people's own; where there are none of either, all."""
        known = all_loaders()
        fitting = [name for name, loader in known.items() if suffix in loader.formats]
        return [*fitting, *self.loaders] or list(known)

    def to_environment(self) -> dict[str, str]:
        """The environment variable that carries the settings to the server."""
        return {_VARIABLE: json.dumps(asdict(self), default=str)}

    def check(self, plan: RunPlan) -> None:
        """Raise ``UsageError`` for a plan that would run code nobody named."""
        if plan.script is not None and plan.script not in self.scripts:
            raise UsageError(
                f"{plan.script} was not named when the app was opened, so it is not started.",
                f"Open the app with: page87 app --script {plan.script}",
            )
        if plan.loader and ":" in plan.loader and plan.loader not in self.loaders:
            raise UsageError(
                f"{plan.loader} was not named when the app was opened, so it is not started.",
                f"Open the app with: page87 app --loader {plan.loader}",
            )
        for function in plan.measures.lines:
            if not self._may_import(parse(function).module):
                raise UsageError(
                    f"{function} is not profiled: to reach it its module is imported, and that"
                    " runs code which was not named when the app was opened.",
                    "Open the app with --loader or --script for it, or use: page87 run --lines",
                )

    def _may_import(self, module: str) -> bool:
        """Whether importing ``module`` runs no code but that of installed packages.

        What merely lies in the current folder (a script that works as soon as it is imported) is
        people's own code.
        """
        named = {loader.partition(":")[0] for loader in self.loaders}
        named |= {"__main__", *(script.stem for script in self.scripts)}
        package = module.partition(".")[0]
        return (
            module in named
            or module in sys.modules
            or package in sys.stdlib_module_names
            or package in importlib.metadata.packages_distributions()
        )


def workbench_root() -> Path:
    """The folder of app.py: the checkout, or the copy that the wheel carries."""
    package = Path(__file__).parents[1]
    for root in (package.parent, package / "_workbench"):
        if (root / "app.py").is_file() and (root / "pages").is_dir():
            return root
    raise Page87Error(
        "The workbench's own pages are not installed.", "Install page87 again, from a whole wheel."
    )


def server_options(root: Path) -> dict[str, Any]:
    """The server's settings, from ``.streamlit/config.toml`` beside app.py: "section.name"."""
    config = tomllib.loads((root / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    return dict(_flat(config))


def _flat(table: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def run_app(settings: AppSettings, *, port: int | None, open_browser: bool) -> int:
    """Serve the workbench until it is interrupted; returns the server's exit status.

    Without ``port`` the first free one from 8787 on is taken.
    """
    root = workbench_root()
    chosen = port if port is not None else _free_port()
    if not _is_free(chosen):
        raise UsageError(f"Port {chosen} is in use.", "Name another one with --port.")
    if port is None and chosen != _FIRST_PORT:
        print(f"Port {_FIRST_PORT} is in use; taking {chosen}.", flush=True)  # noqa: T201
    flags = [
        f"--{name}={_as_flag(value)}"
        for name, value in server_options(root).items()
        if not isinstance(value, list)  # lists come from the file beside app.py
    ]
    command = [
        *(sys.executable, "-m", "streamlit", "run", str(root / "app.py")),
        *flags,
        f"--server.port={chosen}",
    ]
    url = f"http://{HOST}:{chosen}/"
    if settings.recordings:
        url += f"overview?recording={quote(os.fsencode(settings.recordings[0].name))}"
    signal.signal(signal.SIGTERM, _interrupt)  # else the server would be left behind
    server = subprocess.Popen(
        command, env={**os.environ, **settings.to_environment()}, stdout=subprocess.DEVNULL
    )
    threading.Thread(target=_announce, args=(url, open_browser), daemon=True).start()
    try:
        return server.wait()
    except KeyboardInterrupt:
        _end(server)
        return 0


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def _end(server: subprocess.Popen[bytes]) -> None:
    """End the server: asked first, killed when it takes too long or Ctrl-C comes again."""
    server.terminate()
    try:
        server.wait(_GRACE_S)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        server.kill()
        server.wait()


def _announce(url: str, open_browser: bool) -> None:
    health = url[: url.index("/", len("http://")) + 1] + "_stcore/health"
    while True:
        try:
            with urllib.request.urlopen(health, timeout=1):
                break
        except (urllib.error.URLError, TimeoutError):
            time.sleep(0.2)
    print(f"The workbench is at {url}  (Ctrl-C ends it)", flush=True)  # noqa: T201
    if open_browser:
        webbrowser.open(url)


def _as_flag(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _free_port() -> int:
    for port in range(_FIRST_PORT, _FIRST_PORT + _TRIED_PORTS):
        if _is_free(port):
            return port
    raise UsageError(
        f"No port from {_FIRST_PORT} to {_FIRST_PORT + _TRIED_PORTS - 1} is free.",
        "Name one with --port.",
    )


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
