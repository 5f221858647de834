"""What S3A's magic committer has left behind: said with its age and bytes, and never touched.

That its driver is dead can't be read in S3; a person has to know. From Hadoop 3.4 on a job has a
directory of its own, before that all jobs of a destination share ``__magic/``.
"""

from __future__ import annotations

from itertools import groupby, islice
from typing import Final

from s3commit.core.formats.hadoop import JOB_PREFIX, MAGIC
from s3commit.core.formats.layout import JobDirectory, check_job_id
from s3commit.core.job.contents import S3aContents
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.job import Destination
from s3commit.core.ownership.named_uploads import files_named_at
from s3commit.core.ports.objects import listed_at
from s3commit.core.sweep.report import priced
from s3commit.core.sweep.sweep import Sweep, seconds_between, spelled

SHARED_LISTED: Final = 100_000  # objects of the directory that all jobs of a destination share


def report_left(sweep: Sweep, directory: JobDirectory, left: S3aContents, root: str = "") -> None:
    """Say what a job has left behind, unless something has come within ``abandonedHours``.

    ``root`` is the key prefix where it lies, if that is not the job's own directory.
    """
    if not left.objects or left.newest >= sweep.ago(sweep.limits.abandoned):
        return
    pending = {
        (file.key, file.upload_id): file.length
        for key in left.manifests
        for file in files_named_at(sweep.ports.store, directory, key)
    }
    count = sum(pending.values())
    more = "" if left.is_all else "at least "
    sweep.report.s3a += 1
    sweep.report.s3a_bytes += count
    age = spelled(seconds_between(left.newest, sweep.now))
    sweep.report.note(
        f"{f's3://{directory.bucket}/{root}' if root else directory.uri}: left behind by S3A {age}"
        f" ago with {more}{priced(count)} pending; see s3commit rescue"
    )


def report_shared(sweep: Sweep, destination: Destination) -> None:
    """Say what lies in the old ``__magic/`` of a destination, job by job.

    A job that was rescued has a directory of its own, with its request, which speaks for it.
    """
    prefix = f"{destination.prefix}{MAGIC}/"
    objects = islice(sweep.ports.store.list(destination.bucket, prefix), SHARED_LISTED)
    for name, group in groupby(objects, lambda listed: listed.key[len(prefix) :].split("/")[0]):
        left = S3aContents()
        for listed in group:
            if "/" in listed.key[len(prefix) :]:
                left.add(listed)
        job_id = name.removeprefix(JOB_PREFIX)
        directory = JobDirectory(destination, job_id)
        root = f"{prefix}{name}/"
        sweep.took()
        with sweep.each(f"directory s3://{destination.bucket}/{root}", root):
            if not _is_rescued(sweep, directory):
                report_left(sweep, directory, left, root)


def _is_rescued(sweep: Sweep, directory: JobDirectory) -> bool:
    try:
        check_job_id(directory.job_id)
    except InvalidInputError:
        return False  # MapReduce's: no job of that id can have been asked for here
    return listed_at(sweep.ports.store, directory.bucket, directory.request) is not None
