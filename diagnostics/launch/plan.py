"""What to run and how to measure it, as plain data that can travel to another process."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from diagnostics.errors import UsageError
from diagnostics.loaders.base import LoadOptions


@dataclass(frozen=True, slots=True)
class Measures:
    """The recorder's settings for a run; see ``diagnostics.record``.

    A run settles, unlike a recording in people's own code: when it has come to its end, nobody
    needs its result any more.
    """

    engine: str = "default"
    frames: int | None = None
    lines: tuple[str, ...] = ()
    settle: bool = True


@dataclass(frozen=True, slots=True)
class RunPlan:
    """A document with a loader, or a script with its arguments, and the recording to write.

    ``loader`` is a registry name or "module:function"; None takes the format's default. A plan
    with a password is JSON only for a pipe between two processes: it is in no command line, no
    environment and no recording.
    """

    recording: Path
    document: Path | None = None
    loader: str | None = None
    options: LoadOptions = field(default_factory=LoadOptions)
    script: Path | None = None
    arguments: tuple[str, ...] = ()
    measures: Measures = field(default_factory=Measures)

    def __post_init__(self) -> None:
        if (self.document is None) == (self.script is None):
            raise UsageError(
                "A run is of a document or of a script.", "Name one of them, and not both."
            )

    @property
    def subject(self) -> Path:
        """The document or the script."""
        found = self.document or self.script
        assert found is not None  # __post_init__ has seen to it
        return found

    @property
    def command(self) -> str:
        """The command line that does the same, without a password."""
        words = ["page87", "run"]
        if self.loader:
            words += ["--loader", self.loader]
        if self.measures.engine != "default":
            words += ["--engine", self.measures.engine]
        if self.measures.frames is not None:
            words += ["--frames", str(self.measures.frames)]
        for function in self.measures.lines:
            words += ["--lines", function]
        return shlex.join([*words, str(self.subject), *self.arguments])

    def to_json(self) -> str:
        """For a pipe to a child; holds the password, if there is one."""
        return json.dumps(asdict(self), default=str)

    @classmethod
    def from_json(cls, text: str) -> Self:
        values: dict[str, Any] = json.loads(text)
        measures = values["measures"]
        return cls(
            recording=Path(values["recording"]),
            document=Path(values["document"]) if values["document"] else None,
            loader=values["loader"],
            options=LoadOptions(**values["options"]),
            script=Path(values["script"]) if values["script"] else None,
            arguments=tuple(values["arguments"]),
            measures=Measures(**{**measures, "lines": tuple(measures["lines"])}),
        )
