"""The checks that every document passes before a library sees it, and the errors of reading."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from diagnostics.errors import DocumentError, LoaderError, Page87Error, PasswordError

PDF_HEADER = b"%PDF-"
# Readers accept bytes before the header, and look for it this far.
PDF_HEADER_WITHIN = 1024


def require_path(path: Path) -> None:
    """Raise DocumentError where nothing can be found at ``path``."""
    with _access_errors(path):
        path.stat()


def require_document(path: Path) -> None:
    """Raise DocumentError where ``path`` is no regular, readable file with something in it."""
    with _access_errors(path):
        status = path.stat()
    if stat.S_ISDIR(status.st_mode):
        raise DocumentError(f"{path} is a directory, not a document.", "Name a file inside it.")
    if not stat.S_ISREG(status.st_mode):
        raise DocumentError(
            f"{path} is a device or a pipe, not a file.", "Save the document to a file first."
        )
    if status.st_size == 0:
        raise DocumentError(
            f"{path.name} is empty: 0 bytes.", "Was it downloaded or copied completely?"
        )
    read_head(path, 1)


def read_head(path: Path, size: int) -> bytes:
    """The first ``size`` bytes of the file, or fewer where it is shorter."""
    with _access_errors(path), path.open("rb") as stream:
        return stream.read(size)


@contextmanager
def _access_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise DocumentError(
            f"There is no file {path}.", f"A relative path starts at {Path.cwd()}."
        ) from error
    except PermissionError as error:
        raise DocumentError(
            f"No permission to read {path}.", "Check the rights of the file and of its folder."
        ) from error
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the path
        raise DocumentError(f"{path} cannot be opened: {error}.", "Check the path.") from error


@contextmanager
def needs(distribution: str) -> Iterator[None]:
    """Around the import of a document library: a missing one becomes a LoaderError."""
    try:
        yield
    except ImportError as error:
        raise LoaderError(
            f"This loader needs {distribution}, which cannot be imported: {error}.",
            f"Install it: pip install {distribution}",
        ) from error


@contextmanager
def open_errors(path: Path, format_name: str) -> Iterator[None]:
    """Around a library's opening of ``path``: what it raises becomes a DocumentError."""
    try:
        yield
    except (Page87Error, MemoryError):
        raise
    except Exception as error:
        raise DocumentError(
            f"{path.name} cannot be opened as {format_name}: {describe(error)}.",
            "The file is damaged or was cut off. Try another loader, or get the file again.",
        ) from error


@contextmanager
def unit_errors(path: Path, kind: str, number: int) -> Iterator[None]:
    """Around the reading of one unit: what a library raises becomes a DocumentError.

    A MemoryError stays what it is: it tells about the memory, not about the document.
    """
    try:
        yield
    except (Page87Error, MemoryError):
        raise
    except Exception as error:
        raise DocumentError(
            f"{kind.capitalize()} {number} of {path.name} cannot be read: {describe(error)}.",
            f"The document is damaged there. What was read before {kind} {number} is kept; "
            "another loader may get further.",
        ) from error


def describe(error: BaseException) -> str:
    """The type and message of an error in one line."""
    message = " ".join(str(error).split()).rstrip(".")
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def password_error(path: Path, password: str | None) -> PasswordError:
    """The error for an encrypted document that ``password`` does not open."""
    if not password:
        return PasswordError(
            f"{path.name} is encrypted.", "Give its password (--password on the command line)."
        )
    return PasswordError(
        f"The password does not open {path.name}.",
        "Check its spelling, upper and lower case included.",
    )
