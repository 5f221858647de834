"""The keywords and options of `write`: what is taken, and how what is not is refused."""

from pathlib import Path
from typing import Any

import pytest

from s3commit.aws.clients import Encryption
from s3commit.core.documents.job_json import Conditions
from s3commit.core.model.destination import Conflict, Scope
from s3commit.core.model.errors import InvalidInputError
from s3commit.spark import batch_writer, read, write
from s3commit.spark.options import KNOWN, parse_options
from s3commit.writer.options import Options

PATH = "s3://bucket/prefix"
REFERENCE = Path(__file__).parents[2] / "docs" / "reference.md"


def parse(options: dict[str, Any] | None = None, **keywords: Any) -> Options:
    return parse_options(PATH, options, **keywords)


def test_a_path_alone_gives_the_documented_defaults() -> None:
    options = parse()
    assert options.destination.uri == "s3://bucket/prefix/"
    assert options.codec == "snappy"
    assert (options.conflict, options.scope) == (Conflict.APPEND, None)
    assert options.max_records_per_file is None


# Each of Spark's names, with a text of its and the keyword that means the same.
SPELLINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "compression": ("UNCOMPRESSED", {"compression": "none"}),
    "partitionOverwriteMode": ("Dynamic", {"partition_overwrite_mode": "dynamic"}),
    "maxRecordsPerFile": ("-1", {"max_records_per_file": 0}),
    "idempotencyKey": ("day 1", {"idempotency_key": "day 1"}),
    "conditions.minFiles": ("2", {"min_files": 2}),
    "checkPartitions": ("false", {"check_partitions": False}),
    "commitTimeout": ("10m", {"commit_timeout": 600}),
}


@pytest.mark.parametrize("name", KNOWN)
def test_an_option_of_sparks_means_its_keyword_and_is_not_given_beside_it(name: str) -> None:
    text, keyword = SPELLINGS[name]
    columns: dict[str, Any] = {"partition_by": "dt"}
    meant = parse(**keyword, **columns)
    assert meant != parse(**columns)
    assert parse({name: text}, **columns) == parse({name.upper(): text}, **columns) == meant
    assert parse({name: None}, **columns) == parse(**columns)
    assert f"`{name}`" in REFERENCE.read_text()
    for both in ({name: text, name.upper(): text}, {name: text}):
        with pytest.raises(InvalidInputError, match="mean the same: give one of them") as caught:
            parse(both, **columns, **(keyword if len(both) == 1 else {}))
        assert caught.value.code == "BAD_OPTIONS"


@pytest.mark.parametrize(
    ("text", "seconds"), [("600", 600), ("90s", 90), ("10m", 600), ("2h", 7200), ("5min", 300)]
)
def test_times_are_seconds_unless_they_say_otherwise(text: str, seconds: float) -> None:
    assert parse({"commitTimeout": text}).commit_timeout == seconds


@pytest.mark.parametrize("name", ["partitionedby", "min_rows", "conditions.minFile", "mode"])
def test_an_unknown_option_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse({name: "dt"})
    assert caught.value.code == "UNKNOWN_OPTION"
    assert f"unknown option {name!r}" in caught.value.message
    assert [known for known in KNOWN if known not in caught.value.message] == []


class Column:
    """As that of Spark, which does not say whether it is true."""

    def __bool__(self) -> bool:
        raise ValueError("Cannot convert column into bool")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"options": {"compression": "rar"}}, "snappy, zstd, gzip, lz4, none"),
        ({"options": {"partitionOverwriteMode": "both"}}, "static, dynamic"),
        ({"options": {"maxRecordsPerFile": "many"}}, "a whole number"),
        ({"options": {"commitTimeout": "soon"}}, "10m"),
        ({"options": {"commitTimeout": "0"}}, "10m"),
        ({"options": {"checkPartitions": "perhaps"}}, "true, false"),
        ({"options": {"conditions.minFiles": "x"}}, "a whole number"),
        ({"mode": "ignore"}, "append, error, errorifexists, overwrite"),
        ({"compression": "rar"}, "snappy, zstd, gzip, lz4, none"),
        ({"partition_overwrite_mode": "both"}, "static, dynamic"),
        ({"max_records_per_file": "5"}, "a number of rows"),
        ({"max_records_per_file": -1}, "a number of rows"),
        ({"commit_timeout": "10m"}, "seconds"),
        ({"commit_timeout": 0}, "seconds"),
        ({"commit_timeout": True}, "seconds"),
        ({"check_partitions": "no"}, "True or False"),
        ({"check_names": "no"}, "True or False"),
        ({"partition_by": "_day"}, "give check_names=False"),
        ({"partition_by": ["day", ".hour"], "check_names": False}, "rename it"),
        ({"uploads": 4}, "s3commit.UploadSettings"),
        ({"encryption": "aws:kms"}, "s3commit.Encryption"),
        ({"encryption": Encryption("ROT13")}, "aws:kms:dsse"),
        ({"encryption": Encryption("AES256", "alias/k")}, "a key for KMS alone"),
        ({"encryption": Encryption("AES256", None, True)}, "a key for KMS alone"),
        ({"min_rows": "5"}, "whole number from 0"),
        ({"min_rows": 5, "max_rows": 4}, "at least 5 rows and at most 4 can't be"),
        ({"idempotency_key": ""}, "give 1 to 1,024 characters, not 0"),
        ({"idempotency_key": "x" * 1025}, "give 1 to 1,024 characters, not 1,025"),
        ({"options": {"idempotencyKey": "{airflow}"}}, "was not filled in"),
        ({"partition_overwrite_mode": "dynamic"}, "give partition_by"),
        ({"partition_by": 1}, "a column's name, or a list of names"),
        ({"partition_by": [Column()]}, "a column's name, or a list of names"),
        ({"partition_by": Column()}, "a column's name, or a list of names"),
    ],
)
def test_a_bad_value_names_the_option_and_what_to_give(given: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse(**given)
    assert says in caught.value.message
    name = next(iter(given.get("options") or given))
    assert name in caught.value.message or name == "min_rows" or "idempotency" in name
    assert "\n" not in caught.value.message


def test_a_batch_has_a_key_of_its_own() -> None:
    with pytest.raises(InvalidInputError, match="leave the option idempotencyKey out"):
        batch_writer(PATH, options={"idempotencyKey": "k"})


def test_arguments_in_the_wrong_order_are_one_line() -> None:
    class Frame:
        mapInArrow = isStreaming = None  # noqa: N815

    with pytest.raises(InvalidInputError, match=r"the DataFrame comes first: write\(df, path\)"):
        write(PATH, Frame())  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=r"the session comes first: read\(spark, path\)"):
        read(PATH, Frame())  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="the path is a PosixPath"):
        write(Frame(), Path(PATH))  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["Overwrite", "OVERWRITE", "APPEND", "ErrorIfExists"])
def test_a_mode_is_read_as_spark_reads_it(mode: str) -> None:
    assert parse(mode=mode) == parse(mode=mode.lower())


# What the write does about files that are there.


def policy(mode: str, session: str | None = None, **said: Any) -> tuple[Conflict, Scope]:
    options = parse(mode=mode, **said)
    return options.conflict, options.scope_in(session)


def test_the_mode_goes_first_then_keywords_then_the_session() -> None:
    whole, parts = Scope.DIRECTORY, Scope.PARTITION
    dynamic = {"partition_by": "k", "partition_overwrite_mode": "dynamic"}
    static = {"partition_by": "k", "partition_overwrite_mode": "static"}
    assert policy("append", "dynamic", partition_by="k") == (Conflict.APPEND, whole)
    assert policy("overwrite", "dynamic") == (Conflict.REPLACE, whole)
    assert policy("overwrite", partition_by="k") == (Conflict.REPLACE, whole)
    assert policy("error") == policy("errorifexists") == (Conflict.FAIL, whole)
    assert policy("overwrite", **dynamic) == (Conflict.REPLACE, parts)
    assert policy("error", **dynamic) == (Conflict.FAIL, parts)
    assert policy("overwrite", **static) == (Conflict.REPLACE, whole)
    assert policy("overwrite", "Dynamic", partition_by="k") == (Conflict.REPLACE, parts)
    assert policy("overwrite", "dynamic", **static) == (Conflict.REPLACE, whole)


def test_conditions_and_uploads_are_keywords() -> None:
    assert parse(min_rows=3, max_rows=3).conditions == Conditions(min_rows=3, max_rows=3)
    for sound in (Encryption("aws:kms", "alias/k", True), Encryption("AES256")):
        assert parse(encryption=sound).encryption == sound
