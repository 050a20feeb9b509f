"""The wheel carries the workbench: it runs where there is no checkout."""

import os
import re
import signal
import subprocess
import sys
import urllib.request
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with nothing but the installed wheel in it."""
    built = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", built, ROOT], check=True
    )
    (wheel,) = built.glob("*.whl")
    site = tmp_path_factory.mktemp("site")
    subprocess.run([*pip, "install", "--no-deps", "--target", site, wheel], check=True)
    return wheel, site


def environment(site, tmp_path):
    return {**os.environ, "PYTHONPATH": str(site), "PAGE87_RECORDINGS": str(tmp_path)}


def test_the_wheel_holds_the_app_and_the_samples_and_no_tests(installed):
    names = zipfile.ZipFile(installed[0]).namelist()
    for wanted in (
        "diagnostics/_workbench/app.py",
        "diagnostics/_workbench/pages/record/page.py",
        "diagnostics/_workbench/pages/components/heatmap/heatmap.js",
        "diagnostics/_workbench/sample_docs/annual-report.pdf",
        "diagnostics/_workbench/.streamlit/config.toml",
        "diagnostics/py.typed",
    ):
        assert wanted in names
    assert not [name for name in names if name.startswith(("tests", "pages", "app.py"))]
    assert not [name for name in names if "__pycache__" in name]


def test_the_app_of_the_wheel_serves_its_first_page(installed, tmp_path):
    server = subprocess.Popen(
        [sys.executable, "-m", "diagnostics", "app", "--no-browser"],
        cwd=tmp_path,
        env=environment(installed[1], tmp_path),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        found = next(
            address[0] for line in server.stdout if (address := re.search(r"http://\S+", line))
        )
        with urllib.request.urlopen(found, timeout=10) as answer:
            assert "<title>" in answer.read().decode()
    finally:
        server.send_signal(signal.SIGINT)
        assert server.wait(15) == 0


def test_the_command_line_of_the_wheel_runs_outside_the_checkout(installed, tmp_path):
    code = (
        "import diagnostics, pathlib;"
        "from diagnostics.launch.documents import sample_documents;"
        "print(pathlib.Path(diagnostics.__file__).parent);"
        "print(sample_documents()['bilingual.txt'])"
    )
    run = {"cwd": tmp_path, "env": environment(installed[1], tmp_path), "text": True}
    package, sample = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, **run
    ).stdout.split()
    assert Path(package) == installed[1] / "diagnostics"
    done = subprocess.run(
        [sys.executable, "-m", "diagnostics", "run", "--engine", "none", sample],
        capture_output=True,
        check=True,
        **run,
    )
    assert "bilingual.txt with text: finished" in done.stdout
