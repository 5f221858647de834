"""What Hadoop's S3A committers write, by Hadoop's rules: paths, task ids, etags.

Source: ``org.apache.hadoop.fs.s3a.commit`` of Hadoop 3.3.4 and 3.5.0, and what they were seen to
write (tests/golden/s3a). Below a destination a magic job has

- ``__magic_job-<job>/job-<job>/<NN>/<task>.pendingset`` (from 3.4 on; NN counts the application's
  attempts) or ``__magic/job-<job>/<task>.pendingset`` (before): the manifest of a task, whichever
  attempt of it was the last to write it;
- ``…/tasks/<attempt>/__base/<path>.pending``: one file of an attempt that is not committed. What
  is below ``__base`` is the path below the destination.
"""

from __future__ import annotations

import re

from s3commit.core.formats.strict_json import Fields
from s3commit.core.model.errors import InvalidInputError

MAGIC = "__magic"  # of all jobs together, before Hadoop 3.4
MAGIC_PREFIX = "__magic_job-"
BASE = "__base"
JOB_PREFIX = "job-"
PENDING_SUFFIX = ".pending"
PENDINGSET_SUFFIX = ".pendingset"
_ATTEMPT = re.compile(r"attempt_(?P<task>\d+_\d+_[a-z]_\d+)_\d+")
_TASK = re.compile(r"task_\d+_\d+_[a-z]_(?P<number>\d+)")
_APPLICATION_ATTEMPT = re.compile(r"\d{2,9}")


def destination_key(pending_key: str) -> str:
    """The key of the file whose ``.pending`` this is; one that is not magic is its own.

    What is below ``__base`` comes below the magic directory's parent; without a ``__base`` the
    file's name does. Raises `InvalidInputError` if there is nothing below.
    """
    if not pending_key.endswith(PENDING_SUFFIX):
        raise _bad_path(f"key {pending_key[:200]!r} is no {PENDING_SUFFIX} file's")
    elements = [one for one in pending_key.removesuffix(PENDING_SUFFIX).split("/") if one]
    magic = next((at for at, one in enumerate(elements) if _is_magic(one)), None)
    if magic is None:
        return "/".join(elements)
    children = elements[magic + 1 :]
    below = children[children.index(BASE) + 1 :] if BASE in children else children[-1:]
    if not below:
        raise _bad_path(f"key {pending_key[:200]!r} names no file below {elements[magic]}")
    return "/".join([*elements[:magic], *below])


def parse_manifest_name(name: str, job_id: str) -> tuple[str, str] | None:
    """The task and the application's attempt of ``job-<job>/<NN>/<task>.pendingset``.

    ``name`` is relative to the job directory; None if it is not such a name.
    """
    elements = name.split("/")
    if len(elements) != 3 or elements[0] != JOB_PREFIX + job_id:
        return None
    _, application_attempt, file = elements
    if not _APPLICATION_ATTEMPT.fullmatch(application_attempt):
        return None
    if not file.endswith(PENDINGSET_SUFFIX):
        return None
    return file.removesuffix(PENDINGSET_SUFFIX), application_attempt


def task_of_attempt(text: str) -> str | None:
    """``task_…_m_000003`` of ``attempt_…_m_000003_7``; None for what is no attempt of Hadoop's."""
    found = _ATTEMPT.fullmatch(text)
    return f"task_{found['task']}" if found else None


def task_number(task_id: str) -> int | None:
    """3 for ``task_…_m_000003``; None for what is no task of Hadoop's."""
    found = _TASK.fullmatch(task_id)
    return int(found["number"]) if found else None


def etags(fields: Fields, *, most: int, longest: int) -> tuple[str, ...]:
    """The etags of a pending commit: texts, or objects with an ``etag`` (from Hadoop 3.5 on).

    At most ``most`` of at most ``longest`` characters.

    Raises `InvalidInputError`, with ``UNSUPPORTED_CHECKSUM`` for parts with checksums of their
    own: S3 wants those again when the upload is completed.
    """
    value = fields.value.get("etags")
    if not (isinstance(value, list) and value and isinstance(value[0], dict)):
        return fields.texts("etags", most=most, longest=longest)
    return tuple(_etag(part, longest) for part in fields.objects("etags", most=most))


def _etag(part: Fields, longest: int) -> str:
    if part.has("checksum") or part.has("checksumAlgorithm"):
        raise InvalidInputError(
            f"{part.path} has a checksum: an upload with checksums of its parts can not be"
            " completed by s3commit; unset fs.s3a.create.checksum.algorithm",
            code="UNSUPPORTED_CHECKSUM",
        )
    return part.text("etag", longest=longest)


def _is_magic(element: str) -> bool:
    return element == MAGIC or element.startswith(MAGIC_PREFIX)


def _bad_path(message: str) -> InvalidInputError:
    return InvalidInputError(message, code="BAD_PATH")
