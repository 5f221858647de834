"""Benchmark: the committers side by side, on the same rows and the same server."""

from __future__ import annotations

import shutil
import subprocess
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.figures import Figure, Sample
from bench.pipeline import BUCKET, DATA, Committer, make_pipeline
from bench.spark import Bench, Cost, rows
from bench.writing import Settings, Variant, in_turn
from s3commit.spark.native import PROTOCOL, configure
from tests.native import s3a

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TASKS: Final = 4
PARTITIONED_TASKS: Final = 2
CLASS: Final = "spark.sql.sources.commitProtocolClass"
CLOUD: Final = "org.apache.spark.internal.io.cloud"
SPARKS: Final = "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol"
JARS: Final = s3a.ROOT / ".build" / "bench-jars"


@dataclass(frozen=True, slots=True)
class How:
    """A committer: the session's settings, or our format if there are none."""

    name: str
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_ours(self) -> bool:
        """Whether the pipeline has to commit."""
        return self.settings.get(CLASS, PROTOCOL) == PROTOCOL


def _of_s3a(name: str, **more: str) -> How:
    return How(
        f"S3A {name}",
        {
            CLASS: f"{CLOUD}.PathOutputCommitProtocol",
            "spark.sql.parquet.output.committer.class": f"{CLOUD}.BindingParquetOutputCommitter",
            "fs.s3a.committer.name": name,
            "mapreduce.outputcommitter.factory.scheme.s3a": (
                "org.apache.hadoop.fs.s3a.commit.S3ACommitterFactory"
            ),
            **more,
        },
    )


def _by_renames(version: str) -> How:
    setting = {"mapreduce.fileoutputcommitter.algorithm.version": version}
    return How(f"FileOutputCommitter v{version}", {CLASS: SPARKS, **setting})


NATIVE: Final = How("s3commit, the jar", {CLASS: PROTOCOL})
OTHERS: Final = (
    How("s3commit, the format"),
    _of_s3a("magic"),
    _of_s3a("directory"),
    _by_renames("1"),
    _by_renames("2"),
)


def committers(bench: Bench, settings: Settings) -> list[Figure]:
    """Rows to one directory and to 200; each committer's wall time and CPU beside the jar's."""
    _copy_jars()
    figures: list[Figure] = []
    with bench.session(_session_settings(bench)) as spark:
        plain = rows(spark, settings.rows, TASKS)
        parted = rows(spark, settings.rows // 4, PARTITIONED_TASKS)
        few = rows(spark, settings.rows // 16, PARTITIONED_TASKS)
        for how in (NATIVE, *OTHERS):
            _write(bench, few, how, "k")
        for frame, by, title in (
            (plain, (), f"{settings.rows:,} rows, {TASKS} files"),
            (parted, ("k",), f"{settings.rows // 4:,} rows, 200 directories, 400 files"),
        ):
            ours, *others = in_turn(settings, *_variants(bench, frame, by))
            for how, costs in zip(OTHERS, others, strict=True):
                figures += _figures(title, ours, how, costs)
    return figures


def _variants(bench: Bench, frame: DataFrame, by: tuple[str, ...]) -> Iterator[Variant]:
    for how in (NATIVE, *OTHERS):
        yield Variant(how.name, lambda how=how: _write(bench, frame, how, *by))  # type: ignore[misc]


def _figures(title: str, ours: list[Cost], how: How, costs: list[Cost]) -> Iterator[Figure]:
    for what, of in (("wall", lambda one: one.wall), ("CPU of the tasks", lambda one: one.tasks)):
        measured, against = Sample(tuple(map(of, ours))), Sample(tuple(map(of, costs)))
        yield Figure(title, what, "s", measured, how.name, against)


def _write(bench: Bench, frame: DataFrame, how: How, *by: str) -> Cost:
    prefix = f"{DATA}{uuid.uuid4().hex}/"
    with ExitStack() as stack:
        stack.enter_context(_set(frame.sparkSession, how.settings))
        if how.is_ours:
            stack.enter_context(Committer(make_pipeline(bench.store), prefix))
        writer = frame.write.mode("append")
        with bench.measured(frame.sparkSession) as costs:
            if how.settings:
                writer.partitionBy(*by).parquet(f"s3a://{BUCKET}/{prefix}")
            else:
                named = writer.option("partitionBy", ",".join(by)) if by else writer
                named.format("s3commit").save(f"s3://{BUCKET}/{prefix}")
    for found in bench.store.list(BUCKET, prefix):
        bench.store.delete(BUCKET, found.key)
    return costs[0]


@contextmanager
def _set(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield
    for name in settings:
        spark.conf.unset(name)


def _session_settings(bench: Bench) -> dict[str, str]:
    from pyspark.sql import SparkSession

    user = bench.weed.ADMIN
    keys = {f"spark.hadoop.fs.s3a.{one}.key": user for one in ("access", "secret")}
    own = {**s3a.settings(bench.weed.endpoint), **keys}
    del own["spark.hadoop.fs.s3a.multipart.size"]
    jars = ",".join(map(str, (*s3a.jars(), *JARS.glob("*.jar"))))
    found: dict[str, str] = configure(SparkSession.Builder().config("spark.jars", jars))._options
    return {**own, "spark.jars": found["spark.jars"]}


def _copy_jars() -> None:
    if not s3a.folder().exists():
        s3a.copy()
    if not JARS.exists():
        new: Path = JARS.with_suffix(".new")
        shutil.rmtree(new, ignore_errors=True)
        pom = str(Path(__file__).with_name("pom.xml"))
        try:
            s3a.maven("--file", pom, "dependency:copy-dependencies", f"-DoutputDirectory={new}")
        except subprocess.CalledProcessError as error:
            raise SystemExit("bench: Maven could not copy the jars of bench/pom.xml") from error
        new.rename(JARS)
