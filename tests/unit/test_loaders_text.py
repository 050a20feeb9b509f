"""Plain text: encodings, the byte that is wrong, the cuts, and no whole-file read."""

import codecs
import re
import tracemalloc

import pytest

from diagnostics.errors import DocumentError, UsageError
from diagnostics.loaders.base import LoadOptions
from diagnostics.loaders.decoding import BLOCK_BYTES, LINE_CHARACTERS, open_text
from diagnostics.loaders.text import TEXT, cut

GERMAN = "Die Übersicht über die Größe der Äcker, naïve Entwürfe und ein Café.\n"
CHINESE = "这份报告讲的是内存：第八十七页一直没有被释放。\n"


def file(tmp_path, content, name="notes.txt"):
    path = tmp_path / name
    path.write_bytes(content)
    return path


def load(path, **options):
    with TEXT.open(path, LoadOptions(**options)) as document:
        return [page.text for page in document.pages()]


def test_cut_takes_exactly_so_many_characters_across_blocks():
    assert list(cut(["abc", "", "defgh", "ij", "k"], 4)) == ["abcd", "efgh", "ijk"]
    assert list(cut(["abcdefgh"], 4)) == ["abcd", "efgh"]
    assert list(cut(["ab", "cd"], 4)) == ["abcd"]
    assert list(cut([], 4)) == []


def test_a_text_is_cut_into_units_and_says_so(tmp_path):
    path = file(tmp_path, b"x" * 10_001)
    with TEXT.open(path, LoadOptions(characters_per_unit=4000)) as document:
        assert (document.unit_kind, document.unit_count) == ("chunk", None)
        assert document.split == "cut every 4,000 characters"
        assert document.marks_own_units is False
        assert [len(page.text) for page in document.pages()] == [4000, 4000, 2001]
        assert len(list(document.pages())) == 3  # from the start again


@pytest.mark.parametrize("offset", [1, 2, 3])
def test_characters_on_the_border_of_two_blocks_stay_whole(tmp_path, offset):
    # given a character of four bytes that begins `offset` bytes before the block ends
    text = "a" * (BLOCK_BYTES - offset) + "😀" + "中" * 50_000
    path = file(tmp_path, text.encode())

    pieces = load(path, characters_per_unit=1000)

    assert "".join(pieces) == text


def test_line_ends_stay_as_they_are(tmp_path):
    assert load(file(tmp_path, b"a\r\nb\rc\n\x0cd")) == ["a\r\nb\rc\n\x0cd"]


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
    ],
)
@pytest.mark.parametrize("given", [False, True])
def test_a_byte_order_mark_decides_and_is_not_text(tmp_path, mark, encoding, given):
    path = file(tmp_path, mark + (CHINESE * 3).encode(encoding))
    family = re.sub("-[bl]e", "", encoding)
    assert load(path, encoding=family if given else None) == [CHINESE * 3]


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (GERMAN * 20, "cp1252"),
        (GERMAN * 20, "latin-1"),
        (CHINESE * 20, "utf-8"),
        (CHINESE * 20, "gb18030"),
        (CHINESE * 20, "utf-16-le"),  # without a mark
        (CHINESE * 3000, "gb18030"),  # longer than what the detection looks at
    ],
)
def test_the_encoding_is_detected(tmp_path, text, encoding):
    assert "".join(load(file(tmp_path, text.encode(encoding)))) == text


def test_a_given_encoding_wins_over_the_detected_one(tmp_path):
    assert load(file(tmp_path, "Größe".encode()), encoding="cp1252") == ["GrÃ¶ÃŸe"]


def test_a_wrong_byte_is_named_by_its_offset_and_what_stands_before_it_is_kept(tmp_path):
    # given UTF-8 as far as the detection looks, and a byte of cp1252 after it
    good = "é" * BLOCK_BYTES
    at = len(good.encode())
    path = file(tmp_path, good.encode() + b"\xe9t\xe9")
    seen = []

    with (
        TEXT.open(path, LoadOptions(characters_per_unit=1000)) as document,
        pytest.raises(DocumentError) as raised,
    ):
        seen.extend(page.text for page in document.pages())

    assert f"byte {at:,} (0xe9)" in raised.value.message
    assert "utf-8 (detected)" in raised.value.message
    assert "--encoding" in raised.value.next_step
    assert len("".join(seen)) == BLOCK_BYTES // 1000 * 1000  # every unit that is whole


@pytest.mark.parametrize("before", [0, 1, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1])
def test_the_offset_is_right_wherever_the_blocks_end(tmp_path, before):
    # 0xe4 begins a character of three bytes, "x" does not go on with it
    path = file(tmp_path, b"a" * before + b"\xe4x")
    with pytest.raises(DocumentError, match=re.escape(f"(given): byte {before:,} (0xe4)")):
        load(path, encoding="utf-8")


def test_a_text_that_ends_inside_a_character_is_told(tmp_path):
    path = file(tmp_path, b"ab" + "中".encode()[:2])
    with pytest.raises(DocumentError, match=r"byte 2 \(0xe4\)"):
        load(path, encoding="utf-8")


@pytest.mark.parametrize("name", ["klingon", "hex", "a\0b"])
def test_an_encoding_that_does_not_exist_is_a_wrong_call(tmp_path, name):
    with pytest.raises(UsageError, match="no text encoding"):
        load(file(tmp_path, b"text"), encoding=name)


def test_what_is_no_text_is_told_as_it_opens(tmp_path):
    binary = bytes(range(256)) * 400
    with pytest.raises(DocumentError, match="not text in any encoding"):
        load(file(tmp_path, binary))


def test_units_have_at_least_one_character():
    with pytest.raises(UsageError):
        LoadOptions(characters_per_unit=0)


def test_the_password_is_not_in_the_repr():
    assert "hunter2" not in repr(LoadOptions(password="hunter2"))


def test_lines_keep_their_ends_and_long_ones_come_in_pieces(tmp_path):
    long = "z" * (LINE_CHARACTERS * 3 + 5)
    path = file(tmp_path, f"one\ntwo\r\n\n{long}\nend".encode())

    lines = list(open_text(path, None).lines())

    assert lines[:3] == ["one\n", "two\r\n", "\n"]
    assert lines[-1] == "end"
    assert "".join(lines) == f"one\ntwo\r\n\n{long}\nend"
    assert max(map(len, lines)) <= 2 * LINE_CHARACTERS


@pytest.fixture
def huge(tmp_path):
    """200 MB of text, most of it a hole in the file."""
    path = tmp_path / "huge.txt"
    with path.open("wb") as stream:
        stream.write(b"The first line.\n" * (2 * BLOCK_BYTES // 16))
        stream.truncate(200_000_000)
    return path


def test_the_first_unit_comes_without_reading_the_file(huge):
    with TEXT.open(huge, LoadOptions()):
        pass  # what is imported on first use is not the document's
    tracemalloc.start()
    try:
        with TEXT.open(huge, LoadOptions()) as document:
            first = next(document.pages())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert first.text == ("The first line.\n" * 250)
    assert peak < 10 * BLOCK_BYTES


def test_a_long_text_streams_in_little_memory(huge):
    characters = 0
    tracemalloc.start()
    try:
        with TEXT.open(huge, LoadOptions(characters_per_unit=100_000)) as document:
            for page in document.pages():
                characters += len(page.text)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert characters == 200_000_000
    assert peak < 20 * BLOCK_BYTES
