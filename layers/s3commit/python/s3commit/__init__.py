"""s3commit: all of a job's files appear in S3, or none do.

The package is at once the content of the Lambda layer, the wheel, and the zip for ``--py-files``.
Importing it costs nothing; the subpackages import what they need.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from s3commit.version import __version__

if TYPE_CHECKING:
    from s3commit.aws.session import Encryption
    from s3commit.core.model.errors import JobFailedError, OutcomeUnknownError, S3CommitError
    from s3commit.writer.job import Job
    from s3commit.writer.start import open_job
    from s3commit.writer.task import Task
    from s3commit.writer.transfer import PartSizes, UploadSettings
    from s3commit.writer.undo import undo

__all__ = [
    "Encryption",
    "Job",
    "JobFailedError",
    "OutcomeUnknownError",
    "PartSizes",
    "S3CommitError",
    "Task",
    "UploadSettings",
    "__version__",
    "open_job",
    "undo",
]

_HOMES = {
    "Encryption": "s3commit.aws.session",
    "Job": "s3commit.writer.job",
    "JobFailedError": "s3commit.core.model.errors",
    "OutcomeUnknownError": "s3commit.core.model.errors",
    "PartSizes": "s3commit.writer.transfer",
    "S3CommitError": "s3commit.core.model.errors",
    "Task": "s3commit.writer.task",
    "UploadSettings": "s3commit.writer.transfer",
    "open_job": "s3commit.writer.start",
    "undo": "s3commit.writer.undo",
}


def __getattr__(name: str) -> Any:
    # Lazy, because the Lambda handlers and the stacks import this package on every cold start
    # and synth, and need neither boto3 nor the writer for it.
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
