"""The entry of the workbench. Start it with ``page87 app``, or ``streamlit run app.py``.

The script that Streamlit runs for each session is the router (pages/router/script.py). It is not
this file, because a folder called pages/ beside the main script makes Streamlit treat the first
request after a start, if it is a deep link, as one to its older kind of multipage app.
"""

from __future__ import annotations

import sys
from pathlib import Path

import streamlit as st

ROOT = Path(__file__).resolve().parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))  # for ``pages``, and for ``diagnostics`` in a bare checkout

app = st.App(ROOT / "pages" / "router" / "script.py")
