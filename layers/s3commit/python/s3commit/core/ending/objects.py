"""What is visible of a job that is being undone: found, proven, deleted (I2, I5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from s3commit.core.formats.layout import META_JOB, JobDirectory, belongs_to_job, is_hidden
from s3commit.core.formats.plan import Unit, decode_plan
from s3commit.core.job.locations import job_directories
from s3commit.core.job.plan import by_manifest, read_plan
from s3commit.core.model.errors import JobRefusedError, NotFoundError, PreconditionError
from s3commit.core.model.job import Names
from s3commit.core.model.pending import PendingFile
from s3commit.core.model.record import JobRecord
from s3commit.core.ownership.identity import described, in_doubt, is_in_doubt, is_ours
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.objects import NULL_VERSION, ListedObject, ObjectFacts, ObjectStore
from s3commit.core.recovery.lost_plan import remade_plan


def own_objects(ports: Ports, directory: JobDirectory, record: JobRecord) -> Iterator[ObjectFacts]:
    """What is visible of a job in ROLLING_BACK: found by name, proven by metadata, or plan (I5).

    The listing, not the plan, since a manifest may be what was lost. An object that is older than
    the job's ``job.json`` is not its own, whatever it looks like: a client may plan a file that
    lies there already, and lose its upload, to have that deleted (I12).
    """
    found = _exact_objects if record.names is Names.EXACT else _unique_objects
    return (
        facts for facts in found(ports, directory, record) if facts.modified >= record.opened_at
    )


def _unique_objects(
    ports: Ports, directory: JobDirectory, record: JobRecord
) -> Iterator[ObjectFacts]:
    planned: dict[str, PendingFile] | None = None
    for facts in ports.parallel(
        lambda listed: ports.store.head(directory.bucket, listed.key),
        _own_names(ports, job_directories(ports, directory, record)),
    ):
        if facts is None:
            continue
        if META_JOB in facts.metadata:
            if facts.metadata[META_JOB] == directory.job_id:
                yield facts
            continue
        if planned is None:
            planned = {file.key: file for file in _planned(ports, directory, record)}
        if facts.key in planned and is_ours(planned[facts.key], facts):
            yield facts


def _own_names(ports: Ports, directories: Iterable[JobDirectory]) -> Iterator[ListedObject]:
    for directory in directories:
        for listed in ports.store.list(directory.bucket, directory.destination.prefix):
            relative = directory.relative(listed.key)
            if not is_hidden(relative) and belongs_to_job(listed.key, directory.job_id):
                yield listed


def _exact_objects(
    ports: Ports, directory: JobDirectory, record: JobRecord
) -> Iterator[ObjectFacts]:
    """Names of the program's own say nothing: the plan does, and the object itself.

    A decided job found no file of another's in its place, and covered none: what is there by the
    etag is its own. Save where S3A's committer had begun: what it made visible the pipeline has not
    (I12), and only metadata of ours tells that from the rest.
    """
    began = record.plan is not None and record.plan.visible_before > 0

    def prove(file: PendingFile) -> ObjectFacts | None:
        facts = ports.store.head(file.bucket, file.key)
        if facts is None or (began and META_JOB not in facts.metadata):
            return None
        return facts if is_ours(file, facts) else None

    for facts in ports.parallel(prove, _planned(ports, directory, record)):
        if facts is not None:
            yield facts


def stop_in_doubt(ports: Ports, directory: JobDirectory, record: JobRecord) -> None:
    """Raise before anything is touched if an object may be the job's and may be another's.

    Left where it is, it would break I2; deleted, I5. Names that carry the job's id leave no doubt.
    """
    if record.names is not Names.EXACT:
        return

    def judge(file: PendingFile) -> None:
        if is_in_doubt(ports.store, file, ports.store.head(file.bucket, file.key)):
            raise in_doubt(directory.job_id, described(file))

    for _done in ports.parallel(judge, _planned(ports, directory, record)):
        pass


def _planned(ports: Ports, directory: JobDirectory, record: JobRecord) -> Iterator[PendingFile]:
    # Without its manifest a file can only be proven by its metadata.
    for _, files in by_manifest(ports, directory, record, _plan(ports, directory, record)):
        if not isinstance(files, JobRefusedError):
            yield from files


def _plan(ports: Ports, directory: JobDirectory, record: JobRecord) -> list[Unit]:
    """The decided plan; one that is lost is made again of request and manifests (docs/adr/0016)."""
    try:
        return read_plan(ports, directory, record)
    except (JobRefusedError, NotFoundError):
        body = remade_plan(ports, directory, record)
        if body is None:
            raise
        return decode_plan(body)


def delete_own_objects(ports: Ports, directory: JobDirectory, record: JobRecord) -> None:
    """Delete what is visible of the job.

    Each as it is found: a call that runs out of time leaves less to the next one.
    """
    for _done in ports.parallel(
        lambda facts: _delete(ports, directory, facts), own_objects(ports, directory, record)
    ):
        pass


def _delete(ports: Ports, directory: JobDirectory, facts: ObjectFacts) -> None:
    with suppress(PreconditionError):  # another one by now: the last look calls it ours, or not
        delete_as_seen(ports.store, directory.bucket, facts.key, facts.etag, facts.version_id)


def delete_as_seen(
    store: ObjectStore, bucket: str, key: str, etag: str, version_id: str | None
) -> None:
    """Delete an object, and no other that was put there since. Raises `PreconditionError`.

    By version on a versioned bucket, so that what the file covered comes back. Where versioning is
    suspended the version "null" is whatever was put last, so the etag has to tell.
    """
    if version_id in {None, "", NULL_VERSION}:
        store.delete(bucket, key, if_match=etag)
    else:
        store.delete(bucket, key, version_id=version_id)
