"""s3commit: all of a job's files appear in S3, or none do.

The package is the content of the Lambda layer, of the wheel, and of the zip for ``--py-files``.
Importing it costs nothing; the subpackages import what they need.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from s3commit.version import __version__

if TYPE_CHECKING:
    from s3commit.arrow.table import ArrowStream, write_table
    from s3commit.aws.clients import Encryption
    from s3commit.core.documents.pendingset import PendingFile
    from s3commit.core.documents.request_json import CountedAttempt
    from s3commit.core.formats.layout import JobDirectory
    from s3commit.core.model.errors import (
        AccessError,
        InvalidInputError,
        JobFailedError,
        JobRefusedError,
        NotFoundError,
        OutcomeUnknownError,
        PreconditionError,
        S3CommitError,
        TransientError,
    )
    from s3commit.writer.commit_result import CommitResult, WrongPythonError
    from s3commit.writer.job import Job
    from s3commit.writer.options import Compression, Mode, OverwriteMode
    from s3commit.writer.requests import AbortAnswer
    from s3commit.writer.start import open_job
    from s3commit.writer.stream import PendingUpload
    from s3commit.writer.target import StreamClosedError
    from s3commit.writer.task import Task
    from s3commit.writer.transfer import PartSizes, UploadSettings
    from s3commit.writer.undo import undo, undo_back_to

__all__ = ["__version__", "open_job", "undo", "undo_back_to", "write_table"]
__all__ += ["Job", "JobDirectory", "PendingUpload", "Task"]
__all__ += ["AbortAnswer", "CommitResult", "CountedAttempt", "PendingFile"]
__all__ += ["ArrowStream", "Compression", "Encryption", "Mode", "OverwriteMode"]
__all__ += ["PartSizes", "UploadSettings"]
__all__ += ["AccessError", "InvalidInputError", "JobFailedError", "JobRefusedError"]
__all__ += ["NotFoundError", "OutcomeUnknownError", "PreconditionError", "S3CommitError"]
__all__ += ["StreamClosedError", "TransientError", "WrongPythonError"]

_HOMES = {
    "arrow.table": ("ArrowStream", "write_table"),
    "aws.clients": ("Encryption",),
    "core.formats.layout": ("JobDirectory",),
    "core.documents.request_json": ("CountedAttempt",),
    "core.documents.pendingset": ("PendingFile",),
    "writer.commit_result": ("CommitResult", "WrongPythonError"),
    "writer.job": ("Job",),
    "writer.options": ("Compression", "Mode", "OverwriteMode"),
    "writer.requests": ("AbortAnswer",),
    "writer.start": ("open_job",),
    "writer.stream": ("PendingUpload",),
    "writer.target": ("StreamClosedError",),
    "writer.task": ("Task",),
    "writer.transfer": ("PartSizes", "UploadSettings"),
    "writer.undo": ("undo", "undo_back_to"),
}  # all others are errors

if not TYPE_CHECKING:  # a type checker would believe every name

    def __getattr__(name: str) -> Any:
        # Lazy, because the Lambda handlers and the stacks import this package on every cold start
        # and synth, and need neither boto3 nor the writer for it.
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        homes = (home for home, names in _HOMES.items() if name in names)
        home = next(homes, "core.model.errors")
        return getattr(import_module(f"{__name__}.{home}"), name)

    def __dir__() -> list[str]:
        return sorted({"spark", *__all__} & {*globals()} | {*__all__})
