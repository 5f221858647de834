"""What the driver's user sees of a job: one line, on standard error."""

from __future__ import annotations

import sys

from s3commit.core.layout import JobDirectory
from s3commit.core.model import JobResult


def say(line: str) -> None:
    """Print; Spark shows what its Python workers write on the driver's standard error."""
    sys.stderr.write(f"s3commit: {line}\n")
    sys.stderr.flush()


def summary(result: JobResult, rows: int, directory: JobDirectory, what: str = "") -> str:
    """The line about a job that ended well; ``what`` names a part of a greater whole."""
    if result.already_committed and result.error is not None:
        return what + result.error.message
    written = f"{_files(result.files)}, {_size(result.bytes)}, {rows:,} rows"
    done = f"committed {written}"
    if result.replaced:
        done = f"replaced {_files(result.replaced)} with {written}"
    return f"{what}{done}; see: s3commit show {directory.uri}"


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count:,} files"


def _size(size: float) -> str:
    for unit in ("bytes", "KB", "MB", "GB"):
        if size < 1024:
            return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:,.1f} {unit}"
        size /= 1024
    return f"{size:,.1f} TB"
