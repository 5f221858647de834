"""What lies at the destination refuses a write; what the jar puts there is what Hadoop reads."""

import re
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from s3commit.core.documents.job_json import decode_job
from s3commit.core.documents.pendingset import decode_pendingset
from s3commit.core.documents.request_json import CommitRequest, decode_request
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.strict_json import digest
from s3commit.core.model.errors import InvalidInputError, S3CommitError
from s3commit.core.model.states import JobState
from s3commit.spark import batch_writer, write
from tests.native.conftest import FAILURES, settings, uri
from tests.native.s3a import hadoop
from tests.native.sides import kind, message
from tests.places import LATE, PLACES, cells, one_row, put
from tests.servers import until
from tests.spark.tiny import BUCKET, Place, TinyPipeline

Writer = Callable[..., object]
OURS = "io.s3commit.spark.S3CommitProtocol"


def by_jar(frame: DataFrame, place: Place, mode: str, by: list[str], **options: Any) -> None:
    writer = frame.write.mode(mode).partitionBy(*by).options(**options)
    writer.parquet(uri(place))


def keywords(options: dict[str, str]) -> dict[str, Any]:
    """The keywords that mean the same as these options of the jar."""
    names = {
        "partitionOverwriteMode": "partition_overwrite_mode",
        "checkPartitions": "check_partitions",
    }
    return {names[name]: value != "false" and value for name, value in options.items()}


def by_write(frame: DataFrame, place: Place, mode: Any, by: list[str], **options: str) -> None:
    write(frame, place.uri, mode=mode, partition_by=by, **keywords(options))


def by_batch(frame: DataFrame, place: Place, mode: Any, by: list[str], **options: str) -> None:
    batch_writer(place.uri, query="q", mode=mode, partition_by=by, **keywords(options))(frame, 0)


CLIENTS: dict[str, Writer] = {"jar": by_jar, "write": by_write, "batch_writer": by_batch}


@pytest.fixture(params=["jar", "write"])
def writer(request: pytest.FixtureRequest) -> Writer:
    return CLIENTS[request.param]


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


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_place_is_refused_before_the_first_task_or_spark_reads_all_rows(
    spark: SparkSession, rows: DataFrame, place: Place, client: str, name: str
) -> None:
    """But for the jar in the mode append: tests/writer/test_place.py has the others of Python."""
    store = place.tiny.store

    def found(directory: str) -> set[str]:
        return {one.key for one in store.list(BUCKET, directory)}

    for cell in cells(name, client):
        if client != "jar" and cell.mode != "append":
            continue
        place = Place(place.tiny)
        directory = place.destination.prefix[:-1]
        before = put(cell, directory, lambda key, body: store.put(BUCKET, key, body))
        frame = rows.select("id", *map(str.lower, cell.by)).coalesce(1)
        how = {"partitionOverwriteMode": cell.overwrite_mode} if cell.overwrite_mode else {}
        what = f"{client}, {name}, {cell.mode} {cell.overwrite_mode or ''}"
        try:
            CLIENTS[client](frame, place, cell.mode, cell.by, **how)
        except (*FAILURES, S3CommitError) as error:
            code = error.code if isinstance(error, S3CommitError) else kind(error)
            assert f"{code}{LATE if found(directory) > before else ''}" == cell.answer, what
            assert found(directory) >= before, what
        else:
            if cell.answer == "KEPT":
                assert found(directory) == before, what
            else:
                read = spark.read.schema("id BIGINT").parquet(uri(place))
                assert read.count() == cell.answer, what
        assert place.uploads == [], what


@pytest.mark.parametrize("there", ["dt", "DT"])
def test_directories_are_spelled_as_the_keyword_whatever_the_frame_says(
    rows: DataFrame, place: Place, writer: Writer, tmp_path: Path, there: str
) -> None:
    """The directories and rows are those that Spark's own writer leaves, or it is refused."""
    own, how = str(tmp_path / "t"), {"partitionOverwriteMode": "dynamic"}
    rows.select("id", "dt").write.partitionBy(there).parquet(own)
    writer(rows.select("id", "dt"), place, "append", [there])
    place.settle()
    for column, by in product(("dt", "DT"), repeat=2):
        days = rows.selectExpr("id", f"dt AS {column}").filter("id < 2")
        if by != there:
            line = refusal(place, partial(writer, days, place, "overwrite", [by], **how))
            assert "[OTHER_PARTITIONS]" in line
            continue
        days.write.mode("overwrite").options(**how).partitionBy(by).parquet(own)
        writer(days, place, "overwrite", [by], **how)
        place.settle()
        found = {one.relative_to(own).parts[0] for one in Path(own).glob("*/*.parquet")}
        assert {name.split("/")[0] for name in place.data} == found
        assert rows.sparkSession.read.parquet(uri(place)).count() == 3


OTHER_TYPES = {
    "CAST(id AS INT) AS id": "column id has the type int here and bigint in ",
    "dt AS id": "column id has the type string here and bigint in ",
    "id AS ID": "column ID is spelled id in ",
    "id, named_struct('a', 1.5D) AS s": "column s.a has the type double here and bigint in ",
    "id, array(dt) AS l": "column l[] has the type string here and bigint in ",
    "id, map(dt, dt) AS m": "column m.value has the type string here and bigint in ",
}


@pytest.mark.parametrize("by", [[], ["hour"]])
def test_a_table_whose_newest_file_has_other_types(
    rows: DataFrame, place: Place, by: list[str]
) -> None:
    """The jar compares if it is asked to; `write` does so by itself."""

    def append(columns: str, **options: str) -> None:
        frame = rows.sparkSession.sql(f"SELECT hour, {columns} FROM some_rows")
        by_jar(frame, place, "append", by, **options)
        place.settle()

    rows.createOrReplaceTempView("some_rows")
    append("id, named_struct('a', id) AS s, array(id) AS l, map(dt, id) AS m")
    for columns, answer in OTHER_TYPES.items():
        line = refusal(place, partial(append, columns, checkSchema="true"))
        assert answer in line
        assert line.endswith("[OTHER_SCHEMA]")
    for columns in ("id", "id, 1 AS new", "dt AS other"):
        append(columns, checkSchema="true")
    append("dt AS new")


@pytest.mark.parametrize("mode", ["error", "ignore"])
def test_a_mode_that_wants_no_files_looks_once_more_at_the_decision(
    spark: SparkSession, rows: DataFrame, place: Place, mode: str
) -> None:
    """Both writers have found nothing there; the jar's tasks end when the other has committed."""
    bucket, prefix = BUCKET, place.destination.prefix + "_commits/"

    def wait(batches: Iterator[Any]) -> Iterator[Any]:
        import time

        import boto3

        s3 = boto3.client("s3")
        while not s3.list_objects_v2(Bucket=bucket, Prefix=prefix).get("Contents"):
            time.sleep(0.1)
        yield from batches

    slow = spark.range(0, 5, 1, 1).mapInArrow(wait, "id BIGINT")
    with ThreadPoolExecutor(1) as pool:
        by_the_jar = pool.submit(by_jar, slow, place, mode, [])
        until(lambda: bool(place.jobs), "that the jar's job is open")
        write(rows.select("id"), place.uri)
        if mode == "error":
            with pytest.raises(FAILURES) as caught:
                by_the_jar.result()
            assert kind(caught.value) == "DESTINATION_NOT_EMPTY"
        else:
            by_the_jar.result()
    assert spark.read.parquet(uri(place)).count() == 3


def test_a_stream_that_is_refused_leaves_a_directory_and_says_so(
    spark: SparkSession, rows: DataFrame, place: Place, tmp_path: Path
) -> None:
    rows.select("id").write.json(f"{uri(place)}/source")
    stream = spark.readStream.schema("id BIGINT").json(f"{uri(place)}/source").writeStream
    sink = f"{uri(place)}/sink"
    says = r"batch_writer.*another path, or delete _spark_metadata/ first.*BAD_OPTIONS"
    with settings(spark, spark__sql__streaming__commitProtocolClass=OURS):
        for number, target in enumerate((sink, str(tmp_path / "out"))):
            log = stream.option("checkpointLocation", str(tmp_path / f"{number}"))
            with pytest.raises(FAILURES, match=says):
                log.start(target, "parquet").awaitTermination()
    with pytest.raises(FAILURES) as caught:
        rows.write.mode("append").parquet(sink)
    assert kind(caught.value) == "OTHER_LOG"
    with pytest.raises(InvalidInputError, match="/_spark_metadata exists: "):
        write(rows, f"{place.uri}/sink", mode="append")


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_new_table_where_former_jobs_left_documents_and_files(
    spark: SparkSession, rows: DataFrame, place: Place, db: str, mode: str
) -> None:
    """Spark's write of such a statement has a mode of its own: it replaces."""
    for name in ("_SUCCESS", "_commits/_a.jsonl", f"__magic_job-{uuid.uuid4()}/_job.json"):
        place.put(name, b"{}")
    place.put("old.parquet", one_row())
    rows.write.mode(mode).option("path", uri(place)).saveAsTable(f"{db}.t")
    assert spark.table(f"{db}.t").count() == 3
    spark.sql(f"DROP TABLE {db}.t")
    with settings(spark, spark__sql__legacy__allowNonEmptyLocationInCTAS="true"):
        spark.sql(f"CREATE TABLE {db}.t USING parquet LOCATION '{uri(place)}' AS SELECT 1 AS id")
    assert spark.table(f"{db}.t").count() == 1


def test_files_that_stay_with_other_partition_columns(
    rows: DataFrame, place: Place, writer: Writer
) -> None:
    writer(rows, place, "append", ["dt"])
    place.settle()
    dynamic = {"partitionOverwriteMode": "dynamic"}
    others: list[tuple[str, list[str], dict[str, str]]] = [
        *(("append", by, {}) for by in (["dt", "hour"], ["hour"], [])),
        *(("overwrite", by, dynamic) for by in (["dt", "hour"], ["hour"])),
    ]
    says = r"partitioned by dt, .*by .*check_?[pP]artitions=[fF]alse.*\[OTHER_PARTITIONS\]$"
    for mode, by, how in others:
        assert re.search(says, refusal(place, partial(writer, rows, place, mode, by, **how)))
    writer(rows, place, "append", ["dt"])
    place.put("_metadata", b"x")  # a summary is permitted with them
    for mode, by, how in others:
        writer(rows, place, mode, by, checkPartitions="false", **how)
    writer(rows, place, "overwrite", ["hour"])


def test_sql_overwrites_no_partition_named_as_an_object(spark: SparkSession, place: Place) -> None:
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
