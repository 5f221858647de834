"""An undo as a job: as its client plans it, and as the pipeline judges it under its locks."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import filterfalse
from typing import Final

from s3commit.core.documents.commit_manifest import CommittedFile, read_commit_header
from s3commit.core.documents.job_json import JobSpec
from s3commit.core.documents.pendingset import check_contained
from s3commit.core.documents.plan import planned_files
from s3commit.core.formats.layout import (
    MAX_KEY_BYTES,
    JobDirectory,
    directories_above,
    owner_of,
    partition_of,
)
from s3commit.core.jobs.healing import JOB_ENDED
from s3commit.core.jobs.idempotency import hinted_job
from s3commit.core.jobs.replaced import Appends
from s3commit.core.model.errors import NOT_READABLE, InvalidInputError, JobRefusedError
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports, S3Ports
from s3commit.core.ports.parallel import in_order
from s3commit.core.undo.bound import Look
from s3commit.core.undo.files import NOT_COMMITTED, NOTHING_TO_UNDO, refuse
from s3commit.core.undo.later import Done
from s3commit.core.undo.look_back import Undo, instead, look_back

_BUCKET: Final = re.compile(r"_\d+$")


@dataclass(frozen=True, slots=True)
class PlannedUndo:
    """The work of an undo.

    ``restores`` are the files that come back, each with the id of the version that is copied.
    ``key`` is the digest of the idempotency key that the undo takes: where it brings back the data
    of a job that an undo had removed. It ``leaves_removed`` what the job had replaced.
    """

    directory: JobDirectory
    found: Undo
    restores: tuple[tuple[CommittedFile, str], ...] = ()
    key: str | None = None
    leaves_removed: bool = False

    def copies(self, job_id: str) -> Iterator[tuple[str, CommittedFile, str]]:
        """The keys of the job's copies, each with the file and the version that it is of."""
        for number, (file, version) in enumerate(self.restores):
            yield _name(file.key, number, job_id), file, version


def plan_undo(
    ports: S3Ports, directory: JobDirectory, *, leave_removed: bool, after: Sequence[Done] = ()
) -> PlannedUndo:
    """The work of an undo of the job, ``after`` others. Changes nothing, and needs no ledger.

    Raises `JobRefusedError` as `look_back`, ``REPLACED_SINCE``, ``LIST_GONE`` and ``TOO_LARGE`` if
    what the job replaced can't come back, ``NAME_TOO_LONG`` and ``BAD_NAME`` for names that no job
    may write, ``VERSIONS_GONE`` if the bucket has not kept it all, and ``KEY_TAKEN`` if data would
    come back that a later job has written again.
    """
    try:
        found = look_back(Look(ports), directory, after)
    except JobRefusedError as error:
        if error.code != "FILES_CHANGED":
            raise
        # A job that removed the file may have ended since the jobs were listed: then it is found.
        found = look_back(Look(ports), directory, after)
    if leave_removed:
        if not found.removes:
            refuse(NOTHING_TO_UNDO, f"none of the files of job {directory.job_id} exist any more")
        return PlannedUndo(directory, found, leaves_removed=True)
    if found.refused:
        raise found.refused
    for number, file in enumerate(found.restores):
        name, shown = _name(file.key, number, directory.job_id), repr(file.key[:200])
        if len(name.encode()) > MAX_KEY_BYTES:
            more = f"a copy of {shown} would have a key of more than {MAX_KEY_BYTES} bytes"
            refuse("NAME_TOO_LONG", f"{more}. {instead(found.removes)}")
        try:
            check_contained(name, directory)
        except InvalidInputError as error:
            why = f"no copy of {shown}, another program's, can be written: {error.message}"
            refuse("BAD_NAME", f"{why}. {instead(found.removes)}")
    restores = _versions(ports, directory, found)
    return PlannedUndo(directory, found, restores, _key(ports, directory, found, after))


def judge_undo(ports: Ports, spec: JobSpec, record: JobRecord) -> Undo:
    """The work of a job that undoes another one; found under its locks.

    It brings back all that the other one replaced, or, if it says so, nothing. Raises
    `JobRefusedError` as `look_back`; ``NOT_COMMITTED`` for a job that is under way, and
    ``FILES_CHANGED`` if what the undo brings back is not what was replaced. Of jobs above the
    deployment's prefixes, put before it was narrowed, it sees nothing: the client's plan does.
    """
    try:
        return _judged(ports, spec, record)
    except JobRefusedError as error:
        unseen = list(filterfalse(ports.serves, directories_above(record.destination.prefix)))
        if error.code != "FILES_CHANGED" or not unseen:
            raise
        place = f"s3://{record.destination.bucket}/{unseen[-1]}"
        why = f"The reason may be a job at {place}, or above"
        does = "the pipeline reads nothing there unless the deployment's prefixes name it"
        refuse(error.code, f"{error.message}. {why}: {does}")


def _judged(ports: Ports, spec: JobSpec, record: JobRecord) -> Undo:
    undone = JobDirectory(record.destination, record.undoes)
    known = ports.ledger.job(undone.ref)
    if known is not None and known.failure is not None and known.failure.code == JOB_ENDED:
        known = None  # the record is of an event long after the end: the job's list counts
    if known is not None and known.state is not JobState.COMMITTED:
        refuse(NOT_COMMITTED, f"job {undone.job_id} is {known.state}: there is nothing to undo")
    appends = Appends(ports, record)
    found = look_back(Look(ports, ports.clock), undone)
    under_way = appends.to_leave()  # a forged manifest may name their files
    for one in found.removes:
        nodes = under_way.get(owner_of(one.key) or "", ())
        if f"{undone.bucket}/{one.key}".startswith(nodes):
            refuse(NOT_COMMITTED, f"a job that is under way has put {one.key!r}")
    if spec.leave_removed:
        if not found.removes:
            refuse(NOTHING_TO_UNDO, f"later jobs have replaced all files of job {undone.job_id}")
    elif found.refused:
        raise found.refused
    restores = () if spec.leave_removed else found.restores
    asked = Counter((file.first_key, file.length) for file in restores)
    planned = planned_files(ports, JobDirectory.of(record), record)
    asked.subtract((file.origin, file.length) for file in planned)
    if any(asked.values()):
        refuse("FILES_CHANGED", "the table has changed since the undo began: run it again")
    return found


def _versions(
    ports: S3Ports, directory: JobDirectory, found: Undo
) -> tuple[tuple[CommittedFile, str], ...]:
    """The files that come back, each with the version that has its bytes."""

    def version(file: CommittedFile) -> str | None:
        for one in ports.store.list_versions(directory.bucket, file.key):
            if (one.length, one.etag) == (file.length, file.etag):
                return one.version_id
        return None

    files = found.restores
    versions = in_order(ports.parallel, version, files)
    if missing := versions.count(None):
        listed = ports.store.list_versions(directory.bucket, directory.commits)
        # https://docs.aws.amazon.com/AmazonS3/latest/userguide/versioning-workflows.html
        keeps = (one.version_id for one in listed) if missing == len(files) else ()
        has = f"no longer has a version of {missing} of the {len(files)} files"
        if "null" in keeps:  # the list was put when the files were removed
            has = f"kept no versions when job {directory.job_id} ended, so it has none of the files"
        by_hand = " Overwrite with the right data, under another key or none."
        again = by_hand if found.removes else ""
        refuse(
            "VERSIONS_GONE",
            f"bucket {directory.bucket} {has} that job {directory.job_id} replaced, and they can't"
            f" come back.{again} {instead(found.removes)}",
        )
    return tuple(zip(files, versions, strict=True))


def _key(ports: S3Ports, directory: JobDirectory, found: Undo, after: Sequence[Done]) -> str | None:
    """The key of the job that the undone one has undone: its data comes back.

    Raises `JobRefusedError` (``KEY_TAKEN``) if another job has it and is not undone ``after``.
    """
    key, again = None, found.header.undoes
    if not again:
        return None
    with suppress(*NOT_READABLE):
        job = JobDirectory(directory.destination, again)
        key = read_commit_header(ports.store, job).idempotency_key
    other = hinted_job(ports.store, directory.destination, key) if key else None
    if other and other not in {one.undoes for one, _ in after}:
        refuse(
            "KEY_TAKEN",
            f"the data of job {again} would come back, and job {other.job_id} has since written it"
            " again under the same idempotency key: undo that job first if you want the older data",
        )
    return key


def _name(key: str, number: int, job_id: str) -> str:
    """Beside the file, with the same ends of its name: readers go by them.

    A bucket's number too, where Spark still finds it
    (org.apache.spark.sql.execution.datasources.BucketingUtils).
    """
    stem, dot, ends = key.rpartition("/")[2].partition(".")
    bucket = _BUCKET.search(stem)
    ends = f".{bucket[0]}{dot}{ends}" if bucket else f"{dot}{ends}"
    return f"{partition_of(key)}part-{number:05d}-{job_id}{ends}"
