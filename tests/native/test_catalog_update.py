"""What Spark and its catalog believe of a table, however a write has ended: what is there.

Each way of writing, each kind of table, each end of the job; the rows are held against those of a
model, and those of a committed write against Spark's own protocol too.
"""

import re
from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import SparkSession

from tests.native.conftest import settings
from tests.native.sides import CONTROL, Side, rows, side
from tests.spark.tiny import BUCKET, TinyPipeline

Row = tuple[int, int, int]
KEY = "spark.s3commit.idempotencyKey"
ALL = "a INT, p INT, q INT"
TABLES = {
    "spark": f"CREATE TABLE t ({ALL}) USING parquet PARTITIONED BY (p, q)",
    "hive": "CREATE TABLE t (a INT) PARTITIONED BY (p INT, q INT) STORED AS PARQUET",
    "unpartitioned": f"CREATE TABLE t ({ALL}) USING parquet",
    "path": "",
}


def by_sql(start: str, *columns: int) -> Callable[[Side, list[Row]], None]:
    """A statement whose values are these columns of the rows."""

    def write(one: Side, found: list[Row]) -> None:
        values = ", ".join(
            str(tuple(row[at] for at in columns)).replace(",)", ")") for row in found
        )
        # With a shuffle, so that the plan is an adaptive one.
        one.spark.sql(f"{start.format(*found[0])} SELECT DISTINCT * FROM VALUES {values}")

    return write


def by_frame(mode: str, overwrite: str = "static") -> Callable[[Side, list[Row]], None]:
    def write(one: Side, found: list[Row]) -> None:
        frame = one.spark.createDataFrame(found, ALL).write.mode(mode).partitionBy("p", "q")
        frame.option("partitionOverwriteMode", overwrite).parquet(one.path)

    return write


# How rows are written, and which rows that were there stay when one is.
WAYS: dict[str, tuple[Callable[[Side, list[Row]], None], Callable[[Row, Row], bool]]] = {
    "append": (by_sql("INSERT INTO t", 0, 1, 2), lambda old, new: True),
    "static": (by_sql("INSERT OVERWRITE t", 0, 1, 2), lambda old, new: False),
    "static with a prefix": (
        by_sql("INSERT OVERWRITE t PARTITION (p = {1}, q)", 0, 2),
        lambda old, new: old[1] != new[1],
    ),
    "static by name": (
        by_sql("INSERT OVERWRITE t PARTITION (p = {1}, q = {2})", 0),
        lambda old, new: old[1:] != new[1:],
    ),
    "dynamic": (by_sql("INSERT OVERWRITE t", 0, 1, 2), lambda old, new: old[1:] != new[1:]),
}
FRAMES = {
    "append": by_frame("append"),
    "static": by_frame("overwrite"),
    "dynamic": by_frame("overwrite", "dynamic"),
}
CASES = [
    *((way, table) for table in ("spark", "hive") for way in WAYS),
    *((way, "unpartitioned") for way in ("append", "static")),
    *((way, "path") for way in FRAMES),
]
NEW: Row = (3, 1, 1)
THERE: list[Row] = [(1, 1, 1), (2, 1, 2), (9, 9, 9)]
LATER: list[Row] = [(5, 1, 5), (6, 6, 6)]  # by another, beside what the overwrite has replaced


@pytest.fixture(autouse=True)
def _sizes(spark: SparkSession, beside_sparks_own: None) -> Iterator[None]:
    with settings(spark, spark__sql__statistics__size__autoUpdate__enabled="true"):
        yield


class Table:
    """A table of one side, and the rows that it should have."""

    def __init__(self, one: Side, way: str, table: str) -> None:
        self.side, self.table, self.way = one, table, way
        self.model: list[Row] = []
        self.add = FRAMES["append"] if table == "path" else WAYS["append"][0]
        self.write = FRAMES[way] if table == "path" else WAYS[way][0]
        if TABLES[table]:
            one.spark.sql(TABLES[table])

    def committed(self, row: Row) -> None:
        """Note that the write has replaced what it replaces. Hive's overwrites are dynamic."""
        is_dynamic = self.table == "hive" and self.way.startswith("static")
        stays = WAYS["dynamic" if is_dynamic else self.way][1]
        self.model = [old for old in self.model if stays(old, row)] + [row]

    def added(self, found: list[Row]) -> None:
        """Rows of another job, without a key."""
        self.add(self.side, found)
        self.model += found

    def written(self, row: Row, **more: str) -> str:
        """The write of the case; returns how it ended."""
        mode = "dynamic" if self.way == "dynamic" else "static"
        more["spark.sql.sources.partitionOverwriteMode"] = mode
        before = len(self.side.steps)
        with settings(self.side.spark, **more):
            self.side.attempt(lambda: self.write(self.side, [row]))
        return self.side.steps[before]

    def check(self) -> None:
        """Rows, partitions and size are those of the files, and the rows those of the model."""
        one, spark = self.side, self.side.spark
        wanted = sorted(f"({a}, {p}, {q})" for a, p, q in self.model)
        if self.table == "path":
            assert rows(spark.read.parquet(one.path)) == wanted
            return
        spark.catalog.refreshTable("t")
        assert rows(spark.table("t")) == wanted
        described = {row[0]: row[1] for row in spark.sql("DESCRIBE EXTENDED t").collect()}
        path = described["Location"]
        assert rows(spark.read.parquet(path)) == wanted
        prefix = path.removeprefix(f"s3a://{one.bucket}/") + "/"
        files = {
            key.key.removeprefix(prefix): key.length
            for key in one.tiny.store.list(one.bucket, prefix)
            if key.key in one.data()
        }
        if self.table != "unpartitioned":
            partitions = rows(spark.sql("SHOW PARTITIONS t"))
            directories = {name.rpartition("/")[0] for name in files}
            assert partitions == sorted(f"('{name}',)" for name in directories)
        (size,) = re.findall(r"(\d+) bytes", described["Statistics"])
        assert int(size) == sum(files.values())


@pytest.mark.parametrize(("way", "table"), CASES)
def test_i11_the_catalog_has_what_is_there_however_a_write_ends(
    spark: SparkSession, tiny: TinyPipeline, way: str, table: str
) -> None:
    key = {KEY: "the-key"}
    with side(spark, tiny, CONTROL) as control:
        by_sparks_own = Table(control, way, table)
        by_sparks_own.added(THERE)
        assert by_sparks_own.written(NEW) == "done"
        wanted = control.found()
    with side(spark, tiny, BUCKET) as one:
        case = Table(one, way, table)
        case.added(THERE)
        assert (
            case.written(NEW, **{"spark.s3commit.conditions.minFiles": "99"}) == "CONDITION_FAILED"
        )
        case.check()

        assert case.written(NEW, **key) == "done"
        case.committed(NEW)
        case.check()
        assert one.found() == wanted

        stale = "ALTER TABLE t ADD PARTITION (p = 1, q = 8)"  # as a driver that died has left it
        if table == "spark" and way in {"static", "static with a prefix"}:
            spark.sql(stale)
            assert case.written(NEW, **key) == "done"
            case.check()

        case.added(LATER)
        assert case.written(NEW, **key) == "done"  # another job has added the data before
        case.check()
        if table == "spark" and way in {"static", "static with a prefix"}:
            spark.sql(stale)
            assert case.written(NEW, **key) == "done"
            case.check()
        if table != "unpartitioned" and way != "static by name":  # another partition, another key
            other = (NEW[0], NEW[1], 4)
            assert case.written(other, **key) == "KEY_TAKEN"
            case.check()

        if table in {"spark", "hive"} and way.startswith("static"):
            with settings(spark, spark__sql__optimizer__plannedWrite__enabled="false"):
                assert case.written(NEW, **key) == "done"
            case.check()

        if table in {"spark", "hive"}:
            spark.sql("ALTER TABLE t DROP PARTITION (p = 1, q = 1)")
            case.model = [row for row in case.model if row[1:] != NEW[1:]]
            if way == "static by name":  # its destination is the partition: the key is forgotten
                assert case.written(NEW, **key) == "done"
                case.committed(NEW)
            else:
                got = case.written(NEW, **key)  # its rows are not there any more
                # An overwrite of the same seconds may have been later, by S3's clocks.
                assert got == "done" or (got == "KEY_TAKEN" and way.startswith("static"))
                if got == "done":
                    case.committed(NEW)
            case.check()
