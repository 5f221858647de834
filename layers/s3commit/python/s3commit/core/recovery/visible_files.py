"""The files of a job in PUBLISHING by what is visible, where a manifest is gone (docs/adr/0016)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from s3commit.core.formats.file_names import belongs_to_job
from s3commit.core.formats.layout import (
    META_ATTEMPT,
    META_JOB,
    META_TASK,
    JobDirectory,
    is_data,
    parse_manifest_key,
)
from s3commit.core.formats.manifest import expected_etag
from s3commit.core.formats.plan import Slice
from s3commit.core.formats.published import CommittedFile
from s3commit.core.job.plan import by_manifest, read_plan
from s3commit.core.model.errors import JobRefusedError, NotFoundError
from s3commit.core.model.record import JobRecord
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.objects import ListedObject, ObjectFacts


@dataclass(slots=True)
class _Known:
    """What the manifests say that are left; ``lost`` are the attempts of the others.

    ``lost`` is None if there is no plan that could name them.
    """

    files: dict[str, CommittedFile] = field(default_factory=dict)
    lost: set[tuple[str, str]] | None = None


def visible_files(ports: Ports, directory: JobDirectory, record: JobRecord) -> list[CommittedFile]:
    """The files of a job of which all files were counted visible, though manifests are gone.

    What lies there with the job's metadata, and is of an attempt whose manifest is gone, is the
    job's: only counted uploads are ever completed. Whoever may put objects below the destination
    can have taken a manifest and put another file over one of the job's: then there are fewer files
    than the ledger has counted. The job ends all the same (I12), and `fsck` says so. Rows of single
    files are known no more. Costs a listing, and a HEAD for each file that may be one of those.
    Memory: some 500 bytes a file.
    """
    known = _known(ports, directory, record)
    found = [
        CommittedFile(facts.key, facts.length, facts.etag, None)
        for facts in ports.parallel(
            lambda one: ports.store.head(directory.bucket, one.key),
            _candidates(ports, directory, known),
        )
        if facts is not None and _is_lost(facts, directory, known)
    ]
    return [*known.files.values(), *sorted(found, key=lambda one: one.key)]


def _known(ports: Ports, directory: JobDirectory, record: JobRecord) -> _Known:
    known = _Known()
    try:
        units = read_plan(ports, directory, record)
    except (JobRefusedError, NotFoundError):
        return known
    known.lost = set()
    for part, files in by_manifest(ports, directory, record, units):
        if isinstance(files, JobRefusedError):
            known.lost.add(_attempt_of(directory, part))
            continue
        for file in files:
            known.files[file.key] = CommittedFile(
                file.key, file.length, expected_etag(file), file.rows
            )
    return known


def _attempt_of(directory: JobDirectory, part: Slice) -> tuple[str, str]:
    _, task_id, attempt_id = parse_manifest_key(directory.bucket, directory.prefix + part.manifest)
    return task_id, attempt_id


def _candidates(ports: Ports, directory: JobDirectory, known: _Known) -> Iterator[ListedObject]:
    """The job's data that no manifest names."""
    for listed in ports.store.list(directory.bucket, directory.destination.prefix):
        if listed.key in known.files or not is_data(directory.relative(listed.key)):
            continue
        if belongs_to_job(listed.key, directory.job_id):
            yield listed


def _is_lost(facts: ObjectFacts, directory: JobDirectory, known: _Known) -> bool:
    if facts.metadata.get(META_JOB) != directory.job_id:
        return False
    attempt = facts.metadata.get(META_TASK, ""), facts.metadata.get(META_ATTEMPT, "")
    return known.lost is None or attempt in known.lost
