"""The points where a query may die, a source to replay, and a driver to kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

POINTS = ("first_bytes", "manifest_put", "before_request", "request_put", "committed")
ROWS = 20  # a file, and so a micro-batch


class FaultError(RuntimeError):
    """What a point raises, over and over, while its file is there."""


def at(point: str, faults: str) -> None:
    """Raise, or say who is here and stay for ever, as the point's file wants it."""
    file = Path(faults, point)
    if not file.exists():
        return
    if file.read_text() == "raise":
        raise FaultError(point)
    Path(faults, "reached").write_text(json.dumps(os.getpid()))
    while True:
        time.sleep(3600)


class Work:
    """The directories of one query: its source, its checkpoint, its faults."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.source, self.checkpoint = root / "in", root / "checkpoint"
        self.faults = root / "faults"
        self.source.mkdir(exist_ok=True)
        self.faults.mkdir(exist_ok=True)
        self.rows = 0

    def add_file(self) -> None:
        """`ROWS` more rows arrive at the source."""
        ids = range(self.rows, self.rows + ROWS)
        text = "\n".join(json.dumps({"id": n, "k": n % 2}) for n in ids)
        number = self.rows // ROWS
        path = self.source / f"{number:03d}.json"
        path.write_text(text)
        os.utime(path, (1_700_000_000 + number,) * 2)  # Spark takes the older first
        self.rows += ROWS

    def fault(self, point: str, how: str) -> None:
        (self.faults / point).write_text(how)

    def mend(self, point: str) -> None:
        (self.faults / point).unlink()

    def forget_last_commit(self) -> None:
        """Spark's own log is behind the sink: a crash between the two."""
        commits = self.checkpoint / "commits"
        last = max((path.name for path in commits.glob("[0-9]*")), key=int)
        (commits / last).unlink()
        (commits / f".{last}.crc").unlink()

    def frames(self, spark: SparkSession) -> DataFrame:
        """A stream of the source's files, one a micro-batch, in two tasks."""
        reader = spark.readStream.schema("id bigint, k int").option("maxFilesPerTrigger", 1)
        return reader.json(str(self.source)).repartition(2)


def kill_driver(module: str, uri: str, work: Work) -> None:
    """Run the module's query, and kill driver, JVM and worker where it stays."""
    root = str(Path(__file__).parents[2])
    path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    log_file = work.root / "driver.log"
    with log_file.open("w") as log:
        driver = subprocess.Popen(
            [sys.executable, "-m", module, uri, str(work.root)],
            env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": path},
            stdout=log,
            stderr=log,
            cwd=root,
        )
    reached = work.faults / "reached"
    deadline = time.monotonic() + 120
    while not (reached.exists() and reached.read_text()):
        assert driver.poll() is None, log_file.read_text()
        assert time.monotonic() < deadline, log_file.read_text()
        time.sleep(0.05)
    victims = [int((work.faults / "jvm").read_text()), driver.pid, int(reached.read_text())]
    for victim in set(victims):
        os.kill(victim, signal.SIGKILL)
    driver.wait()


def drive(begin: Callable[[SparkSession, str, Work], StreamingQuery]) -> None:
    """The driver that is going to be killed; its arguments are the destination and the work."""
    from pyspark.sql import SparkSession

    uri, root = sys.argv[1:]
    builder = SparkSession.builder.master("local[2,3]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.memory", "512m")
    builder = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", "2")
    builder = builder.config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    work = Work(Path(root))
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    (work.faults / "jvm").write_text(str(gateway.proc.pid))
    begin(spark, uri, work).awaitTermination()
