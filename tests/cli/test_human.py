"""Numbers and moments as people read and write them."""

from __future__ import annotations

import pytest

from s3commit.cli.text import age, amount, many, number, parse_age, printable, size


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0s"),
        (0, "0s"),
        (59.9, "59s"),
        (60, "1m"),
        (3661, "1h 1m"),
        (86400, "1d"),
        (86405, "1d"),
        (90061, "1d 1h"),
    ],
)
def test_ages_have_two_units(seconds: float, text: str) -> None:
    assert age(seconds) == text


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("15m", 900), ("12h", 43200), ("2d", 172800), ("1w", 604800), (" 0s ", 0)],
)
def test_ages_are_read(text: str, seconds: int) -> None:
    assert parse_age(text) == seconds


@pytest.mark.parametrize("text", ["", "2", "d", "-1d", "1.5h", "2 d", "1y", "٣d"])
def test_what_is_no_age_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no age"):
        parse_age(text)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (None, "-"),
        (0, "0 B"),
        (1023, "1023 B"),
        (1536, "1.5 KiB"),
        (12 * 1024**3, "12.0 GiB"),
        (3 * 1024**5, "3.0 PiB"),
    ],
)
def test_sizes_have_binary_units(count: int | None, text: str) -> None:
    assert size(count) == text


def test_small_words() -> None:
    assert (many(1, "file"), many(2, "file"), many(0, "is", "are")) == (
        "1 file",
        "2 files",
        "0 are",
    )
    assert amount(1, 5, None) == "1 file, 5 B"
    assert amount(2, 5, 1) == "2 files, 5 B, 1 row"
    assert (number(None), number(7)) == ("-", "7")
    assert printable("a\x1b\u202eb") == "a\\x1b\\u202eb"
