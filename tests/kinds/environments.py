"""Virtual environments for libraries, or versions of them, that only these tests need.

Each lies on top of the environment that runs the tests: what it does not hold itself comes from
there, so that making one costs seconds. It is made once and kept, as long as its requirements and
the interpreter stay the same.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import diagnostics

HERE = Path(__file__).parent
_DONE = "complete"


class NotInstallableError(Exception):
    """A library of an environment has no build for this Python, or cannot be fetched."""


def python_with(name: str, cache: Path) -> Path:
    """The interpreter of the environment that ``requirements-NAME.txt`` describes.

    Raises ``NotInstallableError`` with the reason where pip cannot make it.
    """
    requirements = HERE / f"requirements-{name}.txt"
    folder = cache / f"{name}-{_fingerprint(requirements)}"
    python = folder / "bin" / "python"
    if not (folder / _DONE).exists():
        shutil.rmtree(folder, ignore_errors=True)
        _called(sys.executable, "-m", "venv", str(folder))
        # Complete lists and --no-deps: what the tests' own environment has is not fetched again.
        wanted = ("--no-deps", "--only-binary", ":all:", "-r", str(requirements))
        pip = ("-m", "pip", "--disable-pip-version-check", "--quiet", "install")
        _called(str(python), *pip, *wanted)
        _lay_on_top(folder)
        (folder / _DONE).touch()
    return python


def _lay_on_top(folder: Path) -> None:
    """Let the environment fall back on the tests' own packages, and on the page87 under test."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    below = [Path(diagnostics.__file__).parents[1], Path(sysconfig.get_path("purelib"))]
    below.append(Path(sysconfig.get_path("platlib")))
    lines = "\n".join(dict.fromkeys(map(str, below)))
    path = folder / "lib" / version / "site-packages" / "tests-own-packages.pth"
    path.write_text(f"{lines}\n")


def _fingerprint(requirements: Path) -> str:
    basis = (requirements.read_text(), sys.version, sys.prefix, diagnostics.__file__)
    return hashlib.sha256("\n".join(basis).encode()).hexdigest()[:12]


def _called(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        errors = [line for line in said if line.startswith("ERROR")] or said
        raise NotInstallableError(errors[-1] if errors else "no reason given")
