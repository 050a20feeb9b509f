"""The router: page settings, navigation, and which recording is open."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from pages.common import guard, opened, sitemap

st.set_page_config(
    page_title="Page 87",
    page_icon=str(Path(__file__).parents[1] / "common" / "icon.png"),
    layout="wide",
)
guard.refuse_other_origins()
guard.warn_of_forced_collections()
page = sitemap.navigation()
opened.keep_in_url()
opened.show_in_sidebar()
page.run()
