"""Register a commit's new partitions in the Glue Data Catalog: a Lambda function.

The rule's pattern is ``{"source": ["s3commit"], "detail": {"outcome": ["COMMITTED"]}}``. The
environment has the DATABASE; the Glue table is named like the last element of the destination, and
has the destination as its location: commits to another place of that name are left alone.

Rights: ``s3:GetObject`` on ``<table>/_commits/*``, ``glue:GetTable`` and
``glue:BatchCreatePartition`` on the tables.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from itertools import islice
from typing import Any
from urllib.parse import unquote

import boto3

AT_ONCE = 100  # https://docs.aws.amazon.com/glue/latest/webapi/API_BatchCreatePartition.html


def handler(event: dict[str, Any], _context: object) -> int:
    """Return how many partitions were new. A repeated event registers nothing again."""
    detail = event["detail"]
    prefix = detail["table"].removeprefix(f"s3://{detail['bucket']}/")
    table = prefix.rstrip("/").rpartition("/")[2]
    names = {"DatabaseName": os.environ["DATABASE"], "TableName": table}
    glue = boto3.client("glue")
    storage = glue.get_table(DatabaseName=names["DatabaseName"], Name=table)["Table"][
        "StorageDescriptor"
    ]
    if _path(storage["Location"]) != _path(detail["table"]):
        return 0
    new = 0
    partitions = iter(sorted(_partitions(detail, prefix)))
    while some := list(islice(partitions, AT_ONCE)):
        answer = glue.batch_create_partition(
            **names, PartitionInputList=[_partition(detail, one, storage) for one in some]
        )
        kinds = [error["ErrorDetail"]["ErrorCode"] for error in answer.get("Errors", [])]
        if set(kinds) - {"AlreadyExistsException"}:
            raise RuntimeError(f"not all partitions of {table} were registered: {answer['Errors']}")
        new += len(some) - len(kinds)
    return new


def _path(uri: str) -> str:
    """Bucket and prefix: a catalog may say ``s3a://``, and leave the last slash out."""
    return uri.partition("://")[2].rstrip("/")


def _partitions(detail: dict[str, Any], prefix: str) -> set[str]:
    """The directories of the commit's files, relative to the table; without the table itself."""
    key = f"{prefix}_commits/_{detail['jobId']}.jsonl"
    body = boto3.client("s3").get_object(Bucket=detail["bucket"], Key=key)["Body"]
    return {path for path in _directories(body.iter_lines(), prefix) if "=" in path}


def _directories(lines: Iterator[bytes], prefix: str) -> Iterator[str]:
    next(lines)  # the header
    for line in lines:
        yield json.loads(line)["key"].removeprefix(prefix).rpartition("/")[0]


def _partition(detail: dict[str, Any], path: str, storage: dict[str, Any]) -> dict[str, Any]:
    values = [unquote(element.partition("=")[2]) for element in path.split("/")]
    return {
        "Values": values,
        "StorageDescriptor": {**storage, "Location": f"{detail['table']}{path}/"},
    }
