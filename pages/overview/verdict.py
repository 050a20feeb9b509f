"""The verdict: what is wrong, how sure that is, the evidence, what to do, what would decide."""

from __future__ import annotations

from collections.abc import Iterable

import streamlit as st

from diagnostics.analysis.format import format_bytes, format_share, sentence_case
from diagnostics.analysis.kinds import Finding, Judgement
from diagnostics.analysis.summary import Summary
from diagnostics.analysis.verdict_text import (
    UNDECIDED,
    confidence_in_words,
    what_it_may_also_be,
)
from diagnostics.analysis.watch import Watch
from pages.common import opened, sitemap
from pages.common.prose import prose
from pages.overview import rerun

_TINTS = {"sure": "red", "fairly sure": "orange", "not sure": "gray"}


def show(watch: Watch, summary: Summary) -> None:
    """The card with which the page opens."""
    judgement = summary.explanation.judgement
    with st.container(border=True):
        _title(judgement, so_far=watch.is_running)
        if judgement.main.number == 0:
            _bullets(judgement.main.evidence)
            _more(watch, judgement)
        else:
            left, right = st.columns(2, gap="large")
            with left:
                _number(judgement)
                _bullets(judgement.main.evidence)
                _more(watch, judgement)
            with right:
                _fix("What to do", judgement.fix)
                _stacked(judgement)
        _rivals(judgement)
        if judgement.rerun is not None:
            rerun.offer(watch, judgement.rerun)


def _title(judgement: Judgement, *, so_far: bool) -> None:
    sure = confidence_in_words(judgement.confidence)
    main = judgement.main
    if main.number == 0 and judgement.confidence < UNDECIDED:
        title, tint = "The evidence does not decide", "gray"
    elif main.number == 0:
        title, tint = "Nothing wrong", "green"
    else:
        title, tint = sentence_case(main.title), _TINTS[sure]
    soon = " so far" if so_far else ""
    st.markdown(
        f"### {prose(title)} :{tint}-badge[{sure}{soon}]",
        help=f"Confidence {format_share(judgement.confidence)}. {prose(main.disproof)}",
    )


def _bullets(lines: Iterable[str]) -> None:
    text = "\n".join(f"- {prose(sentence_case(line))}" for line in lines)
    if text:
        st.markdown(text)


def _number(judgement: Judgement) -> None:
    """The number that matters: what the first kind explains."""
    share = format_share(judgement.bytes_share(judgement.main))
    st.metric(
        "This explains",
        format_bytes(judgement.main.bytes),
        f"{share} of {format_bytes(judgement.base)}",  # it does not wrap: a column cuts more
        delta_color="off",
        delta_arrow="off",
        help=f"{format_bytes(judgement.base)} is what the process took at most, above its start.",
    )


def _fix(heading: str, fix: Iterable[str]) -> None:
    """What to do; the first line of an advice is a sentence, the others are code."""
    for place, advice in enumerate(fix):
        if place == 0:
            st.markdown(f"**{heading}**")
        words, _, hint = advice.partition("\n")
        st.markdown(prose(words))
        if hint:
            st.code(hint, language="python")


def _stacked(judgement: Judgement) -> None:
    """Further kinds with bytes of their own, each with its share and what to do about it."""
    for finding, fix in zip(judgement.stacked, judgement.stacked_fix, strict=True):
        share = judgement.bytes_share(finding)
        st.progress(
            share,
            text=f"And **{prose(sentence_case(finding.title))}**:"
            f" {format_bytes(finding.bytes)}, {format_share(share)}",
        )
        _bullets(finding.evidence[:1])
        _fix("What to do about it", fix)


def _rivals(judgement: Judgement) -> None:
    """What an undecided verdict may be instead; what would decide stands below it."""
    others = [
        f"{prose(finding.title)}{_size(judgement, finding)}"
        for finding in what_it_may_also_be(judgement)
    ]
    if others:
        st.markdown(f"**It may also be:** {', or '.join(others)}")


def _more(watch: Watch, judgement: Judgement) -> None:
    """Where to look next, what would disprove the verdict, and what else it may be."""
    with st.container(horizontal=True, vertical_alignment="center"):
        if judgement.suspects:
            st.page_link(
                sitemap.page(sitemap.LEAKS),
                label="See who holds it",
                query_params=opened.query(watch.path),
                width="content",
            )
        with st.popover("What would disprove it", type="tertiary"):
            st.markdown(prose(judgement.main.disproof))
            if judgement.alternatives:
                st.markdown("**What else it may be**")
            for finding in judgement.alternatives:
                _alternative(judgement, finding)


def _alternative(judgement: Judgement, finding: Finding) -> None:
    title = sentence_case(finding.title)
    size = _size(judgement, finding)
    st.markdown(f"**{prose(title)}**{size}, fits {format_share(finding.score)}")
    _bullets(finding.evidence)


def _size(judgement: Judgement, finding: Finding) -> str:
    """ " (1.9 MB, 3 %)" as Markdown, or nothing where a kind explains no bytes."""
    if not finding.bytes:
        return ""
    share = format_share(judgement.bytes_share(finding))
    return f" {prose(f'({format_bytes(finding.bytes)}, {share})')}"
