"""What every built-in document does: one unit a step, errors that name the unit, nothing held."""

import weakref

import pytest

from diagnostics.errors import DocumentError
from diagnostics.loaders.base import FileDocument, LoadOptions, Page


class Text(str):
    """A string that can be watched."""

    __slots__ = ("__weakref__",)


class Steps(FileDocument):
    """A document whose units are given, or raised."""

    unit_kind = "section"
    split = "steps"

    def __init__(self, path, *steps):
        super().__init__(path, LoadOptions())
        self.steps = list(steps)
        self.done = 0
        self.closed = False

    def read(self):
        while self.steps:
            self.done += 1
            step = self.steps.pop(0)
            if isinstance(step, BaseException):
                raise step
            yield Page(step)
            del step

    def close(self):
        self.closed = True


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "steps.txt"
    path.write_text("x")
    return path


def test_each_step_does_one_unit_and_no_more(path):
    with Steps(path, "a", "b") as document:
        pages = document.pages()
        assert document.done == 0
        assert next(pages).text == "a"
        assert document.done == 1
        assert [page.text for page in pages] == ["b"]
        assert not document.closed
    assert document.closed


def test_an_error_of_the_library_names_the_unit_and_is_chained(path):
    original = ZeroDivisionError("somewhere\ndeep.")
    with Steps(path, "a", original) as document, pytest.raises(DocumentError) as raised:
        list(document.pages())
    assert raised.value.message == (
        "Section 2 of steps.txt cannot be read: ZeroDivisionError: somewhere deep."
    )
    assert raised.value.__cause__ is original
    assert document.closed


@pytest.mark.parametrize("error", [MemoryError(), KeyboardInterrupt(), DocumentError("said")])
def test_what_is_not_about_the_document_goes_on_untouched(path, error):
    with Steps(path, error) as document, pytest.raises(type(error)) as raised:
        list(document.pages())
    assert raised.value is error


def test_a_document_with_nothing_in_it_is_one_unit_without_text(path):
    with Steps(path) as document:
        assert [page.text for page in document.pages()] == [""]


def test_the_unit_before_is_gone_when_the_next_is_read(path):
    seen = []

    class Watching(Steps):
        def read(self):
            yield Page(Text("a"))
            seen.append(first())
            yield Page("b")

    with Watching(path) as document:
        pages = document.pages()
        page = next(pages)
        first = weakref.ref(page.text)
        del page
        next(pages)
    assert seen == [None]
