"""``s3commit://`` for libraries that take a URL: an fsspec filesystem whose transactions are jobs.

fsspec finds it by itself where this package is installed (`pip install '.[fsspec]'`); from a zip on
the path, call `register` once.
"""

from __future__ import annotations

try:
    import fsspec
except ImportError as error:
    raise ImportError(
        "s3commit:// needs fsspec: install it, or this package with its extra (pip install"
        " '.[fsspec]' in a checkout), or write through s3commit.open_job, which needs nothing"
    ) from error

from s3commit.filesystem.files import S3CommitFileSystem
from s3commit.filesystem.transaction import JobTransaction

__all__ = ["JobTransaction", "S3CommitFileSystem", "register"]


def register() -> None:
    """Make ``s3commit://`` known to fsspec, where no installed package's metadata does."""
    fsspec.register_implementation("s3commit", S3CommitFileSystem, clobber=True)
