"""The progress of a run on a terminal, read from its recording."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import TextIO

from diagnostics.errors import RecordingError
from diagnostics.launch.progress import Progress
from diagnostics.recording.reader import RecordingReader

_EVERY_S = 0.2
_BAR = 24


class ProgressBar:
    """Draws one line on ``stream``, five times a second, from a thread of its own."""

    def __init__(self, recording: Path, stream: TextIO) -> None:
        self._recording = recording
        self._stream = stream
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="page87-progress", daemon=True)

    @property
    def thread(self) -> int | None:
        """The identity of the drawing thread."""
        return self._thread.ident

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop drawing and leave the line empty."""
        if self._thread.ident is not None:
            self._over.set()
            self._thread.join()
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def _run(self) -> None:
        while not self._over.wait(_EVERY_S):
            try:
                with RecordingReader(self._recording) as reader:
                    progress = Progress.of(reader)
            except RecordingError:
                continue  # the file is only just being made
            width = shutil.get_terminal_size().columns - 1
            self._stream.write(f"\r{_line(progress)[:width]}\x1b[K")
            self._stream.flush()


def _line(progress: Progress) -> str:
    if progress.share is None:
        return progress.text
    filled = round(progress.share * _BAR)
    return f"[{'█' * filled}{'·' * (_BAR - filled)}] {progress.text}"
