"""HTML: the text that a reader sees, cut at h1 to h3, in whatever encoding the page declares."""

import tracemalloc

import lxml.html
import pytest

from diagnostics.errors import DocumentError
from diagnostics.loaders.base import LoadOptions
from diagnostics.loaders.html import HTML, declared_encoding

MINUTES = """\
<!DOCTYPE html>
<html><head><meta charset="utf-8"><title>Not on the page</title>
<style>h1 { color: red }</style><script>if (a < b) { "<h1>no</h1>" }</script></head>
<body>
<p>Before   the
first   heading.</p>
<h1>Minutes &amp; <em>notes</em></h1>
<p>One<br>two, <b>bold</b>text &copy; 中文.</p>
<h2>Table</h2>
<table><tr><th>name</th><th>bytes</th></tr>
<tr><td>page</td><td>87</td></tr></table>
<pre>  kept
    as it is
</pre>
<h4>Not a cut</h4>
<!-- <h2>nor this</h2> -->
<ul><li>a<li>b</ul>
</body></html>
"""

EXPECTED = [
    "Before the first heading.\n",
    "Minutes & notes\nOne\ntwo, boldtext © 中文.\n",
    "Table\nname\tbytes\npage\t87\n  kept\n    as it is\nNot a cut\na\nb\n",
]


def write(tmp_path, text, encoding="utf-8"):
    path = tmp_path / "minutes.html"
    path.write_bytes(text.encode(encoding))
    return path


def load(path, **options):
    with HTML.open(path, LoadOptions(**options)) as document:
        return list(document.pages())


def test_each_section_is_a_unit_with_what_a_reader_sees(tmp_path):
    with HTML.open(write(tmp_path, MINUTES), LoadOptions()) as document:
        assert (document.unit_kind, document.split) == ("section", "cut at headings h1 to h3")
        pages = list(document.pages())

    assert [page.text for page in pages] == EXPECTED
    assert [dict(page.metadata) for page in pages] == [
        {},
        {"heading": "Minutes & notes", "level": 1},
        {"heading": "Table", "level": 2},
    ]


def test_the_units_together_have_every_word_of_the_page(tmp_path):
    tree = lxml.html.fromstring(MINUTES.encode())
    for unseen in tree.xpath("//title | //style | //script | //comment()"):
        unseen.getparent().remove(unseen)
    letters = "".join(tree.text_content().split())

    text = "".join(page.text for page in load(write(tmp_path, MINUTES)))

    assert "".join(text.split()) == letters


@pytest.mark.parametrize("size", [1, 7, 4000])
def test_without_headings_it_is_cut_by_length(tmp_path, size):
    page = MINUTES.replace("h1>", "h5>").replace("h2>", "h6>")

    with HTML.open(write(tmp_path, page), LoadOptions(characters_per_unit=size)) as document:
        assert document.unit_kind == "chunk"
        assert document.split == f"cut every {size:,} characters"
        chunks = [page.text for page in document.pages()]

    assert "".join(chunks) == "".join(EXPECTED)
    assert {len(chunk) for chunk in chunks[:-1]} <= {size}


@pytest.mark.parametrize(
    ("declaration", "encoding"),
    [
        ('<meta charset="gb2312">', "gb18030"),
        ('<meta http-equiv="Content-Type" content="text/html; charset=GBK">', "gb18030"),
        ('<?xml version="1.0" encoding="gb18030"?>', "gb18030"),
        ("", "gb18030"),
        ("", "utf-8"),
        ('<meta charset="no-such-thing">', "utf-8"),
    ],
)
def test_the_declared_encoding_is_used_and_else_detected(tmp_path, declaration, encoding):
    chinese = "这份报告讲的是内存。" * 20
    path = write(tmp_path, f"{declaration}<h1>第一</h1><p>{chinese}</p>", encoding)
    assert [page.text for page in load(path)] == [f"第一\n{chinese}\n"]


def test_latin_1_is_read_as_its_superset_as_browsers_do(tmp_path):
    path = write(tmp_path, '<meta charset="iso-8859-1"><p>5 € – “quoted”</p>', "cp1252")
    assert declared_encoding(path) == "cp1252"
    assert load(path)[0].text == "5 € – “quoted”\n"


def test_a_wrong_declaration_is_told_with_the_byte(tmp_path):
    path = write(tmp_path, '<meta charset="utf-8"><p>Größe</p>', "cp1252")
    at = path.read_bytes().index(b"\xf6")
    with pytest.raises(DocumentError, match=rf"utf-8 \(declared in the file\): byte {at} \(0xf6\)"):
        load(path)
    assert load(path, encoding="cp1252")[0].text == "Größe\n"


def test_nothing_to_read_is_one_unit_without_text(tmp_path):
    assert [page.text for page in load(write(tmp_path, "<script>1</script>"))] == [""]


@pytest.mark.parametrize("heading", ["h2", "h5"])
def test_a_long_page_streams_in_little_memory(tmp_path, heading):
    body = f"<{heading}>Head</{heading}>" + "<p>word word word</p>" * 100
    load(write(tmp_path, "<p>a</p>"))  # what is imported on first use is not the document's
    path = write(tmp_path, "<body>" + body * 400)  # 0.8 MB, 0.6 MB of it text

    tracemalloc.start()
    try:
        with HTML.open(path, LoadOptions()) as document:
            units = sum(1 for _ in document.pages())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    text = len("Head\n") + 100 * len("word word word\n")
    assert units == (400 if heading == "h2" else -(-400 * text // 4000))
    assert peak < 400_000
