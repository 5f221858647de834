"""A server of Spark Connect, as a process of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import pyspark

from tests.servers import free_ports

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


class ConnectServer:
    """Runs while the block does, with this process's environment; what it says is in ``log``."""

    def __init__(self, settings: Mapping[str, str], log: Path) -> None:
        (self._port,) = free_ports(1)
        self._log = log
        self._session: Any = None
        self._settings = {**settings, "spark.connect.grpc.binding.port": str(self._port)}

    def __enter__(self) -> Self:
        submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
        said = [word for pair in self._settings.items() for word in ("--conf", "=".join(pair))]
        memory = ["--driver-memory", self._settings["spark.driver.memory"]]
        command = [str(submit), "--master", "local[2,3]", *memory, *said, "--class", SERVER]
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [*command, "spark-internal"],
                stdout=log,
                stderr=log,
                env={**os.environ, "SPARK_HOME": str(submit.parents[1])},
                start_new_session=True,
            )
        self._wait()
        return self

    def __exit__(self, *_: object) -> None:
        if self._session is not None:
            self._session.stop()
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def session(self) -> SparkSession:
        """A session of this process at the server."""
        from pyspark.sql.connect.session import SparkSession as Remote

        builder = Remote.builder.remote(f"sc://127.0.0.1:{self._port}")
        self._session = builder.create()
        return cast("SparkSession", self._session)

    def _wait(self) -> None:
        for _ in range(600):
            assert self._process.poll() is None, self._log.read_text()[-2000:]
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self._port)) == 0:
                    return
            time.sleep(0.1)
        raise AssertionError(self._log.read_text()[-2000:])
