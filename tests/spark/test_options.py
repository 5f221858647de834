"""The options of `write`: what is taken, and how what is not is refused."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from s3commit.aws.session import Encryption
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.job import Conditions, Conflict, Scope
from s3commit.spark.frame_read import read
from s3commit.spark.frame_write import CommitResult, write
from s3commit.spark.options import KNOWN, MB, Options, parse_options

PATH = "s3://bucket/prefix"


def parse(**options: str) -> Options:
    return parse_options(PATH, options)


def test_a_path_alone_gives_the_documented_defaults() -> None:
    options = parse()
    assert options.destination.uri == "s3://bucket/prefix/"
    assert options.codec == "snappy"
    assert (options.conflict, options.scope) == (Conflict.APPEND, None)
    assert options.max_records_per_file is None


def test_names_are_compared_without_case_as_spark_lowers_them() -> None:
    options = parse(maxrecordsperfile="10", PartitionBy="dt, hour", COMPRESSION="Zstd")
    assert options.max_records_per_file == 10
    assert options.partition_by == ("dt", "hour")
    assert options.codec == "zstd"


@pytest.mark.parametrize(
    ("text", "size"),
    [("8388608", 8 * MB), ("8MB", 8 * MB), ("16m", 16 * MB), ("3gb", 3072 * MB), ("1G", 1024 * MB)],
)
def test_sizes_are_powers_of_1024(text: str, size: int) -> None:
    assert parse(partSize=text).uploads.parts.first == size


@pytest.mark.parametrize(
    ("text", "seconds"), [("600", 600), ("90s", 90), ("10m", 600), ("2h", 7200), ("5min", 300)]
)
def test_times_are_seconds_unless_they_say_otherwise(text: str, seconds: float) -> None:
    assert parse(commitTimeout=text).commit_timeout == seconds


def test_an_unknown_option_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse(partitionedby="dt")
    assert caught.value.code == "UNKNOWN_OPTION"
    assert "no option 'partitionedby'" in caught.value.message
    for name in KNOWN:
        assert name in caught.value.message


def test_every_option_is_in_the_reference() -> None:
    reference = (Path(__file__).parents[2] / "docs" / "spark.md").read_text()
    assert [name for name in KNOWN if f"`{name}`" not in reference] == []


def test_every_member_of_a_result_is_in_the_reference() -> None:
    reference = (Path(__file__).parents[2] / "docs" / "spark.md").read_text()
    names = [f"result.{one.name}" for one in fields(CommitResult)]
    assert [name for name in names if name not in reference] == []


def test_a_condition_that_does_not_exist_is_an_unknown_option() -> None:
    with pytest.raises(
        InvalidInputError, match=r"no option 'conditions\.minrow'.*conditions\.minRows"
    ):
        parse(**{"conditions.minrow": "1"})


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("compression", "rar", "snappy, zstd, gzip, lz4, none"),
        ("conflict", "merge", "append, fail, replace"),
        ("partitionOverwriteMode", "both", "static, dynamic"),
        ("partitionBy", "dt,,hour", "dt,hour"),
        ("maxRecordsPerFile", "many", "a whole number"),
        ("commitTimeout", "soon", "10m"),
        ("commitTimeout", "0", "10m"),
        ("partSize", "0", "128MB"),
        ("partSize", "8 MiB", "128MB"),
        ("partSize", "100 parsecs", "128MB"),
        ("threads", "0", "0 is not between 1 and 256"),
        ("bucketKey", "perhaps", "true, false"),
        ("encryption", "ROT13", "aws:kms"),
        ("conditions.minRows", "x", "a whole number"),
        ("idempotencyKey", "{{ run_id }}/orders", "nobody has filled it in"),
        ("idempotencyKey", "{airflow}", "nobody has filled it in"),
    ],
)
def test_a_bad_value_names_the_option_and_what_to_give(name: str, value: str, says: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse(**{name: value})
    assert says in caught.value.message
    assert name in caught.value.message
    assert "\n" not in caught.value.message


def test_uploads_and_their_encryption_are_options_too() -> None:
    options = parse(threads="2", partSize="16MB", encryption="AWS:kms", encryptionKeyId="alias/k")
    assert (options.uploads.threads, options.uploads.parts.first) == (2, 16 * MB)
    assert options.encryption == Encryption("aws:kms", "alias/k", None)
    assert parse(encryption="aws:kms", bucketKey="true").encryption == Encryption(
        "aws:kms", None, True
    )
    with pytest.raises(InvalidInputError, match="encryption='aws:kms'"):
        parse(encryptionKeyId="alias/lake")
    with pytest.raises(InvalidInputError, match="part size 1048576 is not between 5242880 and"):
        parse(partSize="1MB")


def test_conditions_are_checked_together() -> None:
    assert parse(**{"conditions.minrows": "3"}).conditions == Conditions(min_rows=3)
    with pytest.raises(InvalidInputError, match="minRows 5 is more than maxRows 4"):
        parse(**{"conditions.minRows": "5", "conditions.maxRows": "4"})


def test_arguments_in_the_wrong_order_are_one_line() -> None:
    class Frame:
        mapInArrow = isStreaming = None  # noqa: N815

    with pytest.raises(InvalidInputError, match=r"the DataFrame comes first: write\(frame, path\)"):
        write(PATH, Frame())  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=r"the session comes first: read\(spark, path\)"):
        read(PATH, Frame())  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="the path is a PosixPath"):
        write(Frame(), Path(PATH))  # type: ignore[arg-type]


@pytest.mark.parametrize("path", ["", "/tmp/x", "file:///tmp/x", "s3://bucket", "s3://B_/x"])
def test_a_path_that_is_no_destination_is_refused(path: str) -> None:
    with pytest.raises(InvalidInputError, match="path") as caught:
        parse_options(path, {})
    assert caught.value.code == "BAD_PATH"


@pytest.mark.parametrize("mode", ["Overwrite", "OVERWRITE", "APPEND", "ErrorIfExists", "Default"])
def test_a_mode_is_read_as_spark_reads_it(mode: str) -> None:
    lower = {"default": "error"}.get(mode.lower(), mode.lower())
    assert parse_options(PATH, {}, mode=mode) == parse_options(PATH, {}, mode=lower)


def test_columns_that_contradict_each_other_are_refused() -> None:
    both = {"partitionBy": "dt,hour"}
    assert parse_options(PATH, both, partition_by=("dt", "hour")).partition_by == ("dt", "hour")
    for columns in (("hour",), ("hour", "dt"), ("dt",)):
        with pytest.raises(InvalidInputError, match=r"partition_by is .* give one of them"):
            parse_options(PATH, both, partition_by=columns)


def test_an_option_in_two_spellings_has_one_value() -> None:
    assert parse(idempotencyKey="k", idempotencykey="k").idempotency_key == "k"
    with pytest.raises(InvalidInputError, match="idempotencykey is given twice"):
        parse(idempotencyKey="k", idempotencykey="other")


# What the write does about files that are there.


def policy(mode: str, session: str | None = None, **said: str) -> tuple[Conflict, Scope]:
    options = parse_options(PATH, said, mode=mode)
    return options.conflict, options.scope_in(session)


def test_the_mode_goes_first_then_options_then_the_session() -> None:
    whole, parts = Scope.DIRECTORY, Scope.PARTITION
    assert policy("append", "dynamic", partitionby="k") == (Conflict.APPEND, whole)
    assert policy("overwrite", "dynamic") == (Conflict.REPLACE, whole)
    assert policy("overwrite", partitionby="k") == (Conflict.REPLACE, whole)
    assert policy("error") == policy("errorifexists") == (Conflict.FAIL, whole)
    dynamic = {"partitionby": "k", "partitionoverwritemode": "dynamic"}
    static = {"partitionby": "k", "partitionoverwritemode": "static"}
    assert policy("overwrite", **dynamic) == (Conflict.REPLACE, parts)
    assert policy("error", **dynamic) == (Conflict.FAIL, parts)
    assert policy("overwrite", **static) == (Conflict.REPLACE, whole)
    assert policy("append", conflict="fail", partitionby="k") == (Conflict.FAIL, whole)
    assert policy("error", conflict="append") == (Conflict.APPEND, whole)
    assert policy("overwrite", conflict="replace") == (Conflict.REPLACE, whole)
    assert policy("overwrite", "Dynamic", partitionby="k") == (Conflict.REPLACE, parts)
    assert policy("overwrite", "dynamic", **static) == (Conflict.REPLACE, whole)


@pytest.mark.parametrize(
    ("mode", "options", "says"),
    [
        ("overwrite", {"conflict": "append"}, "conflict=append contradicts mode 'overwrite'"),
        ("overwrite", {"conflict": "fail"}, "leave the option out, and use mode='append'"),
        ("append", {"conflict": "replace"}, "contradicts mode 'append'.* mode='overwrite'"),
        ("overwrite", {"partitionoverwritemode": "dynamic"}, "give partition_by"),
    ],
)
def test_options_that_contradict_each_other_are_refused_in_one_line(
    mode: str, options: dict[str, str], says: str
) -> None:
    with pytest.raises(InvalidInputError, match=says) as caught:
        policy(mode, **options)
    assert caught.value.code == "BAD_OPTIONS"
    assert "\n" not in caught.value.message
