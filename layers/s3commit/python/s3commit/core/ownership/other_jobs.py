"""A job above wins: of directories inside each other with one id, the outer one is the job (I12).

Whoever may write below a directory alone can't have made that one.
"""

from __future__ import annotations

from functools import partial

from s3commit.core.formats.layout import (
    JobDirectory,
    directories_above,
)
from s3commit.core.model.job import Destination
from s3commit.core.ports.bundle import ParallelMap
from s3commit.core.ports.objects import ObjectReader


def is_there(store: ObjectReader, directory: JobDirectory) -> bool:
    """Whether the job has a directory or a commit manifest here."""
    return any(_has_objects(store, directory.bucket, prefix) for prefix in _traces(directory))


def is_further_up(
    store: ObjectReader, directory: JobDirectory, parallel: ParallelMap = map
) -> bool:
    """Whether a directory above has a job of the same id: then this one is not the job (I12).

    Two listings for each directory above.
    """
    above = directories_above(directory.destination.prefix)
    jobs = (JobDirectory(Destination(directory.bucket, one), directory.job_id) for one in above)
    prefixes = (prefix for job in jobs for prefix in _traces(job))
    return any(parallel(partial(_has_objects, store, directory.bucket), prefixes))


def _has_objects(store: ObjectReader, bucket: str, prefix: str) -> bool:
    """Whether there is any, by a listing: a HEAD takes more rights."""
    return next(iter(store.list(bucket, prefix)), None) is not None


def _traces(directory: JobDirectory) -> tuple[str, str]:
    return directory.prefix, directory.commits
