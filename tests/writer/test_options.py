"""The keywords of a write: what is taken, and how what is not is refused."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from s3commit.aws.clients import Encryption
from s3commit.core.documents.job_json import Conditions
from s3commit.core.model.destination import Conflict, Scope
from s3commit.core.model.errors import InvalidInputError
from s3commit.spark import read, write
from s3commit.writer.options import (
    COUNTS,
    Options,
    check_key,
    for_a_table,
    make_options,
    nothing_written,
)

PATH = "s3://bucket/prefix"
TEMPLATES = ("{{ ds }}", "${ds}", "%(ds)s", "{ds}", "{}")


def parse(path: Any = PATH, **keywords: Any) -> Options:
    return for_a_table(make_options(path, **keywords))


def test_a_path_alone_gives_the_documented_defaults() -> None:
    options = parse()
    assert options.destination.uri == "s3://bucket/prefix/"
    assert options.codec == "snappy"
    assert (options.conflict, options.scope) == (Conflict.APPEND, None)
    assert options.max_records_per_file is None


class Column:
    """As that of Spark, which does not say whether it is true."""

    def __bool__(self) -> bool:
        raise ValueError("Cannot convert column into bool")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"path": "s3://lake/{{ ds }}/"}, "path='s3://lake/{{ ds }}/'"),
        ({"path": Path("s3://lake/t")}, "the path is a PosixPath: give a string"),
        ({"path": "s3://lake"}, "is a whole bucket"),
        ({"path": "/tmp/t"}, "must look like"),
        ({"mode": "ignore"}, "append, error, errorifexists, overwrite"),
        ({"compression": "rar"}, "snappy, zstd, gzip, lz4, none"),
        ({"partition_overwrite_mode": "both"}, "static, dynamic"),
        ({"max_records_per_file": "5"}, "a number of rows"),
        ({"max_records_per_file": -1}, "a number of rows"),
        ({"commit_timeout": "10m"}, "seconds"),
        ({"commit_timeout": 0}, "seconds"),
        ({"commit_timeout": True}, "seconds"),
        ({"commit_timeout": float("inf")}, "give seconds, more than 0"),
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
        *(
            ({name: count}, f"{name}={count}: give a whole")
            for name in COUNTS
            for count in (-1, 1.5)
        ),
        ({"min_rows": 5, "max_rows": 4}, "at least 5 rows and at most 4 can't be"),
        ({"idempotency_key": ""}, "give 1 to 1,024 characters, not 0"),
        ({"idempotency_key": "x" * 1025}, "give 1 to 1,024 characters, not 1,025"),
        ({"idempotency_key": "\ud800"}, "characters that UTF-8 has"),
        ({"idempotency_key": date(2026, 11, 26)}, "=datetime.date(2026, 11, 26): give a text"),
        *(({"idempotency_key": f"day-{one}"}, "was not filled in") for one in TEMPLATES),
        *(({"note": said}, "at most 500 characters") for said in ("x" * 501, "a\nb", "\ud800", 7)),
        *(
            ({"labels": said}, "at most 10 names (1 to 64 of A-Z a-z 0-9 _ . : / -)")
            for said in (
                *({name: ""} for name in ("", "a b", "a=b", "n" * 65, 7)),
                *({"n": value} for value in ("x" * 257, "\x1b[2J", "\x85", None, 7)),
                *({f"n{number}": "" for number in range(11)}, ["n=1"], "n=1"),
            )
        ),
        ({"partition_overwrite_mode": "dynamic"}, "give partition_by"),
        *(({"partition_by": one}, "1 to 255 characters") for one in ("", "x" * 256)),
        ({"partition_by": 1}, "a column's name, or a list of names"),
        ({"partition_by": [Column()]}, "a column's name, or a list of names"),
        ({"partition_by": Column()}, "a column's name, or a list of names"),
    ],
)
def test_a_bad_value_names_the_keyword_and_what_to_give(given: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInputError) as caught, nothing_written():
        parse(**given)
    assert says in caught.value.message
    name = next(iter(given))
    assert name in caught.value.message or name == "min_rows" or "idempotency" in name
    assert caught.value.message.endswith(". Nothing was written.")
    assert "\n" not in caught.value.message


def test_the_name_of_a_query_is_a_key_of_its_own() -> None:
    for name in ("", *TEMPLATES):
        with pytest.raises(InvalidInputError, match="query"):
            check_key(name, "query")


def test_the_largest_note_and_labels_are_taken() -> None:
    note, value = "\U0001f600" * 500, "=" * 255 + "\U0001f600"
    labels = {f"{number}.:/-_".ljust(64, "n"): value for number in range(10)}
    found = parse(note=note, labels=labels)
    assert (found.note, dict(one.split("=", 1) for one in found.labels)) == (note, labels)


def test_arguments_in_the_wrong_order_are_one_line() -> None:
    class Frame:
        mapInArrow = isStreaming = None  # noqa: N815

    with pytest.raises(InvalidInputError, match=r"the DataFrame comes first: write\(df, path\)"):
        write(PATH, Frame())  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=r"the session comes first: read\(spark, path\)"):
        read(PATH, Frame())  # type: ignore[arg-type]


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
