"""What every loader looks like: a name, the formats it reads, and ``open``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from diagnostics.errors import UsageError
from diagnostics.loaders.files import require_document, unit_errors


@dataclass(frozen=True, slots=True)
class Page:
    """One unit of a document, as the caller gets it.

    ``metadata`` is little: ``width`` and ``height`` in points for PDF pages, ``heading`` and
    ``level`` for sections.
    """

    text: str
    metadata: Mapping[str, str | int | float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """What a caller may say about a document.

    ``encoding`` overrides what a text file seems to be written in. ``characters_per_unit`` is the
    length of a unit where the format has neither pages nor headings.
    """

    password: str | None = field(default=None, repr=False)
    encoding: str | None = None
    characters_per_unit: int = 4000

    def __post_init__(self) -> None:
        if self.characters_per_unit < 1:
            raise UsageError(
                f"A unit cannot have {self.characters_per_unit} characters.", "Give 1 or more."
            )


class OpenDocument(Protocol):
    """A document while it is open; leaving the ``with`` block closes it.

    ``unit_kind`` is "page", "section" or "chunk". ``unit_count`` is None where only reading the
    whole file would tell. ``split`` says in words what a unit is. ``marks_own_units`` is True for
    code that may call ``units()`` itself: the items of ``pages()`` are then no units of their own
    where it did.
    """

    unit_kind: str
    unit_count: int | None
    split: str
    marks_own_units: bool

    def pages(self) -> Iterator[Page]:
        """The units in order; each ``next()`` does the work of one unit and nothing more.

        Raises DocumentError, which names the unit, where the document turns out to be broken.
        """

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class Loader:
    """One way to read documents.

    ``formats`` are file suffixes (".pdf"). ``note`` says in one sentence what the loader keeps or
    costs. ``library`` is the distribution whose version belongs into a recording. ``open`` raises
    DocumentError, PasswordError, or LoaderError where the library is missing.
    """

    name: str
    title: str
    formats: tuple[str, ...]
    note: str
    open: Callable[[Path, LoadOptions], OpenDocument]
    library: str | None = None


Units = Generator[Page, None, None]


class FileDocument(ABC):
    """Base of the built-in documents: checks the file, closes it, names the unit in errors.

    A format fills ``read()``, written the way people write such a loop. A format that opens a
    library's document does so in ``__init__`` and lets go of it in ``close()``.
    """

    unit_kind: str
    split: str
    unit_count: int | None = None
    marks_own_units = False

    def __init__(self, path: Path, options: LoadOptions) -> None:
        require_document(path)
        self.path = path
        self.options = options

    @abstractmethod
    def read(self) -> Units:
        """The units in order, with whatever errors the library raises."""

    def pages(self) -> Iterator[Page]:
        with closing(self.read()) as units:
            for number in count(1):
                with unit_errors(self.path, self.unit_kind, number):
                    page = next(units, None)
                if page is None:
                    if number == 1:  # opened, and nothing in it to read: one unit without text
                        yield Page("")
                    return
                yield page
                del page  # the next unit is read while nobody but the caller holds this one

    def close(self) -> None:  # noqa: B027 - formats that read the file as a stream keep nothing open
        """Let go of the library's document."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
