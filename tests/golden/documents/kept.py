"""A bucket and a ledger as a case keeps them: saved from a world, and put into a new one.

The bucket is in memory, so that upload ids, etags and times stay what the documents say they are.
The ledger is the real adapter on a DynamoDB, and its items are kept as DynamoDB has them.
"""

from __future__ import annotations

import uuid
from dataclasses import asdict
from datetime import datetime
from typing import Any

import boto3

from s3commit.aws.ledger import DynamoLedger
from s3commit.core.ports.bundle import Ports
from tests.conftest import REGION
from tests.contract.conftest import create_table
from tests.core.swept import Swept
from tests.core.world import BUCKET
from tests.fakes.bucket import Upload, Version

Json = dict[str, Any]
TABLE = "sales/"


class Kept(Swept):
    """A world whose ledger is on DynamoDB."""

    def __init__(self, endpoint: str, *, versioned: bool) -> None:
        super().__init__(versioned=versioned)
        self.table = f"golden-{uuid.uuid4().hex}"
        create_table(self.table, endpoint)
        self.client: Any = boto3.client("dynamodb", endpoint_url=endpoint, region_name=REGION)
        ledger: Any = DynamoLedger(self.table, region=REGION, host=endpoint, clock=self.clock)
        self.ledger = ledger
        self.ports = Ports(self.plan.wrap(self.store), self.plan.wrap(ledger), self.clock)

    def data(self) -> dict[str, bytes]:
        """The data that a reader sees, by key."""
        return self.visible(TABLE)

    def save(self) -> Json:
        """All that is in the bucket and in the ledger."""
        bucket = self.store.bucket(BUCKET)
        items = self.client.scan(TableName=self.table)["Items"]
        items.sort(key=lambda item: (item["pk"]["S"], item["sk"]["S"]))
        for number, item in enumerate(item for item in items if "token" in item):
            item["token"] = {"S": f"{number:032x}"}  # random, and read by nobody but its writer
        return {
            "clock": self.clock.now(),
            "versioned": bucket.versioned,
            "objects": {
                key: [_version_json(version) for version in versions]
                for key, versions in sorted(bucket.objects.items())
            },
            "uploads": {name: _upload_json(one) for name, one in sorted(bucket.uploads.items())},
            "items": items,
        }

    def load(self, case: Json) -> None:
        """Put what a case has kept into a new world; the clock goes on from there."""
        bucket = self.store.bucket(BUCKET)
        self._pass_over(case)
        for key, versions in case["objects"].items():
            bucket.objects[key] = [_version(one) for one in versions]
        for name, one in case["uploads"].items():
            bucket.uploads[name] = _upload(one)
        for item in case["items"]:
            self.client.put_item(TableName=self.table, Item=item)
        then, now = (datetime.fromisoformat(at) for at in (case["clock"], self.clock.now()))
        self.later((then - now).total_seconds())

    def _pass_over(self, case: Json) -> None:
        """Let the store give no id that the case has: they end with a number that counts."""
        versions = [one["version_id"] for found in case["objects"].values() for one in found]
        last = max(int(one.rpartition("-")[2]) for one in [*versions, *case["uploads"], "0"] if one)
        for _ in range(last):
            given = self.store.create_upload(BUCKET, "any", metadata={}, content_type="")
            self.store.abort_upload(BUCKET, "any", given)


def as_bytes(text: str) -> bytes:
    """The very bytes of a body."""
    return text.encode("utf-8", "surrogateescape")


def _as_text(body: bytes) -> str:
    return body.decode("utf-8", "surrogateescape")


def _version_json(version: Version) -> Json:
    body = None if version.body is None else _as_text(version.body)
    return {**asdict(version), "body": body}


def _version(kept: Json) -> Version:
    return Version(**{**kept, "body": None if kept["body"] is None else as_bytes(kept["body"])})


def _upload_json(upload: Upload) -> Json:
    return {**asdict(upload), "parts": [_as_text(part) for _, part in sorted(upload.parts.items())]}


def _upload(kept: Json) -> Upload:
    parts = dict(enumerate(map(as_bytes, kept["parts"]), start=1))
    return Upload(**{**kept, "parts": parts})
