"""The gc callback in C; pauses.py is its face."""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

class Pauses:
    def __init__(
        self,
        unit_variable: ContextVar[int],
        live_bytes: Callable[[], int | None] | None,
        zero_ns: int,
        long_ns: int,
    ) -> None: ...
    def __call__(self, phase: str, info: dict[str, int]) -> None: ...
    def drain(self) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]: ...
    cost_ns: int
    missed: int
