"""What the workbench allocates is told from what the run allocates."""

import json
import os
import tracemalloc
from pathlib import Path

import pytest

import diagnostics
from diagnostics.probes.own import is_own_file, is_own_stack

PACKAGE = Path(diagnostics.__file__).parent
RECORDER = (str(PACKAGE / "recorder.py"), 10)
LOADER = (str(PACKAGE / "loaders" / "pdf.py"), 10)
UNITS = (str(PACKAGE / "units.py"), 10)
LAUNCH = (str(PACKAGE / "launch" / "child.py"), 10)
JSON = (json.__file__, 10)
FROZEN = ("<frozen importlib._bootstrap_external>", 10)
PDFMINER = ("/venv/lib/python3.11/site-packages/pdfminer/layout.py", 10)
STARLETTE = ("/venv/lib/python3.11/site-packages/starlette/responses.py", 10)


@pytest.mark.parametrize(
    ("path", "is_own"),
    [
        (RECORDER[0], True),
        (str(PACKAGE / "recording" / "writer.py"), True),
        (LOADER[0], False),
        (UNITS[0], False),
        (tracemalloc.__file__, True),
        (str(Path(os.__file__).parent / "sqlite3" / "__init__.py"), True),
        (json.__file__, False),
        (PDFMINER[0], False),
        ("/venv/lib/python3.12/site-packages/psutil/_pslinux.py", True),
        ("/venv/lib/python3.12/site-packages/memory_profiler.py", True),
        (str(PACKAGE.parent / "app.py"), True),
        (str(PACKAGE.parent / "pages" / "record" / "page.py"), True),
        ("/srv/service/app.py", False),
        ("/srv/service/pages/record.py", False),
        ("<string>", False),
    ],
)
def test_files_that_are_ours(path, is_own):
    assert is_own_file(path, hosted=False) is is_own


def test_a_server_is_ours_only_where_the_app_hosts_the_run():
    assert is_own_file(STARLETTE[0], hosted=True)
    assert not is_own_file(STARLETTE[0], hosted=False)


@pytest.mark.parametrize(
    ("stack", "is_own"),
    [
        ([PDFMINER, LOADER, UNITS, LAUNCH], False),  # a loader runs below our launcher
        ([JSON, PDFMINER, LAUNCH], False),
        ([JSON, JSON, RECORDER], True),  # the standard library at work for us
        ([RECORDER, PDFMINER], True),
        ([FROZEN, FROZEN, PDFMINER], False),
        ([FROZEN, JSON], False),
        ([UNITS, LAUNCH], False),  # an iterator written in C, asked for its next item
        ([], False),
    ],
)
def test_the_nearest_frame_outside_the_standard_library_decides(stack, is_own):
    assert is_own_stack(stack, hosted=False) is is_own
