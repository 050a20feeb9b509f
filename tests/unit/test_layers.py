"""Imports point down only: the table of docs/architecture.md, held against the code."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

HEAVY = {"pandas", "numpy", "plotly", "streamlit"}
DOCUMENT_LIBRARIES = {"pypdf", "pdfplumber", "pdfminer", "pypdfium2", "docx", "markdown_it", "lxml"}

# layer -> top-level packages and parts of ours that it may not import
FORBIDDEN = {
    "diagnostics/recording": HEAVY
    | DOCUMENT_LIBRARIES
    | {"psutil"}
    | {f"diagnostics.{part}" for part in ("probes", "recorder", "units", "launch", "loaders")}
    | {f"diagnostics.{part}" for part in ("analysis", "figures", "cli")},
    "diagnostics/probes": HEAVY
    | DOCUMENT_LIBRARIES
    | {f"diagnostics.{part}" for part in ("recorder", "launch", "loaders")}
    | {f"diagnostics.{part}" for part in ("analysis", "figures", "cli", "recording.reader")},
    "diagnostics/holders": HEAVY
    | DOCUMENT_LIBRARIES
    | {f"diagnostics.{part}" for part in ("recorder", "scribe", "captures", "launch", "loaders")}
    | {f"diagnostics.{part}" for part in ("analysis", "figures", "cli", "recording.reader")},
    "diagnostics/scribe.py": HEAVY
    | {f"diagnostics.{part}" for part in ("recorder", "holders", "launch", "loaders")}
    | {f"diagnostics.{part}" for part in ("analysis", "figures", "cli")},
    "diagnostics/captures.py": HEAVY
    | {f"diagnostics.{part}" for part in ("recorder", "launch", "loaders")}
    | {f"diagnostics.{part}" for part in ("analysis", "figures", "cli")},
    **{
        f"diagnostics/{module}.py": HEAVY
        | {f"diagnostics.{part}" for part in ("launch", "loaders", "analysis", "figures", "cli")}
        for module in ("recorder", "ending", "settlement", "units", "unit_numbers")
    },
    "diagnostics/loaders": HEAVY
    | {f"diagnostics.{part}" for part in ("recorder", "units", "recording", "probes", "launch")}
    | {f"diagnostics.{part}" for part in ("analysis", "figures", "cli")},
    "diagnostics/launch": HEAVY | {"diagnostics.figures", "diagnostics.cli"},
    "diagnostics/analysis": {
        "plotly",
        "streamlit",
        "diagnostics.recorder",
        "diagnostics.probes",
        "diagnostics.launch",
        "diagnostics.cli",
    },
    "diagnostics/figures": {"streamlit", "diagnostics.launch", "diagnostics.cli"},
    "diagnostics/cli.py": {"streamlit", "plotly", "pandas", "numpy", "diagnostics.figures"},
    "app.py": {"sqlite3", "psutil", "pandas"},
    "pages": {"sqlite3", "psutil"},
}


def imports(file: Path):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative imports hide where an arrow points"
            yield node.module, node.lineno
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)


def files(layer: str):
    place = ROOT / layer
    return sorted(place.rglob("*.py")) if place.is_dir() else [place]


@pytest.mark.parametrize("layer", FORBIDDEN)
def test_imports_point_down_only(layer):
    found = files(layer)
    assert found, f"{layer} is not there"
    wrong = [
        f"{file.relative_to(ROOT)}:{line} imports {name}"
        for file in found
        for name, line in imports(file)
        for barred in FORBIDDEN[layer]
        if name == barred or name.startswith(barred + ".")
    ]
    assert sorted(set(wrong)) == []


def test_only_the_app_knows_streamlit():
    wrong = [
        f"{file.relative_to(ROOT)}:{line}"
        for file in (ROOT / "diagnostics").rglob("*.py")
        for name, line in imports(file)
        if name.split(".")[0] == "streamlit"
    ]
    assert wrong == []


def test_nobody_unpickles():
    for file in [*files("diagnostics"), *files("pages"), *files("app.py")]:
        for name, line in imports(file):
            assert name.split(".")[0] not in {"pickle", "marshal", "shelve", "dill"}, (file, line)
