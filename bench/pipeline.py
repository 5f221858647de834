"""The store of the write benchmarks, and the protocol that commits their jobs for real.

SeaweedFS sends no notifications, so a thread looks for each job's request instead, and runs the
same steps that the state machine runs in AWS, with a ledger in memory.
"""

import json
import threading
import traceback
from collections.abc import Iterator
from typing import Final, Self

from s3commit.aws.clients import MAX_POOL_CONNECTIONS
from s3commit.aws.clock import SystemClock
from s3commit.aws.parallel import ThreadMap
from s3commit.aws.s3 import S3ObjectStore
from s3commit.core.commit.note_arrivals import note_job
from s3commit.core.formats.layout import JobDirectory, parse_directory
from s3commit.core.ports.bundle import Ports
from tests.fakes.execution import CompleteUnits, one_by_one, run_execution
from tests.fakes.ledger import MemoryLedger
from tests.servers import Weed

BUCKET: Final = "bench"
DATA: Final = "data/"  # jobs write below it
LOOK_SECONDS: Final = 0.1
REGION: Final = "us-east-1"


class BenchWeed(Weed):
    """SeaweedFS with a second user for the jobs, who has rights below `DATA` alone.

    That is what the documentation asks for Spark in AWS. Here it also means that a job may not
    read the bucket's notifications, of which SeaweedFS says that there are none, and continues.
    """

    ADMIN: Final = "testing"
    WRITER: Final = "writer"

    @property
    def pid(self) -> int:
        """The server's process."""
        return self._process.pid

    def _arguments(self) -> list[str]:
        arguments = super()._arguments()
        path = self._directory / "s3.json"
        users = json.loads(path.read_text())
        users["identities"].append(
            {
                "name": self.WRITER,
                "credentials": [{"accessKey": self.WRITER, "secretKey": self.WRITER}],
                "actions": [f"{right}:{BUCKET}/{DATA}*" for right in ("Read", "Write")],
            }
        )
        path.write_text(json.dumps(users))
        return arguments


def environment(user: str, endpoint: str) -> dict[str, str]:
    """The standard AWS variables that lead any SDK there, as ``user``."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": user,
        "AWS_SECRET_ACCESS_KEY": user,
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def make_pipeline(store: S3ObjectStore) -> Ports:
    """The pipeline of a function in AWS, but for the ledger: one for all jobs of a store.

    A second one would find the first one's decisions, and heal itself for 15 minutes first.
    """
    return Ports(store, MemoryLedger(), SystemClock(), parallel=ThreadMap(MAX_POOL_CONNECTIONS))


class Committer:
    """Commits the one job below ``prefix`` when its driver asks for it, while it is entered."""

    def __init__(self, pipeline: Ports, prefix: str, complete: CompleteUnits = one_by_one) -> None:
        self._pipeline = pipeline
        self._complete = complete
        self._prefix = prefix
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="bench-committer")

    def __enter__(self) -> Self:
        self._earlier = set(self._directories())
        self._thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        # The result is there before the job is tidied up; that is part of no figure.
        if kind is not None:
            self._stop.set()
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            directory = self._await_request()
            if directory is not None:
                # The first execution of a job has this name, and asks less than a later one.
                name = directory.ref
                run_execution(self._pipeline, directory, execution=name, complete=self._complete)
        except BaseException as error:
            traceback.print_exc()  # the driver keeps waiting for a result
            self._error = error

    def _await_request(self) -> JobDirectory | None:
        store, directory = self._pipeline.store, None
        while not self._stop.wait(LOOK_SECONDS):
            if directory is None:
                directory = next(iter(set(self._directories()) - self._earlier), None)
                if directory is not None:  # as by the event of its _job.json
                    note_job(self._pipeline, BUCKET, directory.job)
            elif store.head(BUCKET, directory.request) is not None:
                return directory
        return None

    def _directories(self) -> Iterator[JobDirectory | None]:
        for found in self._pipeline.store.list(BUCKET, f"{self._prefix}__magic_job-"):
            yield parse_directory(BUCKET, found.key)
