"""What lies at the destination refuses a write; what the jar puts there is what Hadoop reads."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from s3commit.core.documents.job_json import decode_job
from s3commit.core.documents.pendingset import decode_pendingset
from s3commit.core.documents.request_json import CommitRequest, decode_request
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.strict_json import digest
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.states import JobState
from s3commit.spark import write
from tests.native.conftest import FAILURES, uri
from tests.native.s3a import hadoop
from tests.native.sides import message
from tests.spark.tiny import BUCKET, Place, TinyPipeline

Writer = Callable[..., object]


def by_jar(frame: DataFrame, place: Place, mode: str, by: list[str], **options: Any) -> None:
    writer = frame.write.mode(mode).partitionBy(*by).options(**options)
    writer.parquet(uri(place))


def by_write(frame: DataFrame, place: Place, mode: Any, by: list[str], **options: Any) -> None:
    write(frame, place.uri, mode=mode, partition_by=by, options=options)


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
        r"partitioned by dt, .*by .*check_?[pP]artitions=[fF]alse.*\[OTHER_PARTITIONS\]$", line
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


def test_i1_documents_as_the_pipeline_and_hadoop_read_them(
    spark: SparkSession, tiny: TinyPipeline, place: Place
) -> None:
    frame = spark.range(0, 100, 1, 2).selectExpr("id", "id % 2 as k")
    with tiny.held():
        with pytest.raises(FAILURES, match=r"\[OUTCOME_UNKNOWN\]$") as caught:
            frame.write.option("commitTimeout", "1s").partitionBy("k").parquet(uri(place))
        assert len(str(caught.value).splitlines()) == 1
        assert "may still commit" in str(caught.value)
        (job_id,) = place.jobs
        directory = JobDirectory(place.destination, job_id)

        def read(key: str) -> bytes:
            return tiny.store.get(BUCKET, key, max_bytes=1 << 20).body

        spec = decode_job(read(directory.job), directory)
        assert spec.client.startswith("s3commit-native/0")
        assert spec.who is not None
        assert spec.who.application_id == spark.sparkContext.applicationId
        assert (spec.who.application, spec.who.airflow) == (spark.sparkContext.appName, "daily/run")
        assert spec.who.user == spark.sparkContext.sparkUser()
        request = decode_request(read(directory.request), directory)
        assert isinstance(request, CommitRequest)
        assert request.job_sha256 == spec.sha256
        assert request.attempts is not None
        assert [one.task_id for one in request.attempts] == ["00000", "00001"]
        still_open = {
            (one.key, one.upload_id)
            for one in tiny.store.list_uploads(BUCKET, place.destination.prefix)
        }
        for attempt in request.attempts:
            body = read(directory.prefix + attempt.manifest)
            assert digest(body) == attempt.sha256
            pending = decode_pendingset(body, directory, attempt.manifest)
            assert (len(pending.files), pending.bytes) == (attempt.files, attempt.bytes) != (0, 0)
            assert {(one.key, one.upload_id) for one in pending.files} <= still_open
            if hadoop() >= (3, 5):  # until then etags were strings
                name = f"{uri(place)}/__magic_job-{job_id}/{attempt.manifest}"
                ours = [(one.key, one.upload_id, one.length) for one in pending.files]
                assert hadoops_view(spark, name) == ours
    assert place.tidy().state is JobState.COMMITTED, "though its driver waited no longer"
    assert len(place.data) == 4
    files = [f"/{place.destination.prefix}{name}" for name in place.data]
    assert hadoops_success(spark, f"{uri(place)}/_SUCCESS") == (job_id, files)


def loaded(spark: SparkSession, name: str, of: Callable[[Any], Any]) -> Any:
    """What one of Hadoop's own classes, which validates it, makes of a document."""
    hadoop = spark._jvm.org.apache.hadoop.fs  # type: ignore[union-attr]
    path = hadoop.Path(name)
    fs = path.getFileSystem(spark._jsc.hadoopConfiguration())
    return of(hadoop.s3a.commit.files).load(fs, path)


def hadoops_success(spark: SparkSession, marker: str) -> tuple[str, list[str]]:
    """The job and the files of the marker."""
    found = loaded(spark, marker, lambda files: files.SuccessData)
    return found.getJobId(), sorted(found.getFilenames())


def hadoops_view(spark: SparkSession, manifest: str) -> list[tuple[str, str, int]]:
    """The files of the manifest."""
    found = loaded(spark, manifest, lambda files: files.PendingSet.serializer())
    found.validate()
    return [
        (one.getDestinationKey(), one.getUploadId(), one.getLength()) for one in found.getCommits()
    ]
