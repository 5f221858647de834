"""What lies at the destination refuses a write before its first task, of the jar and of `write`."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from s3commit.core.model.errors import InvalidInputError
from s3commit.spark import write
from tests.native.conftest import FAILURES, uri
from tests.native.sides import message
from tests.spark.tiny import BUCKET, Place

Writer = Callable[..., object]


def by_jar(frame: DataFrame, place: Place, mode: str, by: list[str], **options: Any) -> None:
    writer = frame.write.mode(mode).partitionBy(*by).options(**options)
    writer.parquet(uri(place))


def by_write(frame: DataFrame, place: Place, mode: str, by: list[str], **options: Any) -> None:
    write(frame, place.uri, mode=mode, partition_by=by, **options)


@pytest.fixture(params=[by_jar, by_write], ids=["jar", "write"])
def writer(request: pytest.FixtureRequest) -> Writer:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def rows(spark: SparkSession) -> DataFrame:
    return spark.range(3).selectExpr("id", "'d' || id AS dt", "id AS hour")


def refusal(place: Place, action: Callable[[], object]) -> str:
    """The line, after which nothing is changed."""
    before = set(place.names)
    with pytest.raises((*FAILURES, InvalidInputError)) as caught:
        action()
    error = caught.value
    ours = isinstance(error, InvalidInputError)
    assert set(place.names) == before
    assert place.uploads == []
    return f"{error.message} [{error.code}]" if ours else message(error)


@pytest.mark.parametrize("name", ["", "/dt=d1"])
@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_an_object_at_a_directorys_own_name(
    rows: DataFrame, place: Place, writer: Writer, mode: str, name: str
) -> None:
    key = place.destination.prefix.rstrip("/") + name
    place.tiny.store.put(BUCKET, key, b"PAR1")
    line = refusal(place, lambda: writer(rows, place, mode, ["dt"]))
    assert re.search(rf"s3a?://{BUCKET}/{key},.* Nothing was written\. \[PATH_IS_OBJECT\]$", line)
    assert place.tiny.store.head(BUCKET, key) is not None


@pytest.mark.parametrize("by", [["dt", "hour"], ["hour"], []])
@pytest.mark.parametrize("options", [{}, {"partitionOverwriteMode": "dynamic"}])
def test_files_that_stay_with_other_partition_columns(
    rows: DataFrame, place: Place, writer: Writer, by: list[str], options: dict[str, str]
) -> None:
    writer(rows, place, "append", ["dt"])
    place.settle()
    mode = "overwrite" if options and by else "append"
    given = options if mode == "overwrite" else {}
    line = refusal(place, lambda: writer(rows, place, mode, by, **given))
    assert re.search(
        r"partitioned by dt, and .* by .*checkPartitions=false.*\[OTHER_PARTITIONS\]$", line
    )
    writer(rows, place, "append", ["dt"])
    writer(rows, place, mode, by, checkPartitions="false", **given)
    writer(rows, place, "overwrite", by)


def test_sql_overwrites_no_partition_at_whose_name_an_object_lies(
    spark: SparkSession, place: Place
) -> None:
    table = f"t_{place.destination.prefix.split('/')[0].replace('-', '_')}"
    spark.sql(
        f"CREATE TABLE {table} (id BIGINT, dt STRING) USING parquet PARTITIONED BY (dt)"
        f" LOCATION '{uri(place)}'"
    )
    place.put("dt=a", b"PAR1")
    insert = f"INSERT OVERWRITE {table} PARTITION (dt = 'a') SELECT 1L"
    assert "/dt=a, where" in refusal(place, lambda: spark.sql(insert))
    spark.sql(f"DROP TABLE {table}")
