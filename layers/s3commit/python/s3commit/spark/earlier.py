"""Finds the jobs of a program's earlier runs by its idempotency key.

A program that died after its request does not know the outcome. When it runs again, it looks here
for the job that has the key, and for those that were asked to commit and have not ended yet.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from s3commit.aws.s3 import S3ObjectStore
from s3commit.core.formats.documents import MAX_JOB_BYTES, decode_job
from s3commit.core.formats.layout import MAGIC_PREFIX, JobDirectory, parse_directory
from s3commit.core.formats.published import CommittedFile
from s3commit.core.job.documents import read_commit_manifest, read_result
from s3commit.core.job.idempotency_key import key_holder
from s3commit.core.model.amounts import many
from s3commit.core.model.errors import (
    InvalidInputError,
    JobFailedError,
    JobRefusedError,
    NotFoundError,
)
from s3commit.core.model.job import Destination, Outcome
from s3commit.core.model.locks import key_digest
from s3commit.core.ports.objects import ObjectReader
from s3commit.spark.job import say
from s3commit.spark.options import Options
from s3commit.writer.connect import shared_client
from s3commit.writer.environment import SystemEnvironment
from s3commit.writer.job import KEY_DIGITS
from s3commit.writer.requests import Patience, wait_for_result

# Of a job with more files, this many are looked at, evenly spread.
LOOKED_AT: Final = 1_000
_THREADS: Final = 16


@dataclass(frozen=True, slots=True)
class Earlier:
    """The job that has committed the key's data, and how many of its files are ``gone`` since.

    ``looked`` is how many were looked at: not all of many.
    """

    directory: JobDirectory
    files: int = 0
    looked: int = 0
    gone: int = 0

    @property
    def warning(self) -> str:
        """What the user of the key has to know if files are gone; else empty."""
        if not self.gone:
            return ""
        which = (
            "its" if self.looked == self.files else f"the {self.looked} that were looked at of its"
        )
        return (
            f"; but {self.gone} of {which} {many(self.files, 'file')} are no longer there: another"
            " write replaced them, or they were deleted. To write the data again, give another"
            " idempotencyKey"
        )


def earlier_job(options: Options) -> Earlier | None:
    """The job that has committed the data of ``options.idempotency_key``, if one has.

    Waits for a job of this key whose outcome is not known yet. Raises `OutcomeUnknownError` after
    ``options.commit_timeout``: then nothing was written.
    """
    if options.idempotency_key is None:
        return None
    found = committed_before(options)
    if found is None:
        awaited = _awaited(options, options.idempotency_key)
        found = committed_before(options) or awaited  # asked again: one may have ended meanwhile
    return None if found is None else _with_files(found)


def _awaited(options: Options, key: str) -> JobDirectory | None:
    """Wait until no job of the key is unanswered, or one is committed: that one."""
    store = S3ObjectStore(shared_client())
    patience = Patience(SystemEnvironment(), options.commit_timeout)
    for directory in unanswered(store, options.destination, key):
        say(
            f"job {directory.job_id} of the same idempotencyKey was asked to commit and has not"
            f" ended: waiting for its outcome; see: s3commit show {directory.uri}"
        )
        try:
            result = wait_for_result(store, directory, patience)
        except JobFailedError as error:
            say(f"{error.message}; the data is written again")
            continue
        return None if result.already_committed else directory
    return None


def committed_before(options: Options) -> JobDirectory | None:
    """The job that has committed the data of ``options.idempotency_key``, if one surely has.

    It has if its result says so, or if it is listed and its own objects are gone. Of a job that is
    still removing what it replaces nothing is said: that is the pipeline's to decide.
    """
    key = options.idempotency_key
    if key is None:
        return None
    store = S3ObjectStore(shared_client())
    destination = options.destination
    try:
        holder, _ = key_holder(store, JobDirectory(destination, ""), key)
    except JobRefusedError:  # not readable, which the pipeline says better
        return None
    directory = JobDirectory(destination, holder)
    if not holder or store.head(destination.bucket, directory.commits) is None:
        return None
    try:
        committed = read_result(store, directory).outcome is Outcome.COMMITTED
    except NotFoundError:
        return None if store.head(destination.bucket, directory.job) else directory
    return directory if committed else None


def _with_files(directory: JobDirectory) -> Earlier:
    store = S3ObjectStore(shared_client())
    try:
        _, files = read_commit_manifest(store, directory)
    except (NotFoundError, InvalidInputError):  # s3commit fsck says what is wrong with it
        return Earlier(directory)
    some = files[:: -(-len(files) // LOOKED_AT) or 1]

    def is_there(file: CommittedFile) -> bool:
        facts = store.head(directory.bucket, file.key)
        return facts is not None and facts.length == file.length

    with ThreadPoolExecutor(_THREADS) as pool:
        gone = list(pool.map(is_there, some)).count(False)
    return Earlier(directory, len(files), len(some), gone)


def unanswered(store: ObjectReader, destination: Destination, key: str) -> Iterator[JobDirectory]:
    """Jobs of the key that have their request and no result yet; in the order of their ids.

    A listing for each job of the key whose documents are still there, and three requests.
    """
    prefix = f"{destination.prefix}{MAGIC_PREFIX}{key_digest(key)[:KEY_DIGITS]}"
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
