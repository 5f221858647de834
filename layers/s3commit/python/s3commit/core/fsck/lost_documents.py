"""What a decided job still needs of its directory, and is gone or changed.

What is visible tells what some of it said (docs/adr/0016); where it does not, the job's executions
fail until somebody brings the document back, and has to know which.
"""

from __future__ import annotations

from collections.abc import Iterator

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.manifest import MAX_MANIFEST_BYTES, digest
from s3commit.core.fsck.ports import Fsck
from s3commit.core.job.documents import read_request
from s3commit.core.job.plan import read_plan
from s3commit.core.job.replace_list import MAX_PAGE_BYTES, read_index
from s3commit.core.model.errors import InvalidInputError, JobRefusedError, NotFoundError
from s3commit.core.model.job import CommitRequest
from s3commit.core.model.record import JobRecord

_Needed = tuple[str, str]  # a key, and the digest of the bytes that were decided


def lost_documents(
    fsck: Fsck, directory: JobDirectory, record: JobRecord, *, listed: bool
) -> list[str]:
    """Plan, manifests and replace list of a decided job that are not what they were.

    Named as they are in the job's directory. ``listed``: the job's files stand in ``_commits/``, so
    that plan and manifests are needed no more. Reads all of them.
    """
    lost: list[str] = []
    needed: list[_Needed] = []
    if not listed and record.plan is not None and record.plan.sha256:
        needed += _of_the_plan(fsck, directory, record, lost)
    if record.replaced is not None and record.replaced.files:
        needed += _of_the_list(fsck, directory, record, lost)

    def look(one: _Needed) -> tuple[str, bool]:
        key, sha256 = one
        return key, _is_there(fsck, directory.bucket, key, sha256)

    answers = fsck.ports.parallel(look, dict.fromkeys(needed))
    lost += sorted(key for key, is_there in answers if not is_there)
    return [key.removeprefix(directory.prefix) for key in lost]


def _of_the_plan(
    fsck: Fsck, directory: JobDirectory, record: JobRecord, lost: list[str]
) -> Iterator[_Needed]:
    """The manifests of the plan; where it is lost, those of the request that makes it again."""
    try:
        for unit in read_plan(fsck.ports, directory, record):
            for part in unit.slices:
                yield directory.prefix + part.manifest, part.sha256
        return
    except (NotFoundError, JobRefusedError, InvalidInputError):
        lost.append(directory.plan(record.plan.sha256 if record.plan else ""))
    try:
        request = read_request(fsck.ports, directory)
    except (NotFoundError, JobRefusedError, InvalidInputError):
        lost.append(directory.request)
        return
    if isinstance(request, CommitRequest):
        for attempt in request.attempts or ():
            yield directory.prefix + attempt.manifest, attempt.sha256


def _of_the_list(
    fsck: Fsck, directory: JobDirectory, record: JobRecord, lost: list[str]
) -> Iterator[_Needed]:
    if record.replaced is None:
        return
    try:
        for sha256 in read_index(fsck.ports.store, directory, record.replaced):
            yield directory.page(sha256), sha256
    except (JobRefusedError, InvalidInputError):
        lost.append(directory.replaced(record.replaced.sha256))


def _is_there(fsck: Fsck, bucket: str, key: str, sha256: str) -> bool:
    most = max(MAX_MANIFEST_BYTES, MAX_PAGE_BYTES)
    try:
        return digest(fsck.ports.store.get(bucket, key, max_bytes=most).body) == sha256
    except (NotFoundError, InvalidInputError):
        return False
