"""What the worker processes of the tests run; found by name in a process that starts afresh."""

import os

from s3commit.core.documents.request_json import CountedAttempt
from s3commit.writer.job import Job
from s3commit.writer.task import Task


def write_part_of_job(job: Job, number: int) -> CountedAttempt | None:
    """A task made where it runs; every third one has no files."""
    with job.task(f"{number}") as task:
        for name in range(number % 3):
            with task.open(f"dt={name}/part-{number}.txt", rows=1) as file:
                file.write(f"{number}/{name} by {os.getpid()}".encode())
    return task.counted


def write_task(task: Task, body: bytes) -> CountedAttempt | None:
    """A task that was made by the driver."""
    with task, task.open("a.txt") as file:
        file.write(body)
    return task.counted


def die_in_task(task: Task) -> None:
    """Die without a word, with one file closed and one open."""
    task.open("closed").close()
    task.open("open").write(b"half")
    os._exit(7)
