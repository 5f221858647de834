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
from collections.abc import Sequence

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


def split_path(path: str) -> list[str]:
    """The elements of an absolute path; none for the root. Raises `InvalidInputError`."""
    if not path.startswith("/"):
        raise _bad_path(f"path {path[:200]!r} is not absolute")
    return [element for element in path.split("/") if element]


def is_magic(elements: Sequence[str]) -> bool:
    """Whether the path lies in a magic directory, of one job or of all."""
    return any(map(_is_magic_element, elements))


def magic_parents(elements: Sequence[str]) -> list[str]:
    """What stands before the magic element. Raises `InvalidInputError` if there is none."""
    return list(elements[: _magic_index(elements)])


def magic_children(elements: Sequence[str]) -> list[str]:
    """What stands behind the magic element. Raises `InvalidInputError` if there is none."""
    return list(elements[_magic_index(elements) + 1 :])


def last_element(elements: Sequence[str]) -> str:
    """The file's name. Raises `InvalidInputError` for a path without elements."""
    if not elements:
        raise _bad_path("a path without elements has no last one")
    return elements[-1]


def final_destination(elements: Sequence[str]) -> list[str]:
    """Where a file that is written to a magic path appears; a path that is not magic is its own.

    What is below ``__base`` comes below the magic directory's parent; without a ``__base`` the
    file's name does. Raises `InvalidInputError` if there is nothing below.
    """
    if not is_magic(elements):
        return list(elements)
    parents, children = magic_parents(elements), magic_children(elements)
    if BASE not in children:
        return [*parents, last_element(children)]
    below = children[children.index(BASE) + 1 :]
    if not below:
        raise _bad_path(f"no path below {BASE}")
    return [*parents, *below]


def destination_key(pending_key: str) -> str:
    """The key of the file whose ``.pending`` this is. Raises `InvalidInputError`."""
    if not pending_key.endswith(PENDING_SUFFIX):
        raise _bad_path(f"key {pending_key[:200]!r} is no {PENDING_SUFFIX} file's")
    elements = split_path("/" + pending_key.removesuffix(PENDING_SUFFIX))
    return "/".join(final_destination(elements))


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


def _is_magic_element(element: str) -> bool:
    return element == MAGIC or element.startswith(MAGIC_PREFIX)


def _magic_index(elements: Sequence[str]) -> int:
    for index, element in enumerate(elements):
        if _is_magic_element(element):
            return index
    raise _bad_path(f"no element is {MAGIC} or starts with {MAGIC_PREFIX}")


def _bad_path(message: str) -> InvalidInputError:
    return InvalidInputError(message, code="BAD_PATH")
