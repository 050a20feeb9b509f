"""What exists is documented: tables of the file, arguments of the recorder, loaders, dependencies."""

import inspect
import re
import tomllib
from pathlib import Path

from diagnostics import Recorder
from diagnostics.loaders.registry import all_loaders
from diagnostics.recording import schema

ROOT = Path(__file__).parents[2]


def doc(name):
    return (ROOT / "docs" / name).read_text()


def test_every_table_is_documented():
    tables = set(re.findall(r"CREATE TABLE (\w+)", schema.TABLES))
    documented = set(re.findall(r"^\| `(\w+)` \|", doc("recording.md"), re.MULTILINE))
    assert tables == documented


def test_every_argument_of_the_recorder_is_documented():
    arguments = set(inspect.signature(Recorder).parameters) - {"is_workbench_thread"}
    missing = {name for name in arguments if f"`{name}`" not in doc("recorder.md")}
    assert missing == set()


def test_every_built_in_loader_is_documented():
    missing = {name for name in all_loaders() if f"`{name}`" not in doc("command-line.md")}
    assert missing == set()


def test_every_dependency_has_its_reason():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {re.split(r"[<>=]", line)[0] for line in project["dependencies"]}
    missing = {name for name in names if name not in doc("dependencies.md")}
    assert missing == set()


def test_every_dependency_is_pinned():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = set(re.findall(r"^([\w-]+)==", (ROOT / "requirements.txt").read_text(), re.MULTILINE))
    names = {re.split(r"[<>=]", line)[0] for line in project["dependencies"]}
    assert names - pinned == set()


def test_links_between_the_pages_lead_somewhere():
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
