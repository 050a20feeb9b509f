"""The errors a user can meet. Each says what happened and what to do next."""

from __future__ import annotations


class Page87Error(Exception):
    """Base of every error that is about the user's input or machine, not about a bug of ours.

    ``message`` says what happened (and what was kept, where something could have been lost);
    ``next_step`` says what the user can do. The command line prints both, the app shows both.
    """

    def __init__(self, message: str, next_step: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step

    def __str__(self) -> str:
        return f"{self.message} {self.next_step}".strip()


class UsageError(Page87Error):
    """The call makes no sense as it stands: an unknown name, options that exclude each other."""


class RecordingError(Page87Error):
    """A file cannot be opened as a recording: foreign, truncated, newer, or not there."""


class RecorderBusyError(Page87Error):
    """A second recording was started while one runs in this process."""


class DocumentError(Page87Error):
    """A document cannot be read: not that format, truncated, encrypted, empty, no permission."""


class PasswordError(DocumentError):
    """The document is encrypted and the password is missing or wrong."""


class LoaderError(Page87Error):
    """A loader cannot be found or imported."""


class RunCancelled(BaseException):
    """Raised at the next unit mark of a run that the user cancelled.

    It derives from BaseException so that a loader's own ``except Exception`` around a page does
    not swallow the wish to stop.
    """
