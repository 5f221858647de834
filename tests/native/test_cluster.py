"""Drivers of their own: with a cluster of two workers, and with another serializer."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from s3commit.core.model.states import JobState
from tests.native import s3a
from tests.native.conftest import uri
from tests.native.s3a import ROOT
from tests.servers import free_ports, ran
from tests.spark.tiny import Place, TinyPipeline

DEPLOY = "org.apache.spark.deploy"
# Spark starts a second attempt on another host only.
HOSTS = ("127.0.0.1", "127.0.0.2")


def environment(work: Path) -> dict[str, str]:
    home = Path(pyspark.__file__).parent
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_WORKER_DIR": str(work),
        "SPARK_NO_DAEMONIZE": "1",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": path,
    }


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a cluster of Spark's own."""
    work = tmp_path_factory.mktemp("work")
    (port,) = free_ports(1)
    url = f"spark://{HOSTS[0]}:{port}"
    with ExitStack() as stack:
        here = ["--host", HOSTS[0], "--port", str(port), "--webui-port", "0"]
        stack.enter_context(daemon(work, "master", f"{DEPLOY}.master.Master", *here))
        for host in HOSTS:
            there = ["--host", host, "--cores", "1", "--memory", "1g", "--webui-port", "0", url]
            stack.enter_context(daemon(work, host, f"{DEPLOY}.worker.Worker", *there))
        yield url


@contextmanager
def daemon(work: Path, name: str, *arguments: str) -> Iterator[None]:
    spark_class = Path(pyspark.__file__).parent / "bin" / "spark-class"
    with Path(work, f"{name}.log").open("w") as log:
        process = subprocess.Popen(
            [str(spark_class), *arguments],
            env=environment(work),
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            yield
        finally:
            process.terminate()
            process.wait(60)


def drive(tiny: TinyPipeline, place: Place, directory: Path, **settings: str) -> None:
    """Write 1000 rows in a driver with these settings, which have ``__`` for ``.``."""
    said = {f"spark.{name.replace('__', '.')}": value for name, value in settings.items()}
    said |= {**s3a.settings(tiny.environment["AWS_ENDPOINT_URL"]), "spark.ui.enabled": "false"}
    program = [sys.executable, "-m", "tests.native.program", uri(place), json.dumps(said)]
    done = ran(*program, directory, env=environment(directory), cwd=ROOT, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    assert place.tidy().state is JobState.COMMITTED
    assert len(place.data) == 4
    assert place.uploads == []


def test_i3_i4_speculation_counts_one_attempt_and_leaks_nothing(
    spark: SparkSession, tiny: TinyPipeline, place: Place, master: str, tmp_path: Path
) -> None:
    drive(
        tiny,
        place,
        tmp_path,
        master=master,
        driver__host=HOSTS[0],
        executor__memory="512m",
        sql__execution__arrow__maxRecordsPerBatch="100",
        speculation="true",
        speculation__efficiency__enabled="false",
        speculation__quantile="0.5",
        speculation__multiplier="1.1",
    )
    attempts = {path.name for path in tmp_path.glob("?-?")}
    assert attempts == {"0-0", "1-0", "1-1", "2-0", "3-0"}
    assert sorted(row.id for row in spark.read.parquet(uri(place)).collect()) == list(range(1000))


@pytest.mark.long
def test_a_task_can_be_serialized_by_kryo(tiny: TinyPipeline, place: Place, tmp_path: Path) -> None:
    """Registered classes alone."""
    drive(
        tiny,
        place,
        tmp_path,
        master="local[2]",
        serializer="org.apache.spark.serializer.KryoSerializer",
        kryo__registrationRequired="true",
    )
