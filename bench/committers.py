"""Benchmark: the committers side by side, on the same rows and the same server."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import s3commit.spark
from bench.fleet import Fleet
from bench.front import CLUSTER, PIPELINE, Counts, Front
from bench.pipeline import BUCKET, DATA, Committer, environment, make_pipeline
from bench.processes import Meter, largest_peak, reset_peaks
from bench.spark import Bench, jvm_pid
from bench.workloads import NAMES, Workload, workloads
from s3commit.aws.clients import make_client
from s3commit.aws.s3 import S3ObjectStore
from s3commit.core.ports.bundle import Ports
from s3commit.spark.native import PROTOCOL, configure
from tests.native import s3a

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from bench.writing import Say

CLASS: Final = "spark.sql.sources.commitProtocolClass"
CLOUD: Final = "org.apache.spark.internal.io.cloud"
SPARKS: Final = "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol"
JARS: Final = s3a.ROOT / ".build" / "bench-jars"
_LOOK_SECONDS: Final = 0.02
LONG: Final = 60  # seconds; who takes longer runs once
TUNED: Final = "tuned"  # a bucket of its own, since a file system is configured by its bucket
TUNING: Final = {
    "fs.s3a.committer.threads": "96",
    "fs.s3a.committer.magic.track.commits.in.memory.enabled": "true",
}


@dataclass(frozen=True, slots=True)
class How:
    """A committer: the session's settings, or `s3commit.spark.write` if there are none."""

    name: str
    settings: Mapping[str, str] = field(default_factory=dict)
    bucket: str = BUCKET
    overwrites: bool = True  # partitions; those of S3A do so when a job appends, or not at all

    @property
    def is_ours(self) -> bool:
        """Whether the pipeline has to commit."""
        return self.settings.get(CLASS, PROTOCOL) == PROTOCOL


def _of_s3a(committer: str, title: str = "", **more: str) -> How:
    settings = {
        CLASS: f"{CLOUD}.PathOutputCommitProtocol",
        "spark.sql.parquet.output.committer.class": f"{CLOUD}.BindingParquetOutputCommitter",
        "fs.s3a.committer.name": committer,
        "mapreduce.outputcommitter.factory.scheme.s3a": (
            "org.apache.hadoop.fs.s3a.commit.S3ACommitterFactory"
        ),
        **more,
    }
    return How(f"S3A {committer}{title}", settings, TUNED if title else BUCKET, overwrites=False)


def _by_renames(version: str) -> How:
    setting = {"mapreduce.fileoutputcommitter.algorithm.version": version}
    return How(f"FileOutputCommitter v{version}", {CLASS: SPARKS, **setting})


OURS: Final = (How("s3commit, the jar", {CLASS: PROTOCOL}), How("s3commit, write"))
S3AS: Final = (
    _of_s3a("magic"),
    _of_s3a("magic", ", tuned", **TUNING),
    _of_s3a("directory"),
    _of_s3a("directory", ", tuned", **TUNING),
)
PARTITIONED: Final = _of_s3a("partitioned", **{"fs.s3a.committer.staging.conflict-mode": "replace"})
BY_RENAMES: Final = (_by_renames("1"), _by_renames("2"))


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is written: small files, or rows; how often; behind which delays, in ms."""

    files: int
    rows: int
    rounds: int
    delays: Sequence[int]
    names: Sequence[str] = NAMES  # of the workloads
    committers: Sequence[str] = ()  # parts of their names; none: all
    commit_only: bool = False  # S3 is fast until the last task has ended


@dataclass(frozen=True, slots=True)
class Run:
    """One write: seconds of wall time and CPU, and its requests to S3."""

    wall: float
    commit: float  # of that, what came after the last task
    cluster: float  # CPU of the JVM and of its Python workers
    pipeline: float  # CPU of what are functions in AWS
    heap: int  # peaks in bytes: of the JVM's heap, garbage included
    worker: int  # of a Python worker; 0: there is none
    function: int  # of a process that completes uploads; 0: there is none
    requests: Counts
    pipeline_requests: Counts


@dataclass(frozen=True, slots=True)
class Compared:
    """The runs of each committer, of one workload behind one delay."""

    workload: Workload
    delay: int
    runs: Mapping[str, Sequence[Run]]


def committers(bench: Bench, scale: Scale, say: Say) -> Iterator[Compared]:
    """Every workload by every committer that can do it, in turn, behind each delay."""
    _copy_jars()
    with ExitStack() as stack:
        # SeaweedFS takes longer for a completion than any committer: it would be what is measured.
        front = stack.enter_context(Front(None if scale.commit_only else bench.weed.endpoint))
        functions = environment(bench.weed.ADMIN, front.pipeline)
        fleet = stack.enter_context(Fleet(functions))
        os.environ.update(functions)
        client = make_client()
        for bucket in (BUCKET, TUNED) if scale.commit_only else (TUNED,):
            client.create_bucket(Bucket=bucket)
        # Spark's workers inherit the environment that the JVM is started with.
        os.environ.update(environment(bench.weed.WRITER, front.cluster))
        spark = stack.enter_context(bench.session(_session_settings(bench, front)))
        stage = _Stage(front, fleet, make_pipeline(S3ObjectStore(client)), spark)
        for delay in scale.delays:
            for workload in workloads(scale.files, scale.rows):
                if workload.name in scale.names:
                    yield _compared(stage, workload, delay, scale, say)


@dataclass(frozen=True, slots=True)
class _Stage:
    """What all runs share."""

    front: Front
    fleet: Fleet
    pipeline: Ports
    spark: SparkSession
    delay: int = 0  # while tasks write
    last: int = 0  # from the end of the last task on


def _compared(stage: _Stage, workload: Workload, delay: int, scale: Scale, say: Say) -> Compared:
    frame = workload.make(stage.spark)
    hows = [
        how
        for how in (*OURS, *((PARTITIONED,) if workload.overwrites else S3AS), *BY_RENAMES)
        if not scale.committers or any(part in how.name for part in scale.committers)
    ]
    runs: dict[str, list[Run]] = {how.name: [] for how in hows}
    if delay == scale.delays[0]:
        for how in hows:
            _run(stage, frame, workload, how)  # for the JVM's compiler
    delayed = replace(stage, delay=0 if scale.commit_only else delay, last=delay)
    for turn in range(scale.rounds):
        for how in hows:
            if turn and runs[how.name][0].wall > LONG:
                continue
            run = _run(delayed, frame, workload, how)
            runs[how.name].append(run)
            say(
                f"+{delay} ms, {workload.name}, round {turn + 1}, {how.name}: {run.wall:.1f} s,"
                f" commit {run.commit:.1f} s, {sum(run.requests.values())} requests"
            )
    return Compared(workload, delay, runs)


def _run(stage: _Stage, frame: DataFrame, workload: Workload, how: How) -> Run:
    prefix = f"{DATA}{uuid.uuid4().hex}/"
    stage.front.delay(0)
    try:
        if workload.overwrites:
            _write(replace(stage, last=0), frame, workload, how, prefix)
        stage.front.delay(stage.delay)
        stage.front.reset()
        return _write(stage, frame, workload, how, prefix)
    finally:
        stage.front.delay(0)
        store = stage.pipeline.store
        for found in store.list(how.bucket, prefix):
            store.delete(how.bucket, found.key)


def _write(stage: _Stage, frame: DataFrame, workload: Workload, how: How, prefix: str) -> Run:
    spark, fleet, group = stage.spark, stage.fleet, uuid.uuid4().hex
    with ExitStack() as stack:
        stack.enter_context(_set(spark, how.settings))
        spark.sparkContext.setJobGroup(group, how.name)
        if how.is_ours:
            stack.enter_context(Committer(stage.pipeline, prefix, fleet))
        if stage.last != stage.delay:
            stack.enter_context(_delayed_at_last(stage, group))
        save = _saver(frame, workload, how)
        _reset_heap(spark)
        reset_peaks(jvm_pid(spark))
        with Meter(jvm_pid(spark)) as meter:
            cpu, start = time.process_time() + fleet.cpu, time.time()
            save(f"{'s3a' if how.settings else 's3'}://{how.bucket}/{prefix}")
            end = time.time()
    counts = stage.front.counts()
    return Run(
        wall=end - start,
        commit=end - _last_task_ended(spark, group),
        cluster=meter.own + meter.below,
        pipeline=time.process_time() + fleet.cpu - cpu if how.is_ours else 0.0,
        heap=sum(pool.getPeakUsage().getUsed() for pool in _heap(spark)),
        worker=0 if how.settings else largest_peak(jvm_pid(spark)),
        function=fleet.peak if how.is_ours else 0,
        requests=counts[CLUSTER],
        pipeline_requests=counts[PIPELINE],
    )


def _reset_heap(spark: SparkSession) -> None:
    """Let the heap's peak begin with what is left after a collection."""
    virtual_machine: Any = spark._jvm
    virtual_machine.System.gc()
    for pool in _heap(spark):
        pool.resetPeakUsage()


def _heap(spark: SparkSession) -> list[Any]:
    virtual_machine: Any = spark._jvm
    pools = virtual_machine.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    return [pool for pool in pools if pool.getType().name() == "HEAP"]


@contextmanager
def _delayed_at_last(stage: _Stage, group: str) -> Iterator[None]:
    """Have S3 answer with the commit's delay once every task of the group's jobs has ended."""
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(_LOOK_SECONDS):
            if _is_written(stage.spark, group):
                stage.front.delay(stage.last)
                return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _is_written(spark: SparkSession, group: str) -> bool:
    tracker = spark.sparkContext.statusTracker()
    jobs = map(tracker.getJobInfo, tracker.getJobIdsForGroup(group))
    stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
    return bool(stages) and all(
        stage is not None and stage.numTasks == stage.numCompletedTasks for stage in stages
    )


def _saver(frame: DataFrame, workload: Workload, how: How) -> Callable[[str], object]:
    """What writes the frame to a path."""
    overwrites = workload.overwrites and how.overwrites
    mode: Literal["overwrite", "append"] = "overwrite" if overwrites else "append"
    if how.settings:
        scope = {"partitionOverwriteMode": "dynamic"} if overwrites else {}
        return frame.write.mode(mode).options(**scope).partitionBy(*workload.by).parquet
    return lambda path: s3commit.spark.write(
        frame,
        path,
        mode=mode,
        partition_by=workload.by,
        partition_overwrite_mode="dynamic" if overwrites else None,
    )


def _last_task_ended(spark: SparkSession, group: str) -> float:
    """When the last stage of the group's jobs was completed, in seconds since 1970."""
    context = spark.sparkContext
    tracker, store = context.statusTracker(), context._jsc.sc().statusStore()
    jobs = [tracker.getJobInfo(number) for number in tracker.getJobIdsForGroup(group)]
    ends = [
        store.lastStageAttempt(stage).completionTime()
        for job in jobs
        if job is not None
        for stage in job.stageIds
    ]
    return max(float(end.get().getTime()) for end in ends if end.isDefined()) / 1000


@contextmanager
def _set(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield
    for name in settings:
        spark.conf.unset(name)


def _session_settings(bench: Bench, front: Front) -> dict[str, str]:
    from pyspark.sql import SparkSession

    own = bench.reader_settings(front.cluster)
    for name, value in TUNING.items():
        own["spark.hadoop." + name.replace("fs.s3a.", f"fs.s3a.bucket.{TUNED}.")] = value
    del own["spark.hadoop.fs.s3a.multipart.size"]
    jars = ",".join([own["spark.jars"], *map(str, JARS.glob("*.jar"))])
    found: dict[str, str] = configure(SparkSession.Builder().config("spark.jars", jars))._options
    return {**own, "spark.jars": found["spark.jars"]}


def _copy_jars() -> None:
    if not JARS.exists():
        new: Path = JARS.with_suffix(".new")
        shutil.rmtree(new, ignore_errors=True)
        pom = str(Path(__file__).with_name("pom.xml"))
        try:
            s3a.maven("--file", pom, "dependency:copy-dependencies", f"-DoutputDirectory={new}")
        except subprocess.CalledProcessError as error:
            raise SystemExit("bench: Maven could not copy the jars of bench/pom.xml") from error
        new.rename(JARS)
