"""The list of partitions that a job writes, for the policies that ask for it."""

from __future__ import annotations

from collections.abc import Iterable

from s3commit.core.documents import VERSION
from s3commit.core.errors import InvalidInputError, JobRefusedError, NotFoundError
from s3commit.core.jsontext import Fields, dump, parse
from s3commit.core.layout import JobDirectory
from s3commit.core.manifest import digest
from s3commit.core.model import JobRecord
from s3commit.core.protocol.pipeline import Pipeline

MAX_PARTITIONS = 1_000_000
ROOT = "./"  # how the list names the root, since no name is empty there
MAX_BYTES = 256 * 1024 * 1024


def write_partitions(pipeline: Pipeline, place: JobDirectory, partitions: Iterable[str]) -> str:
    """Put the list, under a name that is its digest; return the digest.

    A partition is a directory relative to the destination, with its ``/``; the root is empty.
    """
    names = sorted({name or ROOT for name in partitions})
    body = dump({"version": VERSION, "partitions": names})
    sha256 = digest(body)
    pipeline.store.put(place.bucket, place.partitions(sha256), body)
    return sha256


def read_partitions(pipeline: Pipeline, place: JobDirectory, record: JobRecord) -> tuple[str, ...]:
    """The list that the plan in the ledger names.

    Raises `JobRefusedError` (``PLAN_CHANGED``) if it is not there or is another one.
    """
    sha256 = record.plan.partitions if record.plan else ""
    try:
        stored = pipeline.store.get(place.bucket, place.partitions(sha256), max_bytes=MAX_BYTES)
        if digest(stored.body) == sha256:
            fields = Fields(parse(stored.body, what="partitions", max_bytes=MAX_BYTES), "$")
            names = fields.texts("partitions", most=MAX_PARTITIONS)
            return tuple("" if name == ROOT else name for name in names)
    except (NotFoundError, InvalidInputError):
        pass
    raise JobRefusedError("the list of the job's partitions has changed", code="PLAN_CHANGED")
