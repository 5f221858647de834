"""The options of `write`: what is taken, and how what is not is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from s3commit.aws.s3_client import Encryption
from s3commit.core.model.conditions import Conditions
from s3commit.core.model.errors import InvalidInputError
from s3commit.spark.options import KNOWN, MB, Options, parse_options
from s3commit.writer.config import parse_config
from s3commit.writer.sizes import Upload

PATH = {"path": "s3://bucket/prefix"}


def parse(**options: str) -> Options:
    return parse_options({**PATH, **options})


def test_a_path_alone_gives_the_documented_defaults() -> None:
    options = parse()
    assert options.destination.uri == "s3://bucket/prefix/"
    assert (options.file_format, options.codec) == ("parquet", "snappy")
    assert (options.conflict, options.scope) == (None, None)
    assert options.memory_budget == 256 * MB
    assert (options.max_records_per_file, options.target_file_bytes) == (None, None)


def test_names_are_compared_without_case_as_spark_lowers_them() -> None:
    options = parse(maxrecordsperfile="10", PartitionBy="dt, hour", FILEFORMAT="Parquet")
    assert options.max_records_per_file == 10
    assert options.partition_by == ("dt", "hour")
    assert options.file_format == "parquet"


@pytest.mark.parametrize(
    ("text", "size"),
    [("1048576", MB), ("1MB", MB), ("2m", 2 * MB), ("1 MiB", MB), ("3gb", 3072 * MB)],
)
def test_sizes_are_powers_of_1024(text: str, size: int) -> None:
    assert parse(targetFileBytes=text).target_file_bytes == size


@pytest.mark.parametrize(
    ("text", "seconds"), [("600", 600), ("90s", 90), ("10m", 600), ("1.5h", 5400), ("5 min", 300)]
)
def test_times_are_seconds_unless_they_say_otherwise(text: str, seconds: float) -> None:
    assert parse(commitTimeout=text).commit_timeout == seconds


def test_zero_means_no_limit_as_for_sparks_own_option() -> None:
    options = parse(maxRecordsPerFile="0", targetFileBytes="0")
    assert (options.max_records_per_file, options.target_file_bytes) == (0, None)


def test_an_unknown_option_is_refused_with_a_guess_and_the_known_ones() -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse(partitionedby="dt")
    assert caught.value.code == "UNKNOWN_OPTION"
    assert "'partitionedby'. Did you mean 'partitionBy'?" in caught.value.message
    for name in KNOWN:
        assert name in caught.value.message


def test_every_option_is_in_the_reference() -> None:
    reference = (Path(__file__).parents[2] / "docs" / "spark.md").read_text()
    assert [name for name in KNOWN if f"`{name}`" not in reference] == []


def test_a_condition_that_does_not_exist_is_an_unknown_option() -> None:
    with pytest.raises(InvalidInputError, match=r"Did you mean 'conditions.minRows'"):
        parse(**{"conditions.minrow": "1"})


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("fileFormat", "avro", "give one of parquet, orc, csv, json"),
        ("compression", "rar", "snappy, zstd, gzip, lz4, none"),
        ("conflict", "merge", "append, fail, replace"),
        ("partitionOverwriteMode", "both", "static, dynamic"),
        ("partitionBy", "dt,,hour", "dt,hour"),
        ("maxRecordsPerFile", "many", "a whole number"),
        ("targetFileBytes", "100KB", "at least 1MB"),
        ("targetFileBytes", "100 parsecs", "128MB"),
        ("commitTimeout", "soon", "10m"),
        ("commitTimeout", "0", "10m"),
        ("memoryBudget", "1MB", "at least 16MB"),
        ("idempotencyKey", "", "1 to 1024"),
        ("conditions.minRows", "x", "a whole number"),
    ],
)
def test_a_bad_value_names_the_option_and_what_to_give(name: str, value: str, says: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse(**{name: value})
    assert says in caught.value.message
    assert name in caught.value.message
    assert "\n" not in caught.value.message


def test_uploads_share_the_memory_budget_and_may_be_staged() -> None:
    options = parse(upload="Stage", threads="2", partSize="16MB", memoryBudget="64MB")
    assert options.uploads.upload is Upload.STAGE
    assert (options.uploads.threads, options.uploads.parts.first) == (2, 16 * MB)
    assert (options.uploads.memory_bytes, options.uploads.in_flight_bytes) == (8 * MB, 6 * MB)


def test_conditions_name_their_columns_in_lower_case_as_spark_gives_them() -> None:
    found = parse(**{"conditions.maxnullfraction.price": "0.25", "conditions.minrows": "3"})
    assert found.conditions == Conditions(min_rows=3, max_null_fraction={"price": 0.25})


def test_the_codecs_are_the_formats_own() -> None:
    assert parse(fileFormat="orc").codec == "zstd"
    assert parse(fileFormat="json").codec == "none"
    with pytest.raises(InvalidInputError, match=r"one of none, gzip, bzip2 \(fileFormat csv\)"):
        parse(fileFormat="csv", compression="snappy")


def test_a_configuration_says_what_no_option_says() -> None:
    text = """
    [default]
    threads = 2
    [\"s3://bucket/\"]
    encryption = "aws:kms"
    encryptionKeyId = "alias/lake"
    conditions.minRows = 1
    conditions.maxNullFraction.Price = 0.5
    """
    config = parse_config(text, source="test")
    raw = {**PATH, "threads": "8", "conditions.maxnullfraction.price": "0.25"}
    options = parse_options(raw, config)
    assert options.uploads.threads == 8
    assert options.encryption == Encryption("aws:kms", "alias/lake", None)
    assert options.conditions == Conditions(min_rows=1, max_null_fraction={"price": 0.25})
    plain = parse_options({**PATH, "encryption": "AES256"}, config)
    assert plain.encryption == Encryption("AES256", None, None)
    assert plain.uploads.threads == 2


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("upload", "later", "stream, stage"),
        ("partSize", "1MB", "5MB to 5GB"),
        ("encryptionKeyId", "alias/lake", "encryption='aws:kms'"),
        ("conditions.maxNullFraction.price", "2", "a share from 0 to 1"),
        ("conditions.maxNullFraction.", "1", "no option"),
    ],
)
def test_a_bad_value_of_an_option_that_a_configuration_may_hold(
    name: str, value: str, says: str
) -> None:
    with pytest.raises(InvalidInputError, match=says):
        parse(**{name: value})


@pytest.mark.parametrize("path", ["", "/tmp/x", "file:///tmp/x", "s3://bucket", "s3://B_/x"])
def test_a_path_that_is_no_destination_is_refused(path: str) -> None:
    with pytest.raises(InvalidInputError, match="path") as caught:
        parse_options({"path": path})
    assert caught.value.code == "BAD_PATH"
