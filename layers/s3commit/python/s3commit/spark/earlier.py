"""Finds the job of a program's earlier run that has committed the data of an idempotency key."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from s3commit.core.formats.documents import CommittedFile
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.job.documents import read_commit_manifest
from s3commit.core.job.idempotency_key import hinted_job
from s3commit.core.model.amounts import many
from s3commit.core.model.errors import InvalidInputError, NotFoundError
from s3commit.core.model.locks import key_digest
from s3commit.spark.options import Options
from s3commit.writer.connect import shared_store

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
    """The job that has committed the data of ``options.idempotency_key``, if one surely has.

    By the pipeline's hint, which spares the program to write the data again. Without one, the
    pipeline itself refuses a second job with the key.
    """
    if options.idempotency_key is None:
        return None
    store, destination = shared_store(None), options.destination
    holder = hinted_job(store, destination, key_digest(options.idempotency_key))
    directory = JobDirectory(destination, holder)
    if not holder or store.head(destination.bucket, directory.commits) is None:
        return None
    return _with_files(directory)


def _with_files(directory: JobDirectory) -> Earlier:
    store = shared_store(None)
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
