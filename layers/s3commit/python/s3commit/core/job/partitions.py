"""The list of partitions that a job writes, for the policies that ask for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from s3commit.core.formats.documents import VERSION
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.manifest import digest
from s3commit.core.formats.strict_json import Fields, bounded, dump, parse
from s3commit.core.model.errors import InvalidInputError, JobRefusedError, NotFoundError
from s3commit.core.model.record import JobRecord
from s3commit.core.ports.bundle import Ports

MAX_PARTITIONS = 1_000_000  # as many as a job may have files
ROOT = "./"  # how the list names the root, since no name is empty there
MAX_NAMES = 90 * 1024 * 1024  # characters of all names together, which are held as well
MAX_BYTES = 96 * 1024 * 1024  # decide_job alone reads it

_BOUNDS: Final[Any] = {
    "what": "the list of partitions",
    "max_bytes": MAX_BYTES,
    "most": 4 * MAX_PARTITIONS,  # names may have commas; the digest has proved whose it is
}


def write_partitions(ports: Ports, directory: JobDirectory, partitions: Iterable[str]) -> str:
    """Put the list, under a name that is its digest; return the digest.

    A partition is a directory relative to the destination, with its ``/``; the root is empty.
    Raises `InvalidInputError` (``TOO_LARGE``).
    """
    names = sorted({name or ROOT for name in partitions})
    body = bounded(dump({"version": VERSION, "partitions": names}), **_BOUNDS)
    sha256 = digest(body)
    ports.store.put(directory.bucket, directory.partitions(sha256), body)
    return sha256


def read_partitions(ports: Ports, directory: JobDirectory, record: JobRecord) -> tuple[str, ...]:
    """The list that the plan in the ledger names.

    Raises `JobRefusedError` (``PLAN_CHANGED``) if it is not there or is another one.
    """
    sha256 = record.plan.partitions if record.plan else ""
    try:
        stored = ports.store.get(
            directory.bucket, directory.partitions(sha256), max_bytes=MAX_BYTES
        )
        if digest(stored.body) == sha256:
            fields = Fields(parse(stored.body, **_BOUNDS), "$")
            names = fields.texts("partitions", most=MAX_PARTITIONS)
            return tuple("" if name == ROOT else name for name in names)
    except (NotFoundError, InvalidInputError):
        pass
    raise JobRefusedError("the list of the job's partitions has changed", code="PLAN_CHANGED")
