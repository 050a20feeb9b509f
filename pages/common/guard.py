"""What the app refuses or warns of before it shows anything."""

from __future__ import annotations

from urllib.parse import urlsplit

import streamlit as st


def refuse_other_origins() -> None:
    """Stop a session that a page of another local server opened.

    Streamlit accepts a websocket from every page on this machine; such a page could press our
    buttons. A browser always says which page it comes from, and ours has the server's own address.
    """
    origin = st.context.headers.get("Origin")
    if is_foreign(origin, st.context.headers.get("Host")):
        st.error(
            f"This session was opened by another page ({origin}). Open the workbench itself, at"
            " the address that `page87 app` printed."
        )
        st.stop()


def is_foreign(origin: str | None, host: str | None) -> bool:
    """Whether a page at ``origin`` is another's than the server that it calls ``host``."""
    return origin is not None and urlsplit(origin).netloc != host


def warn_of_forced_collections() -> None:
    """Say loudly when Streamlit collects garbage after each refresh: it falsifies recordings."""
    if st.get_option("runner.postScriptGC"):
        st.error(
            "**Recordings in this process would be wrong.** Streamlit forces a garbage collection"
            " after every refresh, and that hides leaks by cycles and adds pauses. Stop the server"
            " and start it with `page87 app`, or set `runner.postScriptGC = false`.",
            icon="🛑",
        )
