"""A bucket on a moto server with a pipeline stand-in: for tests of whole programs.

The program makes its own client, by the environment, as a user's would. While it waits for a
result the stand-in runs the real steps of the state machine over the bucket and a ledger in memory.
"""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from s3commit.aws.clients import make_client
from s3commit.aws.s3 import S3ObjectStore
from s3commit.core.formats.layout import RESULT_FILE, parse_directory
from s3commit.core.ports.bundle import Ports
from s3commit.writer import start
from s3commit.writer.access import Access
from s3commit.writer.system import Environment
from tests.contract.given import make_bucket
from tests.fakes.execution import run_execution
from tests.fakes.memory import ManualClock, MemoryLedger, MemoryObjectStore

REQUEST = "/_request.json"
QUEUE = "arn:aws:sqs:eu-central-1:123456789012:requests"


@dataclass
class Lake:
    """The bucket, and what is in it."""

    bucket: str
    client: Any = field(default_factory=make_client)
    store: Any = None  # that of the client, unless it is given
    ledger: MemoryLedger = field(default_factory=MemoryLedger)
    clock: ManualClock = field(default_factory=lambda: ManualClock(step=0.001))

    def __post_init__(self) -> None:
        self.store = self.store or S3ObjectStore(self.client)
        self.ports = Ports(self.store, self.ledger, self.clock)

    def run_pipeline(self) -> None:
        """Do what the pipeline does for every job that has a request and no result."""
        keys = [found.key for found in self.store.list(self.bucket, "")]
        for key in keys:
            directory = parse_directory(self.bucket, key) if key.endswith(REQUEST) else None
            if directory is not None and directory.prefix + RESULT_FILE not in keys:
                run_execution(self.ports, directory)

    def visible(self, prefix: str = "") -> list[str]:
        """The keys of all data, without hidden names."""
        keys = [found.key for found in self.store.list(self.bucket, prefix)]
        return [key for key in keys if "/_" not in f"/{key}"]

    def body(self, key: str) -> bytes:
        """A visible object's bytes."""
        body: bytes = self.store.get(self.bucket, key, max_bytes=1 << 30).body
        return body

    def open_uploads(self) -> list[str]:
        """The keys of all uploads that are neither completed nor aborted."""
        return [upload.key for upload in self.store.list_uploads(self.bucket, "")]


@contextmanager
def lake_on(endpoint: str, patch: pytest.MonkeyPatch) -> Iterator[Lake]:
    """A new bucket with a pipeline behind it, which the environment leads to."""
    patch.setenv("AWS_ENDPOINT_URL", endpoint)
    lake = Lake(f"lake-{uuid.uuid4().hex[:12]}")
    make_bucket(lake.client, lake.bucket)
    notify(lake.client, lake.bucket, QUEUE, REQUEST)
    patch.setattr(Environment, "sleep", lambda *_: lake.run_pipeline())
    yield lake


@contextmanager
def lake_in_memory(patch: pytest.MonkeyPatch) -> Iterator[Lake]:
    """The same, where no request is sent: for what is decided above the store."""
    client = SimpleNamespace(get_bucket_notification_configuration=lambda **_: told(QUEUE, REQUEST))
    clock = ManualClock(step=0.001)
    lake = Lake("lake", client, MemoryObjectStore("lake", clock=clock), clock=clock)
    for name, there in {"client": client, "make_client": client, "store": lake.store}.items():
        patch.setattr(Access, name, lambda *_, there=there: there)
    patch.setattr(start, "S3ObjectStore", lambda *_, **__: lake.store)
    patch.setattr(Environment, "sleep", lambda *_: lake.run_pipeline())
    yield lake


def notify(s3: Any, bucket: str, queue: str, *suffixes: str) -> None:
    """Let the bucket tell the queue of objects whose keys end so, as the deployed stacks do."""
    s3.put_bucket_notification_configuration(
        Bucket=bucket, NotificationConfiguration=told(queue, *suffixes)
    )


def told(queue: str, *suffixes: str) -> dict[str, Any]:
    """The configuration for that."""
    rules = [
        {
            "QueueArn": queue,
            "Events": ["s3:ObjectCreated:*"],
            "Filter": {"Key": {"FilterRules": [{"Name": "suffix", "Value": suffix}]}},
        }
        for suffix in suffixes
    ]
    return {"QueueConfigurations": rules}


def ignoring_etags(client: Any, operation: str) -> Any:
    """The client of a store that ignores the etag of this delete, and reports success."""

    def strip(params: dict[str, Any], **_: Any) -> None:
        params.pop("IfMatch", None)
        for named in params.get("Delete", {}).get("Objects", ()):
            named.pop("ETag", None)

    client.meta.events.register(f"before-parameter-build.s3.{operation}", strip)
    return client


IGNORED_ETAGS = ("", "DeleteObjects", "DeleteObject")
