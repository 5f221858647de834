"""What the driver's user sees of a job: one line, on standard error."""

from __future__ import annotations

import sys

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.amounts import amount, many
from s3commit.core.model.job import JobResult


def say(line: str) -> None:
    """Print; Spark shows what its Python workers write on the driver's standard error."""
    sys.stderr.write(f"s3commit: {line}\n")
    sys.stderr.flush()


def added_nothing(key: str | None, earlier: JobDirectory, warning: str) -> str:
    """The line about a write that did not have to run; ``warning`` goes on where it ends."""
    return (
        f"the data of idempotencyKey {key!r} was committed by job {earlier.job_id}; nothing was"
        f" run, and nothing is added; see: s3commit show {earlier.uri}{warning}"
    )


def summary(result: JobResult, rows: int, directory: JobDirectory) -> str:
    """The line about a job that ended well."""
    if result.already_committed and result.error is not None:
        return result.error.message
    written = amount(result.files, result.bytes, rows)
    done = f"committed {written}"
    if result.replaced:
        done = f"replaced {many(result.replaced, 'file')} with {written}"
    return f"{done}; see: s3commit show {directory.uri}"
