"""Every key of the session state that is not a widget's, in one place."""

from __future__ import annotations

OPENED = "opened"  # name of the open recording
WATCH = "watch"  # accumulators of the recording on screen, see screen.py
STARTED = "started"  # name of the recording of the run that this session started last
ASK_PASSWORD = "ask-password"  # a document turned out to be encrypted
