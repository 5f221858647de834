"""One program at two places of one session: at ours, and where Spark's own protocol commits."""

import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.captured import CapturedException
from pyspark.sql import DataFrame, SparkSession

from tests.spark.tiny import BUCKET, TinyPipeline

# What a program gets of an error in Spark; older releases convert fewer.
FAILURES = (Py4JJavaError, PySparkException)
# A bucket that `spark.s3commit.prefixes` does not name, and no pipeline serves.
CONTROL = "sparks-own"
DONE = "done"
OURS = "io.s3commit.spark.CommitException"


@dataclass
class Side:
    """A database and a path, in our bucket or in the control's."""

    spark: SparkSession
    tiny: TinyPipeline
    bucket: str
    # What each statement and each attempt ended with.
    steps: list[str] = field(default_factory=list)
    form: str = "parquet"
    scheme: str = "s3a"

    def __post_init__(self) -> None:
        self.db = f"db_{uuid.uuid4().hex[:8]}"
        self.base = f"{self.scheme}://{self.bucket}/"
        self.root = self.base + self.db
        self.path = f"{self.root}_files/path"
        self.apart = f"{self.root}_files/apart"

    @property
    def ours(self) -> bool:
        return self.bucket == BUCKET

    def script(self, text: str) -> None:
        """Run statements that end with ``;`` and their line; one that begins with ``!`` fails."""
        for statement in filter(str.strip, re.split(r";\n", text.strip().rstrip(";"))):
            wanted = statement.strip()
            for name in ("path", "apart", "root"):
                wanted = wanted.replace(f"{{{name}}}", getattr(self, name))
            if wanted.startswith("!"):
                self.attempt(partial(self.spark.sql, wanted[1:]))
            else:
                self.spark.sql(wanted)
                self.steps.append(DONE)

    def attempt(self, action: Callable[[], object]) -> None:
        """Do what may fail, and note how it ended."""
        try:
            action()
            self.steps.append(DONE)
        except FAILURES as error:
            self.steps.append(kind(error))

    def frame(self, first: int = 0, count: int = 6) -> DataFrame:
        """Rows from two tasks, of three days."""
        return self.spark.range(first, first + count, 1, 2).selectExpr(
            "id", "concat('d', id % 3) AS dt"
        )

    def keys(self, of: str = "") -> list[str]:
        """Every object of this side."""
        return [one.key for one in self.tiny.store.list(self.bucket, self.db) if of in one.key]

    def data(self) -> list[str]:
        """The objects that a reader of directories sees."""
        hidden = re.compile(r"/[_.](?![^/]*=)|/$")
        return [key for key in self.keys() if not hidden.search(key)]

    def jobs(self) -> int:
        """How many jobs of s3commit were opened here."""
        return len(self.keys("/_job.json"))

    def settle(self) -> None:
        """Wait until the pipeline has tidied up after every job here, which is after its result."""
        for key in self.keys("/_job.json"):
            self.tiny.wait_until_tidy(key.split("__magic_job-")[1].split("/")[0])

    def uploads(self) -> list[str]:
        return [one.key for one in self.tiny.store.list_uploads(self.bucket, self.db)]

    def found(self) -> dict[str, Any]:
        """Rows and partitions of the tables, where their files are, and the rows of the path."""
        found: dict[str, Any] = dict(found_in(self.spark, self.db))
        for name in list(found):
            described = self.spark.sql(f"DESCRIBE TABLE EXTENDED {self.db}.{name}").collect()
            (location,) = (row.data_type for row in described if row.col_name == "Location")
            found[f"files of {name}"] = self._files(location)
        if any("_files/path" in key for key in self.data()):
            found["path"] = rows(self.spark.read.format(self.form).load(self.path))
        return found

    def _files(self, location: str) -> dict[str, int]:
        """How many files a reader sees that knows no catalog, by the directories below."""
        base = location.removeprefix(self.base) + "/"
        below = (key.removeprefix(base) for key in self.data() if key.startswith(base))
        return dict(Counter(name.rpartition("/")[0] for name in below))


def found_in(spark: SparkSession, db: str) -> dict[str, list[list[str]]]:
    """The rows and the partitions of each table."""
    shown = spark.sql(f"SHOW TABLES IN {db}").collect()
    found = {}
    for name in sorted(row.tableName for row in shown if not row.isTemporary):
        table = f"{db}.{name}"
        spark.catalog.refreshTable(table)
        columns = spark.catalog.listColumns(table)
        by = any(column.isPartition for column in columns)
        partitions = rows(spark.sql(f"SHOW PARTITIONS {table}")) if by else []
        found[name] = [rows(spark.table(table)), partitions]
    return found


def rows(frame: DataFrame) -> list[str]:
    """In an order, with the columns by name: files have partitions' columns last."""
    names = sorted(frame.columns)
    return sorted(str(tuple(row[name] for name in names)) for row in frame.collect())


def java(error: BaseException) -> list[Any]:
    """The exceptions of the JVM, from the outermost to the root."""
    if isinstance(error, Py4JJavaError):
        one = error.java_exception
    elif isinstance(error, CapturedException):
        one = error._origin
    else:
        return []
    chain: list[Any] = []
    while one is not None and len(chain) < 20:
        chain.append(one)
        one = one.getCause()
    return chain


def message(error: BaseException) -> str:
    """Our own line; empty if the error is none of ours."""
    ours = [one for one in java(error) if one.getClass().getName() == OURS]
    return str(ours[-1].getMessage()) if ours else ""


def kind(error: BaseException) -> str:
    """Our code, Spark's condition, or the class of the root's exception."""
    if line := message(error):
        return str(re.findall(r"\[(\w+)\]", line)[-1])
    name = "getCondition" if hasattr(error, "getCondition") else "getErrorClass"
    condition = getattr(error, name)() if hasattr(error, name) else None
    chain = java(error)
    return str(condition or (chain[-1].getClass().getName() if chain else type(error).__name__))


@contextmanager
def side(
    spark: SparkSession, tiny: TinyPipeline, bucket: str, form: str = "parquet", scheme: str = "s3a"
) -> Iterator[Side]:
    """A side whose database is the session's current one; dropped at the end."""
    one = Side(spark, tiny, bucket, form=form, scheme=scheme)
    before = spark.catalog.currentDatabase()
    spark.sql(f"CREATE DATABASE {one.db} LOCATION '{one.root}'")
    spark.catalog.setCurrentDatabase(one.db)
    one.frame().createOrReplaceTempView("s")
    try:
        yield one
    finally:
        spark.catalog.setCurrentDatabase(before)
        spark.sql(f"DROP DATABASE {one.db} CASCADE")
