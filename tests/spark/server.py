"""A server of Spark Connect, as a process of its own."""

import os
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pyspark
from pyspark.sql import SparkSession

from tests.servers import free_ports, until

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


@contextmanager
def connected(settings: Mapping[str, str], log: Path) -> Iterator[SparkSession]:
    """A session at a server that has this process's environment; what it says is in ``log``."""
    from pyspark.sql.connect.session import SparkSession as Remote

    (port,) = free_ports(1)
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    given = {**settings, "spark.connect.grpc.binding.port": str(port)}
    said = [word for pair in given.items() for word in ("--conf", "=".join(pair))]
    memory = ["--driver-memory", settings["spark.driver.memory"]]
    with log.open("w") as output:
        process = subprocess.Popen(
            [submit, "--master", "local[2,3]", *memory, *said, "--class", SERVER, "spark-internal"],
            stdout=output,
            stderr=output,
            env={**os.environ, "SPARK_HOME": str(submit.parents[1])},
            start_new_session=True,
        )

    def answers() -> bool:
        assert process.poll() is None, log.read_text()[-2000:]
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    try:
        until(answers, f"a server that says so in {log}")
        session: Any = Remote.builder.remote(f"sc://127.0.0.1:{port}").create()
        yield cast("SparkSession", session)
        session.stop()
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
