"""What a write does about files that are there, and what its own data must be: no Spark here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from s3commit.core.model.errors import InvalidInputError, JobFailedError
from s3commit.core.model.job import Conflict, Scope
from s3commit.spark.options import parse_options
from s3commit.spark.policy import Policy, policy_of
from s3commit.writer.config import Config, parse_config
from tests.spark.by_hand import batch, run_task, start, write
from tests.spark.tiny import Place

SESSION = "spark.sql.sources.partitionOverwriteMode"
PATH = "s3://bucket/lake/table"
CONFIG = """
[default]
conflict = "fail"
["s3://bucket/lake/"]
partitionOverwriteMode = "dynamic"
"""


def policy(overwrite: bool, config: Config | None = None, **options: str) -> Policy:
    return policy_of(parse_options({"path": PATH, **options}, config), overwrite=overwrite)


def test_the_mode_goes_first_then_options_then_the_configuration() -> None:
    config = parse_config(CONFIG, source="test")
    whole, parts = Scope.DIRECTORY, Scope.PARTITION
    assert policy(False) == Policy(Conflict.APPEND, whole)
    assert policy(True) == Policy(Conflict.REPLACE, whole)
    assert policy(True, partitionby="k") == Policy(Conflict.REPLACE, None)
    assert policy(True, partitionby="k", partitionoverwritemode="dynamic").scope is parts
    assert policy(True, partitionby="k", partitionoverwritemode="static").scope is whole
    assert policy(False, conflict="fail", partitionby="k") == Policy(Conflict.FAIL, None)
    assert policy(False, config) == Policy(Conflict.FAIL, whole)
    assert policy(False, config, conflict="append").conflict is Conflict.APPEND
    assert policy(True, config) == Policy(Conflict.REPLACE, whole)
    assert policy(True, config, partitionby="k") == Policy(Conflict.REPLACE, parts)
    assert policy(True, config, partitionby="k", partitionoverwritemode="static").scope is whole


@pytest.mark.parametrize(
    ("overwrite", "stream", "options", "says"),
    [
        (True, False, {"conflict": "append"}, "conflict=append contradicts mode 'overwrite'"),
        (True, False, {"conflict": "fail"}, "leave the option out, or use mode 'append'"),
        (False, False, {"conflict": "replace"}, r"use \.mode\('overwrite'\)"),
        (True, False, {"partitionoverwritemode": "dynamic"}, "add option partitionBy"),
        (False, True, {"conflict": "fail"}, "at its second batch"),
        (False, True, {"idempotencykey": "x"}, "idempotencyKey is not for streams"),
    ],
)
def test_options_that_contradict_each_other_are_refused_in_one_line(
    overwrite: bool, stream: bool, options: dict[str, str], says: str
) -> None:
    with pytest.raises(InvalidInputError, match=says) as caught:
        policy_of(parse_options({"path": PATH, **options}), overwrite=overwrite, stream=stream)
    assert caught.value.code == "BAD_OPTIONS"
    assert "\n" not in caught.value.message


def test_i10_overwrite_replaces_the_files_of_before_and_says_how_many(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    write(start(place), batch(range(5)), batch(range(5)))
    place.put("_hidden/x.parquet", b"not data")
    before = set(place.data)
    capsys.readouterr()
    writer = start(place, overwrite=True)
    write(writer, batch(range(7)))
    assert len(place.data) == 1
    assert not before & set(place.data)
    assert "_hidden/x.parquet" in place.names
    said = capsys.readouterr().err
    assert said.startswith("s3commit: replaced 2 files with 1 file, ")
    assert f"7 rows; see: s3commit show {writer.job.job.directory.uri}" in said


def test_partitions_are_replaced_alone_by_option_configuration_or_session(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(start(place, partitionBy="k"), batch(range(9)))
    assert len(place.data) == 3
    by_option: dict[str, Any] = {"partitionBy": "k", "partitionOverwriteMode": "dynamic"}
    write(start(place, overwrite=True, **by_option), batch(range(1)))
    assert [name.split("/")[0] for name in place.data] == ["k=0", "k=1", "k=2"]

    # The session's word is heard by the tasks alone, which open the job; an empty one does not.
    writer = start(place, overwrite=True, partitionBy="k")
    jobs = set(place.jobs)
    run_task(writer, 0, **{SESSION: "dynamic"})
    assert set(place.jobs) == jobs
    write(writer, batch(range(1)), batch(range(0)), **{SESSION: "Dynamic"})
    assert len(place.data) == 3
    assert set(place.jobs) == jobs | {writer.job.spec.job_id}

    config = tmp_path / "s3commit.toml"
    config.write_text(f'["{place.uri}/"]\npartitionOverwriteMode = "dynamic"\nthreads = 2\n')
    with monkeypatch.context() as patch:
        patch.setenv("S3COMMIT_CONFIG", str(config))
        writer = start(place, overwrite=True, partitionBy="k")
    assert writer.job.job.settings.threads == 2
    write(writer, batch(range(1)))
    assert len(place.data) == 3

    write(start(place, overwrite=True, partitionBy="k"), batch(range(1)))
    assert [name.split("/")[0] for name in place.data] == ["k=0"]


def test_an_overwrite_without_rows_empties_the_table_or_no_partition(place: Place) -> None:
    write(start(place, partitionBy="k"), batch(range(9)))
    write(start(place, overwrite=True, partitionBy="k"), batch(range(0)), **{SESSION: "dynamic"})
    assert len(place.data) == 3
    write(start(place, overwrite=True, partitionBy="k"), batch(range(0)))
    assert place.data == []
    assert "_SUCCESS" in place.names


def test_conflict_fail_refuses_where_files_are(place: Place) -> None:
    write(start(place, partitionBy="k", conflict="fail"), batch(range(2)))
    with pytest.raises(JobFailedError) as caught:
        write(start(place, partitionBy="k", conflict="fail"), batch(range(2, 3)))
    assert caught.value.code == "DESTINATION_NOT_EMPTY"
    both: dict[str, Any] = {"partitionBy": "k", "conflict": "fail"}
    write(start(place, **both, partitionOverwriteMode="dynamic"), batch(range(2, 3)))
    with pytest.raises(JobFailedError, match="none of its files is visible"):
        write(start(place, **both, partitionOverwriteMode="dynamic"), batch(range(2, 3)))
    assert [name.split("/")[0] for name in place.data] == ["k=0", "k=1", "k=2"]
    assert place.uploads == []


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("conditions.minRows", "11", "minRows is 11, the job has 10"),
        ("conditions.maxRows", "9", "maxRows is 9, the job has 10"),
        ("conditions.minFiles", "2", "minFiles is 2, the job has 1"),
    ],
)
def test_a_job_that_fails_its_condition_says_the_figure(
    place: Place, name: str, value: str, says: str
) -> None:
    with pytest.raises(JobFailedError, match=says) as caught:
        write(start(place, **dict[str, Any]({name: value})), batch(range(10)))
    assert caught.value.code == "CONDITION_FAILED"
    assert "\n" not in caught.value.message
    assert place.data == []


def test_the_nulls_of_a_column_are_counted_under_any_spelling(place: Place) -> None:
    schema = StructType([StructField("Price", LongType()), StructField("k", StringType())])

    def halves(**options: Any) -> None:
        rows = pa.record_batch(
            {"Price": pa.array([1, None, 2, None, 3], pa.int64()), "k": ["a", "a", "b", None, ""]}
        )
        write(start(place, schema, partitionBy="k", **options), rows, rows)

    halves(**{"conditions.maxNullFraction.price": "0.4"})
    assert len(place.data) == 6
    with pytest.raises(JobFailedError, match=r"maxNullFraction\.Price is 0\.39, the job has 0\.4"):
        halves(**{"conditions.maxNullFraction.PRICE": "0.39"})
    with pytest.raises(
        JobFailedError, match=r"maxNullFraction\.k is 0\.3, the job has 0\.4 \(4 of"
    ):
        halves(**{"conditions.maxNullFraction.k": "0.3"})
    assert len(place.data) == 6


def test_conditions_that_hold_let_the_job_pass(place: Place) -> None:
    bounds: dict[str, Any] = {
        "conditions.minRows": "10",
        "conditions.maxRows": "10",
        "conditions.minFiles": "1",
    }
    write(start(place, **bounds), batch(range(10)))
    assert len(place.data) == 1


def test_i11_a_daily_job_that_is_tried_again_adds_its_rows_once(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    one = start(place, idempotencyKey="sales 2026-11-21")
    again = start(place, idempotencyKey="sales 2026-11-21")  # before the first is asked for
    write(one, batch(range(5)))
    capsys.readouterr()
    write(again, batch(range(5)))
    said = capsys.readouterr().err
    assert one.job.spec.job_id in said
    assert said.endswith("; this job adds nothing\n")
    write(start(place, idempotencyKey="sales 2026-11-22"), batch(range(5)))
    assert len(place.data) == 2
    place.tiny.wait_until_tidy(again.job.spec.job_id)
    assert place.uploads == []
