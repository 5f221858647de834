"""Whose is this object? The question before every completion that is repeated, and every delete."""

from __future__ import annotations

from enum import Enum, auto

from s3commit.core.formats.file_names import belongs_to_job, write_of
from s3commit.core.formats.layout import META_ATTEMPT, META_JOB, META_TASK
from s3commit.core.formats.manifest import expected_etag
from s3commit.core.model.errors import IdentityUnknownError
from s3commit.core.model.pending import PendingFile
from s3commit.core.ports.objects import ObjectFacts, ObjectReader


class ObjectOwner(Enum):
    """The answer: the file's own, certainly not, or nothing in S3 can tell."""

    OURS = auto()
    FOREIGN = auto()
    UNKNOWN = auto()


def object_owner(file: PendingFile, facts: ObjectFacts | None) -> ObjectOwner:
    """Whether the object is this very file, completed: by its length, and metadata or etag.

    The attempt's id in the metadata is proof: it is unique to the try. Where the writer left no
    metadata of ours, the etag of the recorded parts decides. Behind SSE-KMS no etag can be foretold
    (https://docs.aws.amazon.com/AmazonS3/latest/API/API_Object.html): there a name that carries
    the job's id decides (docs/adr/0004), since the pipeline completes counted uploads alone; of any
    other name nobody can tell.
    """
    if facts is None or facts.length != file.length:
        return ObjectOwner.FOREIGN
    if META_JOB in facts.metadata:
        ours = (
            facts.metadata[META_JOB] == file.job_id
            and facts.metadata.get(META_TASK) == file.task_id
            and facts.metadata.get(META_ATTEMPT) == file.attempt_id
        )
        return ObjectOwner.OURS if ours else ObjectOwner.FOREIGN
    if facts.etag == expected_etag(file):
        return ObjectOwner.OURS
    if not facts.opaque:
        return ObjectOwner.FOREIGN
    return ObjectOwner.OURS if belongs_to_job(file.key, file.job_id) else ObjectOwner.UNKNOWN


def is_ours(file: PendingFile, facts: ObjectFacts | None) -> bool:
    """Whether the object is certainly this very file, completed."""
    return object_owner(file, facts) is ObjectOwner.OURS


def is_provably_ours(file: PendingFile, facts: ObjectFacts | None) -> bool:
    """Whether the object is this very file, and no other job can have made the like of it.

    An etag says what the bytes are, not who wrote them: a job that is run again under exact names
    writes the same file. Only metadata, or a name that carries the id of one write, tells whose.
    """
    if facts is None or not is_ours(file, facts):
        return False
    return META_JOB in facts.metadata or write_of(file.key) is not None


def is_in_doubt(store: ObjectReader, file: PendingFile, facts: ObjectFacts | None) -> bool:
    """Whether the object may be the file, completed, and may be another's.

    While the upload is open the object is another's: an upload that is completed is gone.
    """
    if object_owner(file, facts) is not ObjectOwner.UNKNOWN:
        return False
    return not store.upload_is_open(file.bucket, file.key, file.upload_id)


def in_doubt(job_id: str, what: str) -> IdentityUnknownError:
    """The error with which a job stops, where it is, before it touches what may be another's.

    ``what`` is by `described`.
    """
    return IdentityUnknownError(
        f"nobody can tell whether {what} is of job {job_id}: its upload is gone, it has no metadata"
        " of ours, and behind SSE-KMS an etag tells nothing. Nothing was touched;"
        " docs/operations.md says how to settle it, then go on with the job"
    )


def described(file: PendingFile) -> str:
    """The file with what its metadata would say, for a person who settles whose it is."""
    return f"{file.key} (task {file.task_id}, attempt {file.attempt_id})"
