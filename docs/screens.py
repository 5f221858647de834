"""Writes docs/guide/screens.md from jobs on the embedded runtime: `make screens`.

Each line of `PAGE` that begins with ``$`` is run, and what the command prints stands below it.
"""

import getpass
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import s3commit
from s3commit.core.documents.job_json import Who
from s3commit.core.documents.request_json import CountedAttempt
from s3commit.core.model.errors import JobFailedError
from s3commit.local.runtime import LocalRuntime
from s3commit.local.synth import synthesize
from s3commit.writer.options import make_options
from s3commit.writer.start import start_job

ROOT: Final = Path(__file__).parents[1]
WIDTH: Final = 160  # characters of a line
WHO: Final = Who(application="orders.py", user="etl", host="worker-7")
ENDED: Final = [("orders", "2026-11-23", 1), ("returns", None, 1), ("orders", "2026-11-24", 1000)]
PAGE: Final = """\
# Screens

For who has not used s3commit yet: a few jobs of a Python program in `status`, `log` and `show`.
`make screens` runs the commands on the embedded runtime and writes this page; long lines
are cut (`…`). Each command has `--help`, and `--output json` for programs. `s3commit ui` shows
the same [in a browser](ui.md).

## Jobs

```
$ s3commit status --all
```

## Job history of a table

```
$ s3commit log s3://BUCKET/orders/
```

## A job that was not committed

```
$ s3commit show REFUSED
```
"""


@contextmanager
def jobs(bucket: str) -> Iterator[dict[str, str]]:
    """Jobs that have ended, and one that is under way; what stands for the names in `PAGE`."""
    names = {"BUCKET": bucket}
    for table, key, least in ENDED:
        place = f"s3://{bucket}/{table}/"
        job = start_job(make_options(place, idempotency_key=key, min_rows=least), who=WHO)
        counted = [_task(job, number) for number in range(2)]
        with suppress(JobFailedError):
            job.commit([one for one in counted if one])
        names["REFUSED"] = job.job_id  # the last one
    with start_job(make_options(f"s3://{bucket}/orders/"), who=WHO) as job:
        _task(job, 0)
        yield names


def _task(job: s3commit.Job, number: int) -> CountedAttempt | None:
    name = f"dt=2026-11-2{number}/part-{number}.csv"
    with job.task(str(number)) as task, task.open(name, rows=2) as file:
        file.write(b"n,price\n1,9.5\n2,3.0\n")
    return task.counted


def fill(names: dict[str, str]) -> str:
    """`PAGE` with what its commands print."""
    page = re.sub("|".join(names), lambda name: names[name[0]], PAGE)
    return re.sub(r"(?<=^\$ )s3commit (.+)$", lambda one: _screen(one[1]), page, flags=re.M)


def _screen(arguments: str) -> str:
    command = [sys.executable, "-m", "s3commit", *arguments.split()]
    printed = subprocess.run(  # noqa: S603 - our own
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True
    ).stdout
    here = f"{getpass.getuser()}@{socket.gethostname()}"
    lines = (line.rstrip() for line in printed.replace(here, "ana@laptop").splitlines())
    cut = (line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…" for line in lines)
    return "\n".join([f"s3commit {arguments}", *cut])


def main() -> None:
    """Print the page."""
    runtime = LocalRuntime(synthesize(ROOT, ROOT / ".s3commit" / "assembly"), bucket="lake")
    with runtime:
        os.environ.update(runtime.names())
        with jobs(runtime.bucket) as names:
            sys.stdout.write(fill(names))


if __name__ == "__main__":
    main()
