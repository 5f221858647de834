"""The uploads of a job: the id in a file's name says whose it is (I4, I5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from s3commit.core.formats.file_names import belongs_to_job
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.ownership.open_uploads import is_older
from s3commit.core.ownership.other_jobs import is_further_up
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.objects import OpenUpload


def uploads_of_job(
    ports: Ports, directory: JobDirectory, opened_at: str, uploads: Iterable[OpenUpload]
) -> Iterator[OpenUpload]:
    """The job's of these uploads at its destination, and none that `is_older` (I12).

    ``opened_at`` is when S3 got the ``job.json``. Without one a name proves nothing: anyone may
    choose it. Nor does it where a directory above has a job of the same id.
    """
    if not opened_at:
        return
    of_outer: bool | None = None
    for upload in uploads:
        if not belongs_to_job(upload.key, directory.job_id) or is_older(upload, opened_at):
            continue
        if of_outer is None:
            of_outer = is_further_up(ports.store, directory)
        if of_outer:
            return
        yield upload
