"""Line-by-line memory of the functions that a user names, through memory_profiler."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from diagnostics.errors import UsageError
from diagnostics.probes.base import BaseProbe, ProbeMissingError, Session
from diagnostics.probes.resident import ResidentSet
from diagnostics.probes.script_names import Hook, running_script
from diagnostics.probes.targets import Name, Target, find, parse, target_of
from diagnostics.recording.model import LineRow
from diagnostics.recording.writer import RecordingWriter

_WRITE_EVERY_NS = 1_000_000_000


class LineProbe(BaseProbe):
    """What each line of the named functions adds to the resident set.

    ``functions``: "module:function" or "module:Class.method", or a file in the module's place;
    plain functions, generators and coroutines, in any thread. While the recording runs they are
    replaced by a profiled twin in every module that knows them by a name; references kept elsewhere
    (a table of callbacks, a partial) still lead to the original and are not seen. ``start`` raises
    ``UsageError`` for a function that cannot be found or followed.

    Functions of a running script (``script_names``) are replaced as the script defines them.
    """

    name = "lines"

    def __init__(self, functions: Sequence[str]) -> None:
        super().__init__()
        self._names = [parse(text) for text in dict.fromkeys(functions)]
        self._profiled: list[tuple[Target, Callable[..., Any]]] = []
        self._awaited: set[str] = set()
        self._written_readings = 0
        self._next_ns = 0

    def start(self, session: Session) -> None:
        super().start(session)
        try:
            from diagnostics.probes.line_tracer import LineTracer
        except ImportError as error:
            raise ProbeMissingError(f"memory_profiler cannot be imported ({error})") from error
        self._tracer = LineTracer(ResidentSet().read)
        script = running_script()
        scripted = script.module_names if script is not None else ()
        # All are found before any is replaced: a name that is wrong leaves everything as it was.
        of_script = [name for name in self._names if {name.module, name.stem} & {*scripted}]
        for target in [find(name) for name in self._names if name not in of_script]:
            self._profile(target)
        if script is not None:
            for name in of_script:
                first = name.path[0]
                script.hooks[first] = self._hook(name, script.hooks.get(first))
                self._awaited.add(name.text)
        self._describe()

    def tick(self, writer: RecordingWriter, t_ns: int) -> None:
        self._describe()
        # Now and then, so that the lines of a run that is killed are not lost with it.
        if t_ns >= self._next_ns and self._tracer.readings != self._written_readings:
            self._next_ns = t_ns + _WRITE_EVERY_NS
            self._written_readings = self._tracer.readings
            writer.put_line_profile(self._rows())

    def stop(self) -> None:
        self.abandon()
        for name in sorted(self._awaited):
            self.session.log("warning", self.name, f"the script never defined {name}")

    def finish(self, writer: RecordingWriter, t_ns: int) -> None:
        self._describe()
        writer.put_line_profile(self._rows())

    def abandon(self) -> None:
        self._tracer.turn_off()
        script = running_script()
        if script is not None:
            script.hooks.clear()
        for target, wrapper in self._profiled:
            target.restore(wrapper)

    def _profile(self, target: Target) -> Callable[..., Any]:
        wrapper = self._tracer.wrap(target.function, target.code)
        target.replace(wrapper)
        self._profiled.append((target, wrapper))
        return wrapper

    def _hook(self, name: Name, earlier: Hook | None) -> Hook:
        """Profiles what the script defines. Nothing here may raise: it would end the script."""

        def hook(value: Any) -> Any:
            if earlier is not None:
                value = earlier(value)
            try:
                target = target_of(name, value, name.path[1:])
            except UsageError as error:
                self.session.log("error", self.name, str(error))
                return value
            finally:
                self._awaited.discard(name.text)
            wrapper = self._profile(target)
            return value if target.owner is not None else wrapper

        return hook

    def _rows(self) -> Iterator[LineRow]:
        for target, _wrapper in self._profiled:
            figures = self._tracer.figures(target.code)
            for line, text in enumerate(target.source, target.first_line):
                seen = figures.get(line)
                yield LineRow(
                    function=target.name,
                    file=target.code.co_filename,
                    line=line,
                    source=text.rstrip("\n"),
                    rss=seen.rss if seen else None,
                    increment=seen.increment if seen else None,
                    hits=seen.hits if seen else None,
                )

    def _describe(self) -> None:
        self.cost_ns = self._tracer.cost_ns
        self.detail = (
            f"memory_profiler's line tracing of {len(self._profiled)} function(s), which it slows"
            f" down; {self._tracer.readings} readings of the resident set of the whole process"
        )
