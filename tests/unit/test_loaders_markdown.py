"""Markdown: what is a heading, what only looks like one, and that no cut loses anything."""

import pytest
from markdown_it import MarkdownIt

from diagnostics.errors import DocumentError
from diagnostics.loaders.base import LoadOptions
from diagnostics.loaders.markdown import MARKDOWN, plain_text
from diagnostics.loaders.outline import chunks, has_headings, sections

HANDBOOK = """\
An introduction before any heading.

# The handbook #

Words with *emphasis*, `code`, a [link](https://example.org) and an
entity: &amp;.

Second heading
with two lines
--------------

- one
- two
  - nested

| name | bytes |
|------|-------|
| page | 87    |

```python
# not a heading
x = 1
```

### Third ![alt text](picture.png)

> quoted

the end
"""


def lines(text):
    return text.splitlines(keepends=True)


def cut(text):
    return list(sections(lines(text)))


def load(path, **options):
    with MARKDOWN.open(path, LoadOptions(**options)) as document:
        return list(document.pages())


@pytest.fixture
def handbook(tmp_path):
    path = tmp_path / "handbook.md"
    path.write_text(HANDBOOK)
    return path


def test_headings_with_hashes_and_with_underlines_cut():
    assert cut("intro\n\n# A\na\n\nB\n===\nb\n\nC one\nC two\n---\nc\n## D\n") == [
        "intro\n\n",
        "# A\na\n\n",
        "B\n===\nb\n\n",
        "C one\nC two\n---\nc\n",
        "## D\n",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "```\n# comment\n```\n",
        "~~~ sh\n# comment\n```\n# still inside\n~~~~\n",
        "````\n```\n# inside\n````\n",
        "- ```\n  # in a list\n  ```\n",
        "    # indented code\n",
        "#hashtag\n",
        "####### seven\n",
        "\\# escaped\n",
        "<!--\n# commented out\n-->\n",
        "<pre>\n\n# verbatim\n\n</pre>\n",
        "text\n\n---\n",
        "---\n\n---\n",
        "***\n---\n",
        "- item\n---\n",
        "> quoted\n---\n",
        "- item\ngoes on\n---\n",
    ],
)
def test_what_only_looks_like_a_heading_does_not_cut(text):
    # given an independent judge: CommonMark sees no heading of the document in it
    tokens = MarkdownIt("commonmark").parse(text)
    assert not any(token.type == "heading_open" for token in tokens)

    whole = "before\n\n" + text + "\nafter\n"
    assert cut(whole) == [whole]
    assert has_headings(lines(text), 1000) is False


def test_headings_after_a_fence_cut_again():
    assert cut("```\n# no\n```\n# yes\n") == ["```\n# no\n```\n", "# yes\n"]


def test_blank_lines_before_the_first_heading_are_no_section():
    assert cut("\n\n# A\n") == ["\n\n# A\n"]
    assert cut("\n\nA\n=\n") == ["\n\nA\n=\n"]


def test_a_piece_of_a_long_line_is_no_heading():
    assert list(sections(["word " * 9, "# still the same line\n", "# A\n"])) == [
        "word " * 9 + "# still the same line\n",
        "# A\n",
    ]


def test_sections_are_those_that_commonmark_sees():
    tokens = MarkdownIt("commonmark").enable("table").parse(HANDBOOK)
    starts = [token.map[0] for token in tokens if token.type == "heading_open"]
    expected = [
        "".join(lines(HANDBOOK)[a:b]) for a, b in zip([0, *starts], [*starts, None], strict=True)
    ]
    assert len(expected) == 4
    assert cut(HANDBOOK) == expected


def test_each_section_is_a_unit_with_plain_text(handbook):
    with MARKDOWN.open(handbook, LoadOptions()) as document:
        assert (document.unit_kind, document.split) == ("section", "cut at headings")
        assert document.unit_count is None
        pages = list(document.pages())

    assert [dict(page.metadata) for page in pages] == [
        {},
        {"heading": "The handbook", "level": 1},
        {"heading": "Second heading\nwith two lines", "level": 2},
        {"heading": "Third alt text", "level": 3},
    ]
    assert pages[1].text == ("The handbook\nWords with emphasis, code, a link and an\nentity: &.\n")
    assert pages[2].text == (
        "Second heading\nwith two lines\n"
        "one\ntwo\nnested\n"
        "name\tbytes\npage\t87\n"
        "# not a heading\nx = 1\n"
    )


def test_the_units_together_are_the_text_of_the_whole(handbook):
    whole = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(HANDBOOK)
    assert "".join(page.text for page in load(handbook)) == plain_text(whole)


def test_text_inside_html_is_kept_and_its_tags_are_not(tmp_path):
    path = tmp_path / "a.md"
    path.write_text("# A\n\n<div>\nkept <b>too</b>\n</div>\n\n<!-- gone -->\n\na<br>b\n")
    assert load(path)[0].text.split() == ["A", "kept", "too", "ab"]


def test_without_headings_it_is_cut_at_line_ends(tmp_path):
    path = tmp_path / "plain.md"
    path.write_text("twelve chars\n\n" * 100)  # 13 characters and an empty line

    with MARKDOWN.open(path, LoadOptions(characters_per_unit=500)) as document:
        assert document.unit_kind == "chunk"
        assert document.split == "cut every 500 characters, at line ends"
        pages = list(document.pages())

    # 36 lines of 14 characters are the first to reach 500: 100 = 2 * 36 + 28
    assert [page.text.count("twelve chars\n") for page in pages] == [36, 36, 28]


def test_a_fence_is_not_cut_by_length():
    text = "a\n```\n" + "x\n" * 50 + "```\nb\n"
    pieces = list(chunks(lines(text), 10))
    assert pieces == ["a\n```\n" + "x\n" * 50 + "```\n", "b\n"]


def test_nothing_to_read_is_one_unit_without_text(tmp_path):
    path = tmp_path / "blank.md"
    path.write_text("\n\n")
    assert [page.text for page in load(path)] == [""]


def test_units_come_before_the_rest_is_read(tmp_path):
    # given a byte that no reader of UTF-8 gets past, far behind the first sections
    path = tmp_path / "a.md"
    path.write_bytes(b"# A\n\na\n\n# B\n\n" + b"b" * 200_000 + b"\n# C\n\xff\n")

    with MARKDOWN.open(path, LoadOptions()) as document:
        units = document.pages()
        assert next(units).text == "A\na\n"
        assert next(units).text == "B\n" + "b" * 200_000 + "\n"
        with pytest.raises(DocumentError, match=r"0xff"):
            next(units)
