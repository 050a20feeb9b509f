"""What exists is documented: tables, arguments, options, keys, loaders, dependencies."""

import dataclasses
import inspect
import re
import subprocess
import sys
import tomllib
import typing
from pathlib import Path

from diagnostics import Recorder
from diagnostics.analysis.explanation import Explanation, ExplanationInfo
from diagnostics.analysis.library import LibraryEntry
from diagnostics.analysis.summary import Summary
from diagnostics.loaders.registry import all_loaders
from diagnostics.recording import schema
from diagnostics.recording.writer import SERIES_WIDTH

ROOT = Path(__file__).parents[2]


def doc(name):
    return (ROOT / "docs" / name).read_text()


def test_every_table_is_documented():
    tables = set(re.findall(r"CREATE TABLE (\w+)", schema.TABLES))
    text, series = doc("recording.md").split("## Frames")
    assert tables == set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))
    assert set(SERIES_WIDTH) == set(re.findall(r"^\| `(\w+)` \|", series, re.MULTILINE))


def test_every_argument_of_the_recorder_is_documented():
    arguments = set(inspect.signature(Recorder).parameters) - {"is_workbench_thread"}
    missing = {name for name in arguments if f"`{name}`" not in doc("recorder.md")}
    assert missing == set()


def test_every_built_in_loader_is_documented():
    missing = {name for name in all_loaders() if f"`{name}`" not in doc("command-line.md")}
    assert missing == set()


def keys(model, prefix=""):
    """The paths of the JSON form of a tree of dataclasses or typed dictionaries, as docs/json.md
    writes them."""
    for name, hint in typing.get_type_hints(model).items():
        if hint is Explanation:  # has a form of its own
            continue
        parts = [hint, *typing.get_args(hint)]
        inner = [p for p in parts if dataclasses.is_dataclass(p) or typing.is_typeddict(p)]
        path = f"{prefix}{name}"
        if not inner:
            yield path
        elif typing.get_origin(hint) is list:
            yield path
            yield from keys(inner[0], f"{path}[].")
        else:
            if len(parts) > 1:  # may be null
                yield path
            yield from keys(inner[0], f"{path}.")


def test_the_json_contract_is_what_the_code_prints():
    documented = re.findall(r"^\| `([^`]+)` \|", doc("json.md"), re.MULTILINE)
    assert sorted(documented) == sorted(["format", *keys(Summary), *keys(ExplanationInfo)])


def test_the_names_of_the_probes_are_those_in_the_contract():
    [row] = re.findall(r"^\| `probes\[\]\.name` \|(.*)\|$", doc("json.md"), re.MULTILINE)
    sources = "".join(path.read_text() for path in (ROOT / "diagnostics/probes").glob("*.py"))
    names = set(re.findall(r'^    name = "(\w+)"$', sources, re.MULTILINE))
    assert set(re.findall(r"`(\w+)`", row)) == names | {"recorder"}


def test_every_key_of_the_list_is_documented():
    names = {field.name for field in dataclasses.fields(LibraryEntry)}
    text = doc("json.md").partition("`page87 list --json`")[2]
    assert set(re.findall(r"`(\w+)`", text)) == names


def test_every_option_of_the_command_line_is_documented():
    for command in ("app", "run", "show", "list"):
        text = subprocess.run(
            [sys.executable, "-m", "diagnostics", command, "--help"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        options = set(re.findall(r"(--[a-z-]+)", text)) - {"--help"}
        section = doc("command-line.md").split(f"## page87 {command}")[1:]
        missing = {option for option in options if not any(option in part for part in section)}
        assert missing == set(), command


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
