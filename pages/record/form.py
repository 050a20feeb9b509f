"""The form of the Record page: what to run, on which document, measured how, and where."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from diagnostics.errors import DocumentError, Page87Error, PasswordError
from diagnostics.launch.app import AppSettings
from diagnostics.launch.documents import REPORT, sample_documents, store_upload
from diagnostics.launch.plan import Measures, RunPlan
from diagnostics.launch.registry import Where
from diagnostics.loaders.base import LoadOptions
from diagnostics.loaders.registry import all_loaders, default_loader
from diagnostics.probes.heap import ENGINES, default_engine
from diagnostics.recording.places import new_path
from pages.common import keys, opened, screen
from pages.common.runs import runs

_MAX_UPLOAD_MB = 200
_FIRST_LOADER = "pdfplumber"
_PLACES: dict[Where, str] = {
    "thread": "In this process: as the loader runs in your service, in a thread of its own",
    "child": "In a child process: survives whatever the loader does",
}
SAMPLE, PATH, _UPLOAD, SCRIPT = "A sample", "A path on this machine", "Upload", "A script"


def ask() -> None:
    """The first screen: one click records the sample; below it, everything can be chosen."""
    st.write(
        "Run a loader under the workbench and see which page of the document the memory belongs"
        " to, and which line allocated it."
    )
    with st.container(border=True):
        text, button = st.columns([3, 1], vertical_alignment="center")
        text.markdown(
            f"**New here?** Record the sample: `{REPORT}` read with pdfplumber the way people"
            " write it. It keeps megabytes of every page; then try `pdfplumber-closed`, which"
            " keeps nothing."
        )
        if button.button("Record the sample", type="primary", width="stretch"):
            sample = sample_documents()[REPORT]
            start(RunPlan(new_path(sample.stem), sample, _FIRST_LOADER), "thread")
    st.subheader("Record your own")
    plan, where = _choose()
    if st.button("Start", type="primary", disabled=plan is None) and plan is not None:
        start(plan, where)


def start(plan: RunPlan, where: Where) -> None:
    """Start the run and show it live; what is wrong with the input is said here."""
    try:
        AppSettings.from_environment().check(plan)
        with st.spinner("Starting…"):
            runs().start(plan, where)
    except PasswordError as error:
        st.session_state[keys.ASK_PASSWORD] = True
        screen.show_error(error)
    except Page87Error as error:
        screen.show_error(error)
    else:
        st.session_state[keys.STARTED] = plan.recording.name
        opened.open_recording(plan.recording)
        st.rerun()


def _choose() -> tuple[RunPlan | None, Where]:
    settings = AppSettings.from_environment()
    sources = [SAMPLE, PATH, _UPLOAD, *([SCRIPT] if settings.scripts else [])]
    source = st.segmented_control(
        "Document", sources, default=SAMPLE, required=True, key="document-source"
    )
    subject = _subject(source, settings)
    loader = None if source == SCRIPT else _loader(subject, settings)
    usual, why_not_sampled = default_engine()
    names = sorted(ENGINES, key=lambda name: name != usual)
    if why_not_sampled:
        names.remove("sampled")
    left, right = st.columns(2)
    with left:
        engine = st.selectbox(
            "Heap engine",
            names,
            format_func=lambda name: f"{name}: {ENGINES[name].note}",
            key="engine",
        )
        if why_not_sampled:
            st.caption(why_not_sampled)
        kind = ENGINES[engine]
        frames = st.slider(
            "Frames of each allocation stack",
            1,
            kind.most_frames,
            kind.usual_frames,
            key=f"frames-{engine}",
            disabled=kind.make is None,
            help="One frame names the line that allocated; more tell who called it. With the exact"
            " engine each costs time and memory.",
        )
    with right:
        where = st.radio(
            "Where to run", list(_PLACES), format_func=_PLACES.__getitem__, key="where"
        )
        lines = st.text_input(
            "Functions for the line profile",
            key="lines",
            placeholder="module:function, module:Class.method",
            help="memory_profiler follows these functions line by line, which makes them many"
            " times slower. Leave it empty otherwise.",
        )
    options = _options(subject)
    if subject is None:
        return None, where
    measures = Measures(engine, frames, tuple(part for part in _words(lines)))
    if source == SCRIPT:
        return RunPlan(new_path(subject.stem), script=subject, measures=measures), where
    return RunPlan(new_path(subject.stem), subject, loader, options, measures=measures), where


def _subject(source: str, settings: AppSettings) -> Path | None:
    if source == SAMPLE:
        samples = sample_documents()
        return samples[st.selectbox("Sample document", list(samples), key="sample")]
    if source == SCRIPT:
        return st.selectbox("Script", settings.scripts, format_func=str, key="script")
    if source == PATH:
        typed = st.text_input("Path", key="path", placeholder="/data/reports/big.pdf").strip()
        return Path(typed).expanduser() if typed else None
    sent = st.file_uploader(
        "Document", max_upload_size=_MAX_UPLOAD_MB, key="upload", label_visibility="collapsed"
    )
    return store_upload(sent, sent.name) if sent is not None else None


def _loader(subject: Path | None, settings: AppSettings) -> str | None:
    loaders = all_loaders()
    suffix = subject.suffix.lower() if subject is not None else ".pdf"
    names = settings.offered_loaders(suffix)
    chosen: str | None = st.selectbox(
        "Loader",
        names,
        index=_first(names, subject),
        key=f"loader-for-{suffix}",
        help="A loader of your own is offered here when the app was opened with"
        " `page87 app --loader module:function`.",
    )
    if chosen in loaders:
        st.caption(loaders[chosen].note)
    return chosen


def _first(names: list[str], subject: Path | None) -> int:
    """The place of the format's default loader among ``names``."""
    if subject is None:
        return 0
    try:
        default = default_loader(subject).name
    except DocumentError:
        return 0  # what is wrong with the file is said when the run is started
    return names.index(default) if default in names else 0


def _options(subject: Path | None) -> LoadOptions:
    password = encoding = None
    suffix = subject.suffix.lower() if subject is not None else ""
    if suffix == ".pdf" and st.session_state.get(keys.ASK_PASSWORD):
        password = st.text_input("Password of the document", type="password", key="password")
    if suffix in (".txt", ".md", ".html"):
        encoding = st.text_input(
            "Encoding", key="encoding", placeholder="found by itself", help="utf-8, gb18030, …"
        )
    return LoadOptions(password=password or None, encoding=encoding or None)


def _words(text: str) -> list[str]:
    return text.replace(",", " ").split()
