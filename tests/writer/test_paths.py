"""From a relative path to a key."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3commit.core.errors import InvalidInputError
from s3commit.core.layout import JobDirectory, belongs_to_job, is_hidden
from s3commit.core.model import Destination
from s3commit.writer.paths import file_key

DIRECTORY = JobDirectory(Destination("lake", "t/"), "9f2c")


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("part-0.snappy.parquet", "t/part-0-9f2c.snappy.parquet"),
        ("dt=2026-11-21/part-0.parquet", "t/dt=2026-11-21/part-0-9f2c.parquet"),
        ("dt=1.5/part", "t/dt=1.5/part-9f2c"),
        ("part-00003-9f2c.c000.parquet", "t/part-00003-9f2c.c000.parquet"),
        ("part.9f2c.parquet", "t/part-9f2c.9f2c.parquet"),
        ("_day=1/f", "t/_day=1/f-9f2c"),
        ("größe=ä/f.csv", "t/größe=ä/f-9f2c.csv"),
    ],
)
def test_the_job_id_comes_before_the_first_dot_of_the_name(path: str, key: str) -> None:
    assert file_key(DIRECTORY, path) == key


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/a",
        "a/",
        "a//b",
        "./a",
        "../a",
        "a/../b",
        "s3://other/a",
        "_SUCCESS",
        ".hidden",
        "a/_b/c",
        "a/.b/c",
        "__magic_job-9f2c/job.json",
        "_commits/x",
        "_x=1",
        "a\nb",
        "a\x7f",
        "\ud800",
        "x" * 1020,
        "ä" * 511,
    ],
)
def test_i7_a_path_that_is_no_data_below_the_destination_is_refused(path: str) -> None:
    with pytest.raises(InvalidInputError, match="file path") as caught:
        file_key(DIRECTORY, path)
    assert caught.value.code == "BAD_PATH"
    assert "\n" not in caught.value.message


def test_a_key_of_1024_bytes_is_the_longest() -> None:
    assert len(file_key(DIRECTORY, "x" * (1024 - len("t/-9f2c")))) == 1024


@given(st.text())
def test_i7_what_is_accepted_is_visible_data_of_the_job(path: str) -> None:
    try:
        key = file_key(DIRECTORY, path)
    except InvalidInputError:
        return
    assert key.startswith("t/")
    assert len(key.encode()) <= 1024
    assert belongs_to_job(key, "9f2c")
    assert not is_hidden(key.removeprefix("t/"))
