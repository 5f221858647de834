"""Whose is this object? The question before every completion that is repeated, and every delete."""

from __future__ import annotations

from s3commit.core.layout import META_ATTEMPT, META_JOB, META_TASK, owner_of
from s3commit.core.manifest import expected_etag
from s3commit.core.model import PendingFile
from s3commit.core.ports import ObjectFacts


def is_ours(file: PendingFile, facts: ObjectFacts | None) -> bool:
    """Whether the object is this very file, completed: by its length, and metadata or etag.

    The attempt's id in the metadata is proof: it is unique to the try. Where the writer left no
    metadata of ours, the etag of the recorded parts decides.
    """
    if facts is None or facts.length != file.length:
        return False
    if META_JOB in facts.metadata:
        return (
            facts.metadata[META_JOB] == file.job_id
            and facts.metadata.get(META_TASK) == file.task_id
            and facts.metadata.get(META_ATTEMPT) == file.attempt_id
        )
    return facts.etag == expected_etag(file)


def is_provably_ours(file: PendingFile, facts: ObjectFacts | None) -> bool:
    """Whether the object is this very file, and no other job can have made the like of it.

    An etag says what the bytes are, not who wrote them: a job that is run again under exact names
    writes the same file. Only metadata, or a name that carries the id of one write, tells whose.
    """
    if facts is None or not is_ours(file, facts):
        return False
    return META_JOB in facts.metadata or owner_of(file.key) is not None
