"""Holder chains in words, from rows alone, as a post-mortem has them."""

import pytest

from diagnostics.analysis.chains import chain_in_words
from diagnostics.recording.model import ChainLink, HeldObject, Reference


def item(number, kind, name="", count=1, root="", file="", line=0):
    return HeldObject(1, number, kind, name, 64, count, root, None, None, file, line)


def chain(*objects_and_labels):
    objects = list(objects_and_labels[::2])
    labels = objects_and_labels[1::2]
    links = [ChainLink(1, 1, 1, place, it.id, 1, False) for place, it in enumerate(objects)]
    references = [
        Reference(1, objects[place].id, objects[place + 1].id, label)
        for place, label in enumerate(labels)
    ]
    return chain_in_words(links, objects, references)


FRAME = item(1, "frame", "load_pages", root="frame", file="/srv/app/loader.py", line=41)
PDF = item(2, "pdfplumber.pdf.PDF", "pdf")
PAGES = item(3, "builtins.list")
PAGE = item(4, "pdfplumber.page.Page", count=87)
LAYOUT = item(5, "pdfminer.layout.LTPage")
OBJECTS = item(6, "builtins.list")
CHAR = item(7, "pdfminer.layout.LTChar", count=1214)


def test_the_chain_of_pages_that_are_never_closed():
    words = chain(
        FRAME, "pdf", PDF, ".pages", PAGES, "[12]", PAGE, "._layout", LAYOUT, "._objs", OBJECTS,
        "[7]", CHAR,
    )  # fmt: skip
    assert words == (
        "`pdf` (local of load_pages, loader.py:41) -> `PDF.pages` list -> `Page[12]`"
        " -> `Page._layout` LTPage -> `LTPage._objs` list -> 1,214 `LTChar`"
    )


@pytest.mark.parametrize(
    ("root", "below", "label", "expected"),
    [
        (
            item(1, "module", "registry", root="module"),
            "CACHE",
            ".CACHE",
            "`CACHE` (module registry)",
        ),
        (item(1, "type", "app.Loader", root="class"), "seen", ".seen", "`seen` (class Loader)"),
        (
            item(1, "builtins.function", "on_page", root="closure", file="/a/x.py", line=3),
            "seen",
            "closure seen",
            "`seen` (closure of on_page, x.py:3)",
        ),
        (
            item(1, "threading.Thread", "worker-1", root="thread"),
            "",
            ".seen",
            "thread worker-1 -> `Thread.seen` list",
        ),
        (
            item(1, "_asyncio.Task", "fetch", root="task", file="/a/x.py", line=3),
            "",
            "",
            "pending task fetch, x.py:3 -> `list`",
        ),
        (
            item(1, "builtins.ValueError", root="exception"),
            "",
            ".args",
            "`ValueError` being handled -> `ValueError.args` list",
        ),
        (item(1, "", root="unknown"), "", "", "no Python referrer -> `list`"),
    ],
)
def test_the_words_for_a_root(root, below, label, expected):
    assert chain(root, label, item(2, "builtins.list", below)) == expected


def test_an_empty_chain_has_no_words():
    assert chain_in_words([], [], []) == ""
