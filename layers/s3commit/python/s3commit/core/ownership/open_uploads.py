"""Which uploads are older than a job, and so another program's (I12)."""

from __future__ import annotations

from s3commit.core.ports.objects import OpenUpload


def is_older(upload: OpenUpload, opened_at: str) -> bool:
    """Whether the upload was begun before the job's ``job.json``: it is another program's (I12).

    Whatever its name says, or a manifest: anyone who sees an open upload can open a job with the id
    in its name. ``opened_at`` is when S3 got that document.
    """
    return upload.initiated < opened_at
