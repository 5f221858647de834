"""From a caller's relative path to a file's key, and what is noted of a key that proves nothing."""

from __future__ import annotations

from s3commit.core.formats.file_names import belongs_to_job
from s3commit.core.formats.layout import (
    MAX_KEY_BYTES,
    NOTE_SUFFIX,
    TASKS,
    JobDirectory,
    check_id,
    is_hidden,
)
from s3commit.core.formats.manifest import NOTE_VERSION
from s3commit.core.formats.strict_json import dump
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.job import Names


def file_key(directory: JobDirectory, relative_path: str, names: Names = Names.UNIQUE) -> str:
    """The final key of ``relative_path`` (``dt=2026-11-21/part-0.parquet``) below the destination.

    The job id is put before the first dot of the file name, as Hadoop's staging committer does
    (``part-0-<job_id>.parquet``), unless it stands there or ``names`` is EXACT. Raises
    `InvalidInputError` (``BAD_PATH``) for a path that is absolute, hidden, too long, or has empty,
    ``.``, ``..`` or unprintable elements.
    """
    _check(relative_path)
    head, slash, name = relative_path.rpartition("/")
    if names is Names.UNIQUE:
        name = _unique(name, directory.job_id)
    key = directory.destination.prefix + head + slash + name
    if len(key.encode()) > MAX_KEY_BYTES:
        _refuse(relative_path, f"its key has more than S3's {MAX_KEY_BYTES} bytes")
    return key


def note_key(directory: JobDirectory, task_id: str, attempt_id: str, number: int) -> str:
    """The key of the note on an attempt's upload of an exact name; ``number`` counts from 0.

    The pipeline tells the uploads of a task that died by the job's id in their names. A name that
    does not carry it proves nothing, so such an upload is noted before its first part is sent.
    """
    check_id(task_id, "task id")
    check_id(attempt_id, "attempt id")
    return f"{directory.prefix}{TASKS}{task_id}/{attempt_id}/{number}{NOTE_SUFFIX}"


def encode_note(key: str, upload_id: str) -> bytes:
    """The note's JSON: ``{"version":1,"key":"…","uploadId":"…"}``."""
    return dump({"version": NOTE_VERSION, "key": key, "uploadId": upload_id})


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
