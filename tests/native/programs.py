"""Programs as dbt and people write them: each has a session and a database, and leaves tables.

They know nothing of s3commit. As a module this runs some of them in a driver of its own: `main`.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from tests.native.sides import found_in

LONGEST_WAIT = 300


@dataclass(frozen=True)
class Place:
    """A session, its database for one program, and where the database is."""

    spark: SparkSession
    db: str
    root: str
    directory: str = ""  # of this machine, for what a task and the tests say to each other

    def sql(self, script: str) -> None:
        """Statements with ``;`` between them; ``{db}`` is the database."""
        for statement in filter(str.strip, script.split(";")):
            self.spark.sql(statement.strip().replace("{db}", self.db))

    def view(self, day: int, late: int = 0) -> None:
        """The view `raw`: a day's orders, some of which belong to the day before."""
        frame = self.spark.range(0, 20, 1, 2).selectExpr(
            f"id + {100 * day} AS id",
            "CAST(id * 1.25 AS DECIMAL(10, 2)) AS amount",
            f"concat('2026-11-', IF(id < {late}, {19 + day}, {20 + day})) AS day",
        )
        frame.createOrReplaceTempView(f"raw_{self.db}")

    def model(self, name: str, query: str, how: str = "USING parquet") -> None:
        """What dbt does for a model that is materialized as a table."""
        self.sql(f"DROP TABLE IF EXISTS {{db}}.{name}; CREATE TABLE {{db}}.{name} {how} AS {query}")


Program = Callable[[Place], None]
ORDERS = (
    "CREATE TABLE IF NOT EXISTS {db}.orders (id BIGINT, amount DECIMAL(10, 2), day STRING)"
    " USING parquet PARTITIONED BY (day);"
)


def incremental(place: Place) -> None:
    """What dbt does with `insert_overwrite` and `partition_by`; some orders come a day late."""
    place.view(0)
    place.model("orders", "SELECT * FROM raw_{db}", "USING parquet PARTITIONED BY (day)")
    for day in (1, 2):
        place.view(day, late=5)
        place.sql(
            "CREATE OR REPLACE TEMPORARY VIEW tmp_{db} AS"
            " SELECT id, amount, day FROM raw_{db} UNION ALL SELECT o.id, o.amount, o.day"
            " FROM {db}.orders o WHERE o.day IN (SELECT day FROM raw_{db});"
            "CREATE TABLE {db}.merged USING parquet AS SELECT * FROM tmp_{db};"
            "SET spark.sql.sources.partitionOverwriteMode = DYNAMIC;"
            "INSERT OVERWRITE TABLE {db}.orders PARTITION (day) SELECT * FROM {db}.merged;"
            "SET spark.sql.sources.partitionOverwriteMode = STATIC;"
            "DROP TABLE {db}.merged"
        )


def hive(place: Place) -> None:
    """Hive's tables, whose partitions Hive's catalog has."""
    place.sql(
        "CREATE TABLE {db}.orders (id BIGINT, amount DECIMAL(10, 2)) PARTITIONED BY (day STRING)"
        " STORED AS PARQUET"
    )
    for day in range(2):
        place.view(day)
        place.sql("INSERT INTO TABLE {db}.orders PARTITION (day) SELECT * FROM raw_{db}")
    place.sql(
        "INSERT OVERWRITE TABLE {db}.orders PARTITION (day = '2026-11-20')"
        " SELECT id, amount FROM raw_{db};"
        "ALTER TABLE {db}.orders DROP PARTITION (day = '2026-11-21');"
        "ALTER TABLE {db}.orders ADD PARTITION (day = '2026-11-21');"
        "INSERT INTO {db}.orders PARTITION (day = '2026-11-21') SELECT id, amount FROM raw_{db}"
    )
    found = place.spark.table(f"{place.db}.orders").where("day = '2026-11-20'")
    found.write.mode("overwrite").saveAsTable(f"{place.db}.first")
    place.sql("MSCK REPAIR TABLE {db}.orders")


def hang_once(mark: Path) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Tasks that stand still for good after their first rows, unless a driver before had some."""

    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        hangs = not mark.exists()
        yield from batches
        if hangs:
            time.sleep(1)  # the other task looks, too
            mark.touch()
            time.sleep(LONGEST_WAIT)

    return pass_on


def killed(place: Place) -> None:
    """Its first driver dies while the tasks write; it is run again by another one."""
    place.sql(ORDERS)
    place.view(0)
    frame = place.spark.table(f"raw_{place.db}")
    mark = Path(place.directory, place.db)
    frame.mapInArrow(hang_once(mark), frame.schema).createOrReplaceTempView(f"slow_{place.db}")
    place.sql(
        "INSERT OVERWRITE {db}.orders PARTITION (day = 'x') SELECT id, amount FROM slow_{db};"
        "INSERT INTO {db}.orders SELECT * FROM raw_{db}"
    )


def first_half(place: Place) -> None:
    """Days 0 and 1 of a table at a location that another driver writes to as well."""
    Path(place.directory, place.db).touch()
    shared(place, 0)


def second_half(place: Place) -> None:
    """Days 2 and 3."""
    shared(place, 2)


def shared(place: Place, first: int) -> None:
    place.sql(ORDERS.replace(";", f" LOCATION '{place.root}_files/shared';"))
    for day in (first, first + 1):
        place.view(day)
        place.sql("INSERT INTO {db}.orders SELECT * FROM raw_{db}")
        place.sql(
            f"INSERT OVERWRITE {{db}}.orders PARTITION (day = '2026-11-{20 + first}')"
            " SELECT id, amount FROM raw_{db}"
        )


PROGRAMS: dict[str, Program] = {
    one.__name__: one for one in (incremental, hive, killed, first_half, second_half)
}


def main() -> None:
    """Run ``runs``: program, database, root, directory. The last line has what each one left."""
    wanted = json.loads(sys.argv[1])
    from s3commit.spark.native import configure

    builder = SparkSession.builder.master("local[4]").config(map=wanted["settings"])
    spark = configure(builder).enableHiveSupport().getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")

    def run(name: str, db: str, root: str, directory: str) -> object:
        spark.sql(f"CREATE DATABASE IF NOT EXISTS {db} LOCATION '{root}'")
        PROGRAMS[name](Place(spark, db, root, directory))
        return found_in(spark, db)

    with ThreadPoolExecutor(wanted["threads"]) as threads:
        ends = [threads.submit(run, *one) for one in wanted["runs"]]
        print(json.dumps([one.result() for one in ends]))
    spark.stop()


if __name__ == "__main__":
    main()
