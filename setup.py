"""The parts of the build that pyproject.toml cannot say.

The C cores (the sampled heap engine, the scan of a capture, the collector's callback) are optional,
and the wheel carries the workbench along.

The app lives at the top of the checkout (app.py, pages/, sample_docs/), where a Streamlit user
looks for it. In a wheel those names would land beside everybody's packages, so they travel inside
ours, as diagnostics/_workbench/.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).parent
WORKBENCH = ("app.py", "pages", "sample_docs", ".streamlit")
CORES = ("diagnostics.probes._heap", "diagnostics.probes._scan", "diagnostics.probes._pauses")


class BuildWithWorkbench(build_py):
    """Also copies the app into the package; an editable install uses the checkout's own."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        target = Path(self.build_lib) / "diagnostics" / "_workbench"
        target.mkdir(parents=True, exist_ok=True)
        for name in WORKBENCH:
            source = HERE / name
            if source.is_dir():
                ignore = shutil.ignore_patterns("__pycache__", "*.pyc")
                shutil.copytree(source, target / name, ignore=ignore, dirs_exist_ok=True)
            else:
                shutil.copy2(source, target / name)


setup(
    cmdclass={"build_py": BuildWithWorkbench},
    ext_modules=[
        Extension(
            name,
            [f"{name.replace('.', '/')}.c"],
            extra_compile_args=["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra"],
            libraries=["m"],
            depends=["diagnostics/probes/_arrays.h", "diagnostics/probes/_tables.h"],
            # Without a compiler the package installs all the same, and says at run time what it
            # lacks.
            optional=True,
        )
        for name in CORES
    ],
)
