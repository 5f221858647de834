"""Which job or other writer a file belongs to, by its name (I5, I12; docs/adr/0004)."""

from __future__ import annotations

import re

from s3commit.core.formats.layout import JOB_ID

# `part-00003-<id>` is ours and Hadoop's staging committer's. Spark's own writers put a counter
# behind the id of a write (`part-00003-<id>-c000`): that is no job's id, and everybody sees it in
# the manifests' keys, so it must not make anybody the owner (I12).
_OWNER = re.compile(rf"(?:^|-)(?P<id>{JOB_ID.pattern})\Z")
_WRITE = re.compile(rf"(?:^|-)(?P<id>{JOB_ID.pattern})(?:-c\d+)?\Z")


def owner_of(key: str) -> str | None:
    """The id of the one job that can have made the file, by its name; None if it names none.

    Before its first dot the name is the job's id, or ends with ``-`` and the id. Ids are UUIDs, so
    no name has two owners.
    """
    return _id_in(_OWNER, key)


def write_of(key: str) -> str | None:
    """The id of the one write that the file is of, by its name; None if it names none.

    A job's id as `owner_of` finds it, or the id that Spark's own writers give a write.
    """
    return _id_in(_WRITE, key)


def _id_in(pattern: re.Pattern[str], key: str) -> str | None:
    found = pattern.search(key.rsplit("/", 1)[-1].split(".", 1)[0])
    return found["id"] if found else None


def belongs_to_job(key: str, job_id: str) -> bool:
    """Whether the file name says by itself that the job made it."""
    return owner_of(key) == job_id
