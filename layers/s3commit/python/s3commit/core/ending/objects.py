"""What is visible of a job that is being undone: found, proven, deleted (I2, I5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from s3commit.core.formats.file_names import belongs_to_job
from s3commit.core.formats.layout import META_JOB, JobDirectory, is_hidden
from s3commit.core.formats.plan import Unit, decode_plan
from s3commit.core.job.plan import FILES_AT_ONCE, read_plan, readable_files
from s3commit.core.model.errors import JobRefusedError, NotFoundError, PreconditionError
from s3commit.core.model.pending import PendingFile
from s3commit.core.model.record import JobRecord
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.objects import NULL_VERSION, ListedObject, ObjectFacts, ObjectStore
from s3commit.core.recovery.lost_plan import remade_plan


def listed_objects(
    ports: Ports, directory: JobDirectory, record: JobRecord
) -> Iterator[ObjectFacts]:
    """What is visible of a job in ROLLING_BACK: proven by metadata, or plan (I5).

    Found by listing, not by the plan, since a manifest may be what was lost.
    """
    planned: dict[str, PendingFile] | None = None
    for facts in ports.parallel(
        lambda listed: ports.store.head(directory.bucket, listed.key),
        _own_names(ports, directory),
    ):
        if facts is None:
            continue
        if META_JOB in facts.metadata:
            if facts.metadata[META_JOB] == directory.job_id and _is_of_its_time(facts, record):
                yield facts
            continue
        if planned is None:
            units = decided_plan(ports, directory, record)
            planned = {file.key: file for file in readable_files(ports, directory, record, units)}
        file = planned.get(facts.key)
        is_planned = file is not None and file.length == facts.length
        if is_planned and _is_of_its_time(facts, record):
            yield facts


def _is_of_its_time(facts: ObjectFacts, record: JobRecord) -> bool:
    """An object that is older than the job's ``job.json`` is not its own, whatever it looks like.

    A client may plan a file that lies there already, and lose its upload, to have that deleted
    (I12).
    """
    return facts.modified >= record.opened_at


def _own_names(ports: Ports, directory: JobDirectory) -> Iterator[ListedObject]:
    for listed in ports.store.list(directory.bucket, directory.destination.prefix):
        relative = directory.relative(listed.key)
        if not is_hidden(relative) and belongs_to_job(listed.key, directory.job_id):
            yield listed


def planned_portions(
    ports: Ports, directory: JobDirectory, record: JobRecord, units: Sequence[Unit], first: int
) -> Iterator[tuple[int, list[PendingFile]]]:
    """The files of the plan in portions of some thousands, from the unit ``first`` on.

    Each with the number of its first unit. A file whose manifest is gone is in none of them:
    nothing but its metadata proves it, and a listing alone shows its upload.
    """
    number = first
    while number < len(units):
        portion = [units[number]]
        while number + len(portion) < len(units):
            following = units[number + len(portion)]
            if sum(unit.files for unit in portion) + following.files > FILES_AT_ONCE:
                break
            portion.append(following)
        yield number, list(readable_files(ports, directory, record, portion))
        number += len(portion)


def decided_plan(ports: Ports, directory: JobDirectory, record: JobRecord) -> list[Unit]:
    """The decided plan; one that is lost is made again of request and manifests (docs/adr/0016).

    Raises as `read_plan` if they don't make the same one.
    """
    try:
        return read_plan(ports, directory, record)
    except (JobRefusedError, NotFoundError):
        body = remade_plan(ports, directory, record)
        if body is None:
            raise
        return decode_plan(body)


def delete_objects(ports: Ports, directory: JobDirectory, found: Iterable[ObjectFacts]) -> None:
    """Delete visible objects of the job, each as it is found."""
    for _done in ports.parallel(lambda facts: _delete(ports, directory, facts), found):
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
