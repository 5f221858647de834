"""The jobs that the documentation shows: the log in docs/guide/undo.md, and the page's pictures."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import s3commit
from s3commit.core.documents.job_json import Who
from s3commit.core.documents.request_json import CountedAttempt
from s3commit.core.model.errors import JobFailedError
from s3commit.writer.options import make_options
from s3commit.writer.start import start_job

ROOT: Final = Path(__file__).parents[1]
WHO: Final = Who(application="orders.py", user="etl", host="worker-7")
ENDED: Final = [("orders", "2026-11-23", 1), ("returns", None, 1), ("orders", "2026-11-24", 1000)]


@contextmanager
def jobs(bucket: str) -> Iterator[str]:
    """Jobs that have ended, and one that is under way; gives a table that has some of them."""
    for table, key, least in ENDED:
        place = f"s3://{bucket}/{table}/"
        job = start_job(make_options(place, idempotency_key=key, min_rows=least), who=WHO)
        counted = [_task(job, number) for number in range(2)]
        with suppress(JobFailedError):
            job.commit([one for one in counted if one])
    with start_job(make_options(f"s3://{bucket}/orders/"), who=WHO) as job:
        _task(job, 0)
        yield f"s3://{bucket}/orders/"


def _task(job: s3commit.Job, number: int) -> CountedAttempt | None:
    name = f"dt=2026-11-2{number}/part-{number}.csv"
    with job.task(str(number)) as task, task.open(name, rows=2) as file:
        file.write(b"n,price\n1,9.5\n2,3.0\n")
    return task.counted
