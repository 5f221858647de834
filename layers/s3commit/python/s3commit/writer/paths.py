"""From a caller's relative path to a file's key."""

from __future__ import annotations

from s3commit.core.formats.file_names import belongs_to_job
from s3commit.core.formats.layout import MAX_KEY_BYTES, JobDirectory, is_hidden
from s3commit.core.model.errors import InvalidInputError


def file_key(directory: JobDirectory, relative_path: str) -> str:
    """The final key of ``relative_path`` (``dt=2026-11-21/part-0.parquet``) below the destination.

    The job id is put before the first dot of the file name, as Hadoop's staging committer does
    (``part-0-<job_id>.parquet``), unless it stands there. Raises `InvalidInputError`
    (``BAD_PATH``) for a path that is absolute, hidden, too long, or has empty, ``.``, ``..`` or
    unprintable elements.
    """
    _check(relative_path)
    head, slash, name = relative_path.rpartition("/")
    key = directory.destination.prefix + head + slash + _unique(name, directory.job_id)
    if len(key.encode()) > MAX_KEY_BYTES:
        _refuse(relative_path, f"its key has more than S3's {MAX_KEY_BYTES} bytes")
    return key


def _unique(name: str, job_id: str) -> str:
    if belongs_to_job(name, job_id):
        return name
    stem, dot, suffix = name.partition(".")
    return f"{stem}-{job_id}{dot}{suffix}"


def _check(path: str) -> None:
    elements = path.split("/")
    if path.startswith("/") or "://" in path:
        _refuse(
            path,
            "it must be relative to the destination",
        )
    if any(element in {"", ".", ".."} for element in elements):
        _refuse(path, "it has an empty, '.' or '..' element")
    if is_hidden(path) or is_hidden(elements[-1].replace("=", "")):
        _refuse(path, "names that start with '_' or '.' are hidden to readers")
    if any(ord(character) < 32 or ord(character) == 127 for character in path):
        _refuse(path, "it has a control character")
    try:
        path.encode()
    except UnicodeEncodeError:
        _refuse(path, "UTF-8 can not carry it")


def _refuse(path: str, why: str) -> None:
    raise InvalidInputError(f"file path {path[:200]!r}: {why}", code="BAD_PATH")
