"""A job that Spark gave up, or that was refused, leaves nothing where it was to write."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from moto.s3.exceptions import S3AccessDeniedError
from moto.s3.responses import S3Response

from s3commit.core.model.states import JobState
from tests.native.conftest import FAILURES, uri
from tests.native.test_failures import lines_of, save
from tests.spark.disturbed import disturbed, fail_always
from tests.spark.tiny import BUCKET, Place, TinyPipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def keys(tiny: TinyPipeline, prefix: str) -> list[str]:
    """What lies there, save the markers of directories that S3A makes."""
    return [one.key for one in tiny.store.list(BUCKET, prefix) if not one.key.endswith("/")]


def test_i1_a_table_that_was_refused_can_be_created(
    spark: SparkSession, tiny: TinyPipeline, place: Place
) -> None:
    """As a program does that writes the directory itself, in Spark's own mode `error`."""
    with pytest.raises(FAILURES, match=r"none of its files is visible.*CONDITION_FAILED"):
        spark.range(10).write.option("conditions.minFiles", "9").parquet(uri(place))
    place.await_no_uploads()
    assert keys(tiny, place.destination.prefix) == []
    name = "t" + place.destination.prefix.split("/")[0]
    spark.sql(
        f"CREATE TABLE {name} USING parquet LOCATION '{uri(place)}' AS SELECT * FROM range(9)"
    )
    assert spark.table(name).count() == 9
    spark.sql(f"DROP TABLE {name}")


def test_i8_the_ledger_remembers_the_job_and_a_repeated_event_puts_nothing(
    spark: SparkSession, tiny: TinyPipeline, place: Place
) -> None:
    before = {record.ref for record in tiny.ledger.jobs_in(JobState.ABORTED, before="9")}
    with pytest.raises(FAILURES, match="this task always fails"):
        save(disturbed(spark.range(0, 1000, 1, 2), fail_always), place)
    (record,) = (
        one for one in tiny.ledger.jobs_in(JobState.ABORTED, before="9") if one.ref not in before
    )
    assert record.destination == place.destination
    tiny.wait_until_tidy(record.job_id)
    tiny.handle(BUCKET, f"{place.destination.prefix}__magic_job-{record.job_id}/_request.json")
    place.await_no_uploads()
    assert keys(tiny, place.destination.prefix) == []


def test_without_the_right_to_delete_a_warning_says_what_stays(
    spark: SparkSession, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = S3Response._bucket_response_delete_keys

    def refuse(self: S3Response, bucket: str) -> object:
        if b"/_job.json" in self.body:
            raise S3AccessDeniedError
        return sent(self, bucket)

    monkeypatch.setattr(S3Response, "_bucket_response_delete_keys", refuse)
    with (
        lines_of(spark, "io.s3commit.spark.Job") as lines,
        pytest.raises(FAILURES, match="CONDITION_FAILED"),
    ):
        save(spark.range(10), place, **{"conditions.minFiles": "5"})
    assert "Allow s3:DeleteObject on" in lines()
    assert place.tidy().state is JobState.ABORTED
