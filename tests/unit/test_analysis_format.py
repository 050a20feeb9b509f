"""Sizes, times and counts look the same everywhere."""

import pytest

from diagnostics.analysis.format import (
    counted,
    format_bytes,
    format_count,
    format_seconds,
    format_share,
    sentence_case,
)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (812, "812 B"),
        (999.4, "999 B"),
        (999.6, "1.0 kB"),
        (1000, "1.0 kB"),
        (7_200_000, "7.2 MB"),
        (99_940_000, "99.9 MB"),
        (99_960_000, "100 MB"),
        (150_000_000, "150 MB"),
        (999_600_000, "1.0 GB"),
        (2_165_000_000, "2.2 GB"),
        (-7_200_000, "-7.2 MB"),
        (3_000_000_000_000_000_000, "3000 PB"),
    ],
)
def test_bytes(size, text):
    assert format_bytes(size) == text


def test_growth_has_its_sign():
    assert format_bytes(7_200_000, signed=True) == "+7.2 MB"
    assert format_bytes(-7_200_000, signed=True) == "-7.2 MB"
    assert format_bytes(0, signed=True) == "0 B"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.0000125, "12.5 µs"),
        (0.0013, "1.3 ms"),
        (0.0743, "74.3 ms"),
        (0.82, "820 ms"),
        (0.9996, "1.0 s"),
        (1.3, "1.3 s"),
        (59.94, "59.9 s"),
        (59.96, "1 min 0 s"),
        (125, "2 min 5 s"),
        (3599.7, "1 h 0 min"),
        (3780, "1 h 3 min"),
        (-1.3, "-1.3 s"),
    ],
)
def test_seconds(seconds, text):
    assert format_seconds(seconds) == text


def test_counts_and_shares():
    assert format_count(20000) == "20,000"
    assert format_share(0.031) == "3.1 %"
    assert format_share(0) == "0.0 %"
    assert [counted(1, "page"), counted(87, "page")] == ["1 page", "87 pages"]
    assert [counted(2, "batch"), counted(2, "entry"), counted(0, "day")] == [
        "2 batches",
        "2 entries",
        "0 days",
    ]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("page 87 of A", "Page 87 of A"),
        ("3.1 MB were freed", "3.1 MB were freed"),
        ("malloc_trim gave back 2 MB", "malloc_trim gave back 2 MB"),
        ("run() ends", "run() ends"),
        ("gc.collect frees it", "gc.collect frees it"),
        ("`page.close()` runs in the loop", "`page.close()` runs in the loop"),
        ("freed. Then kept", "Freed. Then kept"),
        ("", ""),
    ],
)
def test_a_sentence_begins_with_a_capital_but_a_name_from_code_keeps_its_letters(text, sentence):
    assert sentence_case(text) == sentence
