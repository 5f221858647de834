"""`read`: what is committed, as a DataFrame of Spark's own reader.

No file system for S3 comes with PySpark: the files are copied, and named where the copies are.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from s3commit.core.model.errors import InvalidInputError, NotFoundError
from s3commit.spark import frame_read, read, write
from tests.spark.tiny import BUCKET, Place

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture
def copies(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the bucket's objects are copied to when Spark is told of one."""

    def uri(root: Any, key: str) -> str:
        assert (root.scheme, root.bucket) == ("s3a", BUCKET)
        for listed in place.tiny.store.list(BUCKET, key):
            if "/_" in listed.key:  # hidden from Spark, and the pipeline deletes some
                continue
            path = tmp_path / listed.key
            path.parent.mkdir(parents=True, exist_ok=True)
            body = place.tiny.store.get(BUCKET, listed.key, max_bytes=1 << 28).body
            path.write_bytes(body)
        return str(tmp_path / key)

    monkeypatch.setattr(frame_read._Root, "uri", uri)
    return tmp_path


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.select("id", "k").collect())


@pytest.mark.usefixtures("copies")
def test_all_that_is_visible_or_one_jobs_files_are_read(
    session: SparkSession, place: Place
) -> None:
    frame = session.range(4).selectExpr("id", "id % 2 k")
    first = write(frame, place.uri, partition_by="k")
    write(frame.where("id = 3"), place.uri, mode="append", partition_by="k")
    assert rows(read(session, place.uri)) == [(0, 0), (1, 1), (2, 0), (3, 1), (3, 1)]
    assert rows(read(session, place.uri, job_id=first.job_id)) == rows(frame)
    assert dict(read(session, place.uri, job_id=first.job_id).dtypes) == {
        "id": "bigint",
        "k": "int",
    }


@pytest.mark.usefixtures("copies")
def test_partitions_elsewhere_are_read_by_their_locations_or_their_job(
    session: SparkSession, place: Place
) -> None:
    location = {"k=0": f"s3://{BUCKET}/elsewhere/{place.destination.prefix}"}
    frame = session.range(4).selectExpr("id", "id % 2 k")
    said: dict[str, Any] = {"partition_by": "k", "partitionLocations": location}
    job = write(frame, place.uri, **said).job_id
    assert rows(read(session, place.uri)) == [(1, 1), (3, 1)]
    assert rows(read(session, place.uri, partition_locations=location)) == rows(frame)
    assert rows(read(session, place.uri, job_id=job)) == rows(frame)


@pytest.mark.usefixtures("copies")
def test_a_job_whose_partitions_are_all_elsewhere_is_read(
    session: SparkSession, place: Place
) -> None:
    location = {"k=__HIVE_DEFAULT_PARTITION__": f"s3://{BUCKET}/null/{place.destination.prefix}"}
    frame = session.range(2).selectExpr("id", "cast(null as string) k")
    said: dict[str, Any] = {"partition_by": "k", "partitionLocations": location}
    job = write(frame, place.uri, **said).job_id
    assert rows(read(session, place.uri, job_id=job)) == [(0, None), (1, None)]


@pytest.mark.usefixtures("copies")
def test_names_with_the_characters_of_a_pattern_are_read(
    session: SparkSession, place: Place
) -> None:
    frame = session.sql("select 1 id, 'a{b},*[c]\\'d' k")
    job = write(frame, place.uri, partition_by="k").job_id
    assert rows(read(session, place.uri, job_id=job)) == rows(frame)


@pytest.mark.usefixtures("copies")
def test_schema_and_options_are_for_sparks_reader(session: SparkSession, place: Place) -> None:
    write(session.sql("select 1 id, 'x' k"), place.uri, format="csv")
    found = read(session, place.uri, format="csv", schema="id int, k string", nullValue="x")
    assert rows(found) == [(1, None)]


def test_what_is_not_there_or_no_path_is_refused(session: SparkSession, place: Place) -> None:
    with pytest.raises(NotFoundError, match="is not committed at"):
        read(session, place.uri, job_id="11111111-1111-4111-8111-111111111111")
    with pytest.raises(NotFoundError, match="no data file is committed"):
        nowhere = {"k=0": f"s3://{BUCKET}/nowhere/{place.destination.prefix}"}
        read(session, place.uri, partition_locations=nowhere)
    with pytest.raises(InvalidInputError, match="must look like"):
        read(session, "/tmp/table")
