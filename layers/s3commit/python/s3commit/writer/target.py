"""Where a pending upload goes, and the attempt that writes it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from s3commit.core.documents.pendingset import PendingFile
from s3commit.core.formats.layout import (
    MAX_KEY_BYTES,
    META_ATTEMPT,
    META_JOB,
    META_TASK,
    UNSPEAKABLE,
    JobDirectory,
    is_hidden,
    owner_of,
)
from s3commit.core.formats.skipped_names import is_skipped
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.ports.objects import WriterStore

DEFAULT_CONTENT_TYPE: Final = "application/octet-stream"


class StreamClosedError(OSError, ValueError):
    """A write to a stream that is closed, failed or aborted; it names the path.

    An `OSError` because the write failed, a `ValueError` because that is what `io` raises here.
    """


@dataclass(frozen=True, slots=True)
class Target:
    """Where the bytes go, and the attempt that writes them."""

    directory: JobDirectory
    key: str
    task_id: str
    attempt_id: str
    content_type: str = DEFAULT_CONTENT_TYPE

    @property
    def bucket(self) -> str:
        """The bucket of job and file."""
        return self.directory.bucket

    @property
    def uri(self) -> str:
        """The target as people write it."""
        return f"s3://{self.bucket}/{self.key}"

    @property
    def metadata(self) -> dict[str, str]:
        """The object's metadata about its maker."""
        return {
            META_JOB: self.directory.job_id,
            META_TASK: self.task_id,
            META_ATTEMPT: self.attempt_id,
        }

    def begin(self, store: WriterStore) -> str:
        """Start the upload: one request. Returns its id."""
        return store.create_upload(
            self.bucket, self.key, metadata=self.metadata, content_type=self.content_type
        )

    def pending(
        self, upload_id: str, etags: Iterable[str], length: int, rows: int | None, origin: str = ""
    ) -> PendingFile:
        """The file as the manifest names it."""
        return PendingFile(
            bucket=self.bucket,
            key=self.key,
            upload_id=upload_id,
            etags=tuple(etags),
            length=length,
            job_id=self.directory.job_id,
            task_id=self.task_id,
            attempt_id=self.attempt_id,
            rows=rows,
            origin=origin,
        )


def file_key(directory: JobDirectory, relative_path: str, *, check_names: bool = True) -> str:
    """The final key of ``relative_path`` (``dt=2026-11-21/part-0.parquet``) below the destination.

    The job id is put before the first dot of the file name, as Hadoop's staging committer does
    (``part-0-<job_id>.parquet``), unless it is there. Raises `InvalidInputError`
    (``BAD_PATH``) for a path that is absolute, hidden, too long, or has empty, ``.``, ``..`` or
    unprintable elements, and with ``check_names`` for one that some readers skip.
    """
    _check_path(relative_path)
    if check_names and is_skipped(relative_path):
        _refuse_path(
            relative_path,
            "some readers skip directories that start with '_', and names that end with"
            " '._COPYING_': rename it, or give check_names=False",
        )
    head, slash, name = relative_path.rpartition("/")
    key = directory.destination.prefix + head + slash + _unique(name, directory.job_id)
    if len(key.encode()) > MAX_KEY_BYTES:
        _refuse_path(relative_path, f"its key has more than S3's {MAX_KEY_BYTES} bytes")
    return key


def _unique(name: str, job_id: str) -> str:
    if owner_of(name) == job_id:
        return name
    stem, dot, suffix = name.partition(".")
    return f"{stem}-{job_id}{dot}{suffix}"


def _check_path(path: str) -> None:
    if not isinstance(path, str):
        raise InvalidInputError(f"file path {path!r:.200}: give a string", code="BAD_PATH")
    elements = path.split("/")
    if path.startswith("/") or "://" in path:
        _refuse_path(path, "it must be relative to the destination")
    if any(element in {"", ".", ".."} for element in elements):
        _refuse_path(path, "it has an empty, '.' or '..' element")
    if is_hidden(path):
        _refuse_path(path, "names that start with '_' or '.' are hidden to readers")
    if UNSPEAKABLE.search(path):
        _refuse_path(path, "it has a control character, or one that S3's answers can't carry")


def _refuse_path(path: str, why: str) -> None:
    raise InvalidInputError(f"file path {path[:200]!r}: {why}", code="BAD_PATH")
