"""An S3 server with the protocol behind it, in this process: what a Spark job needs, and no more.

The steps are the real ones, over a ledger in memory; the events come through a queue.
"""

import contextlib
import json
import threading
import uuid
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus

from s3commit.aws.clock import SystemClock
from s3commit.aws.s3 import S3ObjectStore
from s3commit.core.commit.note_arrivals import note_manifest
from s3commit.core.documents.commit_manifest import CommittedFile, read_commit_manifest
from s3commit.core.formats.layout import JobDirectory, parse_destination, parse_directory
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.record import JobRecord
from s3commit.core.ports.bundle import Ports
from s3commit.local.serving import Endpoint
from tests.fakes.execution import run_execution
from tests.fakes.executions import MemoryExecutions
from tests.fakes.ledger import MemoryLedger
from tests.lake import REQUEST, notify
from tests.servers import patch_moto, until

BUCKET = "tests-spark"


class TinyPipeline:
    """The server, the bucket with its notifications, and one thread that runs the protocol."""

    def __init__(self) -> None:
        self._patches = patch_moto("s3_")  # by moto's own word every upload is of 2010
        self._server = Endpoint()
        # Spark's workers inherit what the JVM is started with; this process must have it as well.
        self.environment = {
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self._server.url,
        }
        self.ledger = MemoryLedger()
        self.failures: list[BaseException] = []
        self._ended: dict[str, threading.Event] = {}
        self._stop = threading.Event()
        self._awake = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="tiny-pipeline")

    def start(self) -> None:
        """Make bucket and queue, and begin; the environment must name the endpoint."""
        import boto3

        self.s3: Any = boto3.client("s3")
        self._sqs: Any = boto3.client("sqs")
        self.store = S3ObjectStore(self.s3)
        self.ports = Ports(self.store, self.ledger, SystemClock())
        self._queue = self._sqs.create_queue(QueueName="events")["QueueUrl"]
        self.add_bucket(BUCKET)
        self._thread.start()

    def add_bucket(self, name: str, *, notifies: bool = True) -> None:
        """A bucket with the pipeline's notifications, or without."""
        self.s3.create_bucket(Bucket=name)
        if notifies:
            arn = self._sqs.get_queue_attributes(QueueUrl=self._queue, AttributeNames=["QueueArn"])[
                "Attributes"
            ]["QueueArn"]
            notify(self.s3, name, arn, ".pendingset", REQUEST)

    def held(self) -> contextlib.AbstractContextManager[object]:
        """Meanwhile nothing is done about the events; they wait."""
        return self._awake

    def stop(self) -> None:
        """End the thread and the server."""
        self._stop.set()
        self._thread.join()
        self._server.close()
        self._patches.undo()

    def wait_until_tidy(self, job_id: str) -> JobRecord:
        """Wait until the job's execution is over, and give the ledger's record."""
        assert self._event(job_id).wait(30), f"job {job_id} has not ended"
        assert not self.failures, self.failures
        (record,) = self.ledger.jobs_with_id(job_id)
        return record

    def _event(self, job_id: str) -> threading.Event:
        return self._ended.setdefault(job_id, threading.Event())

    def _run(self) -> None:
        while not self._stop.is_set():
            answer = self._sqs.receive_message(
                QueueUrl=self._queue, WaitTimeSeconds=1, MaxNumberOfMessages=10
            )
            for message in answer.get("Messages", []):
                self._sqs.delete_message(
                    QueueUrl=self._queue, ReceiptHandle=message["ReceiptHandle"]
                )
                for event in json.loads(message["Body"]).get("Records", []):
                    try:
                        with self._awake:
                            self.handle(event["s3"]["bucket"]["name"], event["s3"]["object"]["key"])
                    except Exception as error:
                        self.failures.append(error)

    def handle(self, bucket: str, quoted: str) -> None:
        """Do what an event about the object brings about."""
        key = unquote_plus(quoted)
        if key.endswith(REQUEST):
            place = parse_directory(bucket, key)
            run_execution(self.ports, place)
            self._event(place.job_id).set()
        else:
            # A manifest that is not acceptable is refused again by the request that counts it.
            with contextlib.suppress(InvalidInputError):
                executions = MemoryExecutions(
                    lambda place, name: run_execution(self.ports, place, execution=name)
                )
                note_manifest(self.ports, executions, bucket, key)


class Place:
    """One test's destination, seen from outside."""

    def __init__(self, tiny: TinyPipeline) -> None:
        self.tiny = tiny
        self.uri = f"s3://{BUCKET}/{uuid.uuid4().hex[:12]}/table"
        self.destination = parse_destination(self.uri)

    @property
    def names(self) -> list[str]:
        """Every object, below the destination."""
        prefix = self.destination.prefix
        return [one.key[len(prefix) :] for one in self.tiny.store.list(BUCKET, prefix)]

    @property
    def data(self) -> list[str]:
        """The visible data files, below the destination."""
        return [name for name in self.names if not name.startswith("_")]

    @property
    def uploads(self) -> list[str]:
        """The keys of the uploads that are open."""
        uploads = self.tiny.store.list_uploads(BUCKET, self.destination.prefix)
        return [upload.key for upload in uploads]

    @property
    def jobs(self) -> list[str]:
        """The ids of the jobs that were opened, in no order."""
        suffix = "/_job.json"
        return [
            name[len("__magic_job-") : -len(suffix)] for name in self.names if name.endswith(suffix)
        ]

    def tidy(self) -> JobRecord:
        """Wait for the only job to end, and give its record."""
        (job_id,) = self.jobs
        return self.tiny.wait_until_tidy(job_id)

    def await_no_uploads(self) -> None:
        """Wait until none is open: a manifest that came late is handled after its job's end."""
        until(lambda: not self.uploads, "that no upload is open")

    def settle(self) -> None:
        """Wait for every job that was asked for to end."""
        for name in self.names:
            if name.endswith(REQUEST):
                self.tiny.wait_until_tidy(name.split("/")[0].removeprefix("__magic_job-"))

    def committed(self) -> list[CommittedFile]:
        """The files that the only job's commit manifest lists."""
        (job_id,) = self.jobs
        directory = JobDirectory(self.destination, job_id)
        return read_commit_manifest(self.tiny.store, directory)[1]

    def put(self, name: str, body: bytes) -> None:
        """Put an object that no job made."""
        self.tiny.store.put(BUCKET, self.destination.prefix + name, body)

    def download(self, target: Path) -> str:
        """Copy the data files to a local directory, for Spark's own reader."""
        for name in self.data:
            path = target / name
            path.parent.mkdir(parents=True, exist_ok=True)
            key = self.destination.prefix + name
            path.write_bytes(self.tiny.store.get(BUCKET, key, max_bytes=1 << 28).body)
        return str(target)
