"""The sentences, one TOML file for each document."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any


@cache
def prose(name: str) -> dict[str, Any]:
    """The sentences of ``name``.toml beside this file."""
    return tomllib.loads((Path(__file__).parent / f"{name}.toml").read_text(encoding="utf-8"))
