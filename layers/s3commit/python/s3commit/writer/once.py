"""Jobs of one idempotency key, found by their ids.

A job with a key has 8 digits of the key's digest at the beginning of its id. So a program that is
run again finds the jobs of its key with one listing, however many others there are. Such an id is
as unique as before, since jobs of one key are few; nothing of the protocol rests on the digits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from s3commit.core.formats.documents import MAX_JOB_BYTES, decode_job
from s3commit.core.formats.layout import MAGIC_PREFIX, JobDirectory, parse_directory
from s3commit.core.model.errors import InvalidInputError, NotFoundError
from s3commit.core.model.job import Destination
from s3commit.core.model.locks import key_digest
from s3commit.core.ports.objects import ObjectReader
from s3commit.writer.environment import Environment

_DIGITS: Final = 8  # those before the first hyphen of a UUID


def new_job_id(environment: Environment, key: str | None) -> str:
    """A new id for a job with that key, or without one."""
    found = environment.new_id()
    return found if key is None else key_digest(key)[:_DIGITS] + found[_DIGITS:]


def unanswered(store: ObjectReader, destination: Destination, key: str) -> Iterator[JobDirectory]:
    """Jobs of the key that have their request and no result yet; in the order of their ids.

    A listing for each job of the key whose documents are still there, and three requests.
    """
    prefix = f"{destination.prefix}{MAGIC_PREFIX}{key_digest(key)[:_DIGITS]}"
    after = ""
    while (one := next(store.list(destination.bucket, prefix, after=after), None)) is not None:
        name = one.key[len(destination.prefix) :].split("/")[0]
        after = f"{destination.prefix}{name}/\x7f"
        try:
            directory = parse_directory(destination.bucket, one.key)
        except InvalidInputError:
            continue
        if _waits(store, directory, key):
            yield directory


def _waits(store: ObjectReader, directory: JobDirectory, key: str) -> bool:
    if store.head(directory.bucket, directory.request) is None:
        return False
    if store.head(directory.bucket, directory.result) is not None:
        return False
    try:
        body = store.get(directory.bucket, directory.job, max_bytes=MAX_JOB_BYTES).body
        return decode_job(body, directory).idempotency_key == key
    except (InvalidInputError, NotFoundError):
        return False
