"""What the writers of a DataFrame, of an RDD and of a stream write."""

import tempfile
from functools import partial
from typing import Any

from pyspark.sql import DataFrame

from tests.native.case import Case, Program, Refused, Same
from tests.native.conftest import HAS_AVRO
from tests.native.sides import Side
from tests.spark.disturbed import disturbed, fail_first_try

KEY = "spark.s3commit.idempotencyKey"


def save(side: Side, mode: str = "append", form: str = "parquet", **options: Any) -> None:
    """Six rows to the path."""
    writer = side.frame().write.mode(mode).options(**options)
    writer.format(form).save(side.path)


def all_modes(side: Side) -> None:
    """What a format has: append, partitions, a limit of rows a file, replace all and one."""
    few = side.frame(10, 2)
    for mode in ("append", "append", "overwrite"):
        side.frame().write.mode(mode).format(side.form).save(f"{side.apart}/{mode}")
    writer = side.frame().write.format(side.form).partitionBy("dt")
    writer.option("maxRecordsPerFile", 1).save(side.path)
    few.write.mode("append").format(side.form).partitionBy("dt").save(side.path)
    again = few.write.mode("overwrite").format(side.form).partitionBy("dt")
    again.option("partitionOverwriteMode", "dynamic").save(side.path)


def modes(side: Side) -> None:
    first, second = side.frame(), side.frame(100, 5)
    side.attempt(lambda: first.write.parquet(side.path))
    side.attempt(lambda: second.write.parquet(side.path))
    side.attempt(lambda: second.write.mode("ignore").parquet(side.path))
    side.attempt(lambda: second.write.mode("append").parquet(side.path))
    side.attempt(lambda: second.limit(0).write.mode("overwrite").parquet(f"{side.apart}/none"))
    side.attempt(lambda: first.write.mode("overwrite").parquet(f"{side.apart}/none"))
    side.attempt(lambda: second.limit(0).write.mode("overwrite").parquet(f"{side.apart}/none"))


def failing(side: Side) -> DataFrame:
    """Of one task: Spark does not wait for others when it gives a job up."""
    return side.frame().coalesce(1).selectExpr("id", "CAST(raise_error('no') AS STRING) AS dt")


def fails_once(side: Side) -> None:
    """In the mode `error`, whose directory must not be there when it is tried again."""
    side.attempt(lambda: failing(side).write.parquet(side.path))
    side.attempt(lambda: side.frame().write.parquet(side.path))
    side.frame().write.mode("append").parquet(side.path)


def task_fails_once(side: Side) -> None:
    disturbed(side.frame(), fail_first_try).write.partitionBy("dt").parquet(side.path)


def table_fails_once(side: Side, mode: str = "error", at_path: bool = False) -> None:
    """A new table, whose directory must not be there either."""
    for frame in (failing(side), side.frame()):
        writer = frame.write.mode(mode)
        if at_path:
            writer = writer.option("path", side.apart)
        side.attempt(partial(writer.saveAsTable, "t"))


def text(side: Side) -> None:
    frame = side.frame().selectExpr("concat('line ', id) AS value")
    frame.write.option("compression", "gzip").text(side.path)
    frame.write.mode("append").text(side.path)


def days(*, insert: bool = False) -> Program:
    """A daily job under a key, each day tried twice at our side."""

    def program(side: Side) -> None:
        for day in range(3):
            for _ in range(2 if side.ours else 1):
                side.spark.conf.set(KEY, f"day-{day}")
                try:
                    writer = side.frame(10 * day).write.mode("append")
                    if insert:
                        writer.insertInto("t")
                    else:
                        writer.saveAsTable("t")
                finally:
                    side.spark.conf.unset(KEY)

    return program


def sink(side: Side) -> None:
    """A stream by Spark's own sink for files, which has a log of its own, and starts twice."""
    with tempfile.TemporaryDirectory() as directory:
        for batch in range(2):
            side.frame(6 * batch).write.mode("append").json(f"{directory}/in")
            stream = side.spark.readStream.schema("id bigint, dt string").json(f"{directory}/in")
            writer = stream.writeStream.format("parquet").trigger(availableNow=True)
            query = writer.option("checkpointLocation", f"{directory}/log").start(side.path)
            query.awaitTermination()


def rdds(side: Side) -> None:
    pairs = side.frame().rdd.map(lambda row: (row.id, row.dt))
    pairs.map(str).saveAsTextFile(side.path)
    pairs.saveAsNewAPIHadoopFile(
        f"{side.apart}/new", "org.apache.hadoop.mapreduce.lib.output.TextOutputFormat"
    )
    pairs.saveAsHadoopFile(f"{side.apart}/old", "org.apache.hadoop.mapred.TextOutputFormat")


def buckets(side: Side) -> None:
    frame = side.spark.range(0, 100, 1, 2).selectExpr("id", "id % 7 AS k")
    frame.write.bucketBy(4, "k").sortBy("id").saveAsTable("t")
    # Spark finds the bucket in a file's name: it joins two such tables without a shuffle.
    joined = side.spark.sql("SELECT * FROM t x JOIN t y ON x.k = y.k")
    plan = joined._jdf.queryExecution().executedPlan().toString()
    side.steps.append(f"shuffles {plan.count('Exchange hashpartitioning')}, {joined.count()} rows")


FORMATS = ["parquet", "orc", "csv", "json", *(["avro"] if HAS_AVRO else [])]

FRAMES = [
    *(Case(f"df.write, {form}", all_modes, form=form, by_s3=form == "parquet") for form in FORMATS),
    Case("df.write, text", text, form="text"),
    Case("the modes error, ignore, append and overwrite", modes),
    Case("a write in the mode error fails, and again", fails_once, by_s3=True),
    Case("a task that fails once", task_fails_once, by_s3=True),
    Case("saveAsTable fails, and again", table_fails_once),
    Case(
        "an overwrite by saveAsTable fails, and again", partial(table_fails_once, mode="overwrite")
    ),
    Case("saveAsTable at a path fails, and again", partial(table_fails_once, at_path=True)),
    Case(
        "sources of files of version 2",
        all_modes,
        settings={"spark.sql.sources.useV1SourceList": ""},
    ),
    Case(
        "buckets and their join", buckets, settings={"spark.sql.autoBroadcastJoinThreshold": "-1"}
    ),
    Case(
        "settings of Spark's and S3A's committers that s3commit ignores",
        all_modes,
        Same(says="no effect: the pipeline commits"),
        settings={
            "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
            "parquet.summary.metadata.level": "NONE",
            "spark.sql.parquet.output.committer.class": (
                "org.apache.parquet.hadoop.ParquetOutputCommitter"
            ),
        },
    ),
    Case("the writers of an RDD", rdds, Same(jobs=False, says="saveAsTextFile"), form="text"),
    Case("Spark's file sink for streams", sink, Same(jobs=False, says="with its own log")),
    Case(
        "append where a stream of Spark's file sink wrote",
        save,
        Refused(
            "OTHER_LOG",
            "_spark_metadata exists",
            "Directories whose readers rely on another writer's log",
        ),
        before=sink,
    ),
]
