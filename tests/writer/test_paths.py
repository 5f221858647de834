"""From a relative path to a key."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3commit.core.formats.layout import JobDirectory, is_hidden, owner_of
from s3commit.core.model.destination import Destination
from s3commit.core.model.errors import InvalidInputError
from s3commit.writer.options import make_options
from s3commit.writer.target import file_key
from tests.writer.support import JOB

DIRECTORY = JobDirectory(Destination("lake", "t/"), JOB)


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("part-0.snappy.parquet", f"t/part-0-{JOB}.snappy.parquet"),
        ("dt=2026-11-21/part-0.parquet", f"t/dt=2026-11-21/part-0-{JOB}.parquet"),
        ("dt=1.5/part", f"t/dt=1.5/part-{JOB}"),
        (f"part-00003-{JOB}.c000.parquet", f"t/part-00003-{JOB}.c000.parquet"),
        (f"part.{JOB}.parquet", f"t/part-{JOB}.{JOB}.parquet"),
        (f"{JOB}.csv", f"t/{JOB}.csv"),
        (f"part-{JOB}-0.csv", f"t/part-{JOB}-0-{JOB}.csv"),
        (f"{JOB}/f", f"t/{JOB}/f-{JOB}"),
        ("größe=ä/f.csv", f"t/größe=ä/f-{JOB}.csv"),
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
        f"__magic_job-{JOB}/_job.json",
        "_commits/x",
        "_x=1",
        "_day=1/f",
        "a/f._COPYING_",
        "p=x._COPYING_/f",
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


def test_i7_a_character_that_answers_of_s3_cannot_carry_is_refused() -> None:
    """XML 1.0: https://www.w3.org/TR/xml/#charsets; and the control characters that it has."""
    refused = set[int]()
    for number in (*range(0x1_0000), 0x1_0000, 0x1_FFFE, 0x10_FFFF):
        try:
            file_key(DIRECTORY, f"p=a{chr(number)}b/f")
        except InvalidInputError:
            refused.add(number)
    assert refused == {*range(0x20), 0x7F, *range(0xD800, 0xE000), 0xFFFE, 0xFFFF}


def test_a_name_that_some_readers_skip_is_written_on_request() -> None:
    key = file_key(DIRECTORY, "_day=1/f._COPYING_", check_names=False)
    assert key == f"t/_day=1/f-{JOB}._COPYING_"


def test_a_key_of_1024_bytes_is_the_longest() -> None:
    assert len(file_key(DIRECTORY, "x" * (1024 - len(f"t/-{JOB}")))) == 1024


@given(st.text())
def test_i7_what_is_accepted_is_visible_data_of_the_job(path: str) -> None:
    try:
        key = file_key(DIRECTORY, path)
    except InvalidInputError:
        return
    assert key.startswith("t/")
    assert len(key.encode()) <= 1024
    assert owner_of(key) == JOB
    assert not is_hidden(key.removeprefix("t/"))


@pytest.mark.parametrize("path", ["t/p=50%25/", "t/a b+ü~/", "t/_raw/"])
def test_a_path_that_readers_read_is_taken(path: str) -> None:
    assert make_options(f"s3://lake/{path}").destination.prefix == path


@pytest.mark.parametrize("path", ["50%25/t/", "t/p=*/", "t[1]/", "t?/", "{a,b}/", "t#1/"])
def test_a_path_that_readers_take_for_anothers_is_refused_unless_asked_for(path: str) -> None:
    with pytest.raises(InvalidInputError, match="check_names=False") as caught:
        make_options(f"s3://lake/{path}")
    assert caught.value.code == "BAD_PATH"
    assert make_options(f"s3://lake/{path}", check_names=False).destination.prefix == path
