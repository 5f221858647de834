"""Spark's and Hadoop's readers get the rows of the data, whatever jobs have put beside it."""

import uuid
from collections.abc import Callable, Iterator
from functools import partial, reduce
from itertools import product
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from tests import names
from tests.moments import FORMATS, Table
from tests.spark.conftest import environment
from tests.spark.tiny import TinyPipeline

# Globs of every depth, from the table and from the bucket's root, and whether Spark finds the data
# there; those behind the data's depth meet what is ours alone.
FLAT = {"": True, "*": True, "*/*": False, "*/*/*": False, "*/*/*/*": False}
PARTITIONS = {"": True, "*": True, "p=*": True, "*/*": True, "*/*/*": False, "*/*/*/*": False}
FLAT_ROOT = {"*": False, "*/*": True, "*/*/*": True, "*/*/*/*": False, "*/*/*/*/*": False}
PARTITIONS_ROOT = {"*": True, "*/*": True, "*/*/*": True, "*/*/*/*": True, "*/*/*/*/*": False}
TEXT_INPUT = "org.apache.hadoop.mapreduce.lib.input.TextInputFormat"


@pytest.fixture
def bucket(tiny: TinyPipeline) -> Iterator[str]:
    """A bucket of its own: at its root lies what the pipeline keeps."""
    name = f"readers-{uuid.uuid4().hex[:12]}"
    with environment(tiny):
        tiny.add_bucket(name, notifies=False)
        yield name


def schema(form: str) -> str:
    return "value string" if form == "text" else "id bigint"


def loaded(reader: Any, form: str, path: str) -> DataFrame:
    """By Spark's reader for files or for streams; the numbers in the rows."""
    frame: DataFrame = reader.format(form).schema(schema(form)).option("header", "true").load(path)
    return frame.selectExpr(f"cast({frame.columns[0]} as bigint) as id")


def read(spark: SparkSession, uri: str) -> tuple[list[str], list[int]]:
    """The columns and rows of a table of Parquet."""
    frame = loaded(spark.read, "parquet", uri.replace("s3://", "s3a://"))
    return frame.columns, [row.id for row in frame.collect()]


def numbers(read: Callable[[], Any]) -> list[int]:
    """The numbers of lines of CSV, JSON or text; none where nothing is."""
    try:
        lines = read().collect()
    except Py4JJavaError as error:
        assert "matches 0 files" in str(error)
        return []
    found = ("".join(filter(str.isdigit, line)) for line in lines)
    return sorted(int(digits) for digits in found if digits)


def batch(spark: SparkSession, table: Table, paths: list[str]) -> dict[str, list[int]]:
    """What each path gives, by one job of Spark; nothing where nothing is."""
    frames = []
    for number, path in enumerate(paths):
        try:
            frame = loaded(spark.read, table.form, path)
        except AnalysisException as error:
            assert "PATH_NOT_FOUND" in str(error)
        else:
            frames.append(frame.selectExpr(f"{number} as path", "id"))
    rows = reduce(lambda one, other: one.unionAll(other), frames).collect()
    return {path: sorted(row.id for row in rows if row.path == n) for n, path in enumerate(paths)}


def texts(spark: SparkSession, path: str) -> list[int]:
    """By both generations of Hadoop's input formats, which raise where nothing is."""
    context = spark.sparkContext
    longs, lines = "org.apache.hadoop.io.LongWritable", "org.apache.hadoop.io.Text"

    def old() -> Any:
        return context.textFile(path)

    def new() -> Any:
        return context.newAPIHadoopFile(path, TEXT_INPUT, longs, lines).values()

    one, other = (numbers(read) for read in (old, new))
    assert one == other
    return one


def streamed(spark: SparkSession, table: Table, path: str) -> list[int]:
    frame = loaded(spark.readStream, table.form, path)
    name = f"q{uuid.uuid4().hex[:8]}"
    query = frame.writeStream.format("memory").queryName(name).trigger(availableNow=True).start()
    query.awaitTermination()
    return sorted(row.id for row in spark.table(name).collect())


# Each format and each layout; the other pairs every night.
DAILY = {("json", False), ("csv", False), ("text", True), ("parquet", True)}
PAIRS = [
    pytest.param(*pair, marks=[] if pair in DAILY else pytest.mark.long)
    for pair in product(FORMATS, (False, True))
]


@pytest.mark.parametrize(("form", "partitioned"), PAIRS)
def test_no_reader_of_spark_or_hadoop_takes_a_document_for_data(
    spark: SparkSession, tiny: TinyPipeline, bucket: str, form: str, partitioned: bool
) -> None:
    table = Table(tiny.ports, bucket, form, partitioned)
    uri, root = table.uri.replace("s3://", "s3a://"), f"s3a://{bucket}/"
    below, above = (PARTITIONS, PARTITIONS_ROOT) if partitioned else (FLAT, FLAT_ROOT)
    wanted = {
        **{uri + glob: is_found for glob, is_found in below.items()},
        **{root + glob: is_found for glob, is_found in above.items()},
    }

    def look() -> None:
        rows = {path: table.ids if is_found else [] for path, is_found in wanted.items()}
        assert batch(spark, table, list(wanted)) == rows

    assert table.live(look, states=("BeginPublish",)) > 25
    look_by_hadoop(spark, table, below)
    # Streams list as the others do, whatever the format.
    for glob in (glob for glob, is_found in below.items() if is_found and form == "json"):
        assert streamed(spark, table, uri + glob) == table.ids, glob
    everything = spark.read.option("recursiveFileLookup", "true")
    assert sorted(row.id for row in loaded(everything, form, root).collect()) == table.ids
    name = "t" + uuid.uuid4().hex[:8]
    spark.sql(f"CREATE TABLE {name} USING {form} OPTIONS (header true) LOCATION '{uri}'")
    if partitioned:
        spark.sql(f"MSCK REPAIR TABLE {name}")
    assert spark.table(name).count() == len(table.ids)
    spark.sql(f"DROP TABLE {name}")


def look_by_hadoop(spark: SparkSession, table: Table, globs: dict[str, bool]) -> None:
    """Where a glob gives directories, these have files: Hadoop's look no deeper."""
    if table.form != "parquet":
        for glob, is_found in globs.items():
            if glob or not table.partitioned:
                found = texts(spark, table.uri.replace("s3://", "s3a://") + glob)
                assert found == (table.ids if is_found else []), glob


def test_of_each_name_spark_finds_it(spark: SparkSession, tiny: TinyPipeline, bucket: str) -> None:
    tables = names.fill(tiny.s3, bucket)
    fates = {key: names.found(partial(read, spark), uri) for key, uri in tables.items()}
    assert fates == names.on_the_page("Spark")
