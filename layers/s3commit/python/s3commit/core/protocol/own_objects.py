"""What is visible of a job that is being undone: found, proven, deleted (I2, I5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from s3commit.core.errors import JobRefusedError, NotFoundError, PreconditionError
from s3commit.core.layout import META_JOB, JobDirectory, belongs_to_job, is_hidden
from s3commit.core.model import JobRecord, Names, PendingFile
from s3commit.core.plan import Unit, decode_plan
from s3commit.core.ports import NULL_VERSION, ListedObject, ObjectFacts
from s3commit.core.protocol.identity import (
    described,
    in_doubt,
    is_in_doubt,
    is_ours,
    is_provably_ours,
)
from s3commit.core.protocol.named_uploads import named_files
from s3commit.core.protocol.pipeline import Pipeline, read_plan
from s3commit.core.protocol.places import by_manifest, places_of
from s3commit.core.protocol.verify import remade_plan
from s3commit.core.states import JobState


def own_objects(
    pipeline: Pipeline, place: JobDirectory, record: JobRecord
) -> Iterator[ObjectFacts]:
    """What is visible of the job: found by name, proven by metadata, or by the plan (I5).

    The listing, not the plan, since a manifest may be what was lost. A file without metadata whose
    key and length are planned is ours even if its etag can't be foretold, as behind KMS: the name
    carries the job's id (docs/adr/0004), and what is left visible would break I2.
    """
    if record.names is Names.EXACT:
        yield from _exact_objects(pipeline, place, record)
        return
    planned: dict[str, int] | None = None
    for facts in pipeline.parallel(
        lambda listed: pipeline.store.head(place.bucket, listed.key),
        _own_names(pipeline, places_of(pipeline, place, record)),
    ):
        if facts is None:
            continue
        if META_JOB in facts.metadata:
            if facts.metadata[META_JOB] == place.job_id:
                yield facts
            continue
        if planned is None:
            planned = {file.key: file.length for file in _planned(pipeline, place, record)}
        if planned.get(facts.key) == facts.length:
            yield facts


def _own_names(pipeline: Pipeline, places: Iterable[JobDirectory]) -> Iterator[ListedObject]:
    for place in places:
        for listed in pipeline.store.list(place.bucket, place.destination.prefix):
            relative = place.relative(listed.key)
            if not is_hidden(relative) and belongs_to_job(listed.key, place.job_id):
                yield listed


def _exact_objects(
    pipeline: Pipeline, place: JobDirectory, record: JobRecord
) -> Iterator[ObjectFacts]:
    """Names of the program's own say nothing: plan or manifests do, and the object itself.

    A decided job found no file of another's in its place, and covered none: what is there by the
    etag is its own. Before the decision, and after the end, it takes more to know whose a file is.
    """
    proven = is_ours if record.state is JobState.ROLLING_BACK else is_provably_ours

    def prove(file: PendingFile) -> ObjectFacts | None:
        facts = pipeline.store.head(file.bucket, file.key)
        return facts if proven(file, facts) else None

    for facts in pipeline.parallel(prove, _exact_files(pipeline, place, record)):
        if facts is not None:
            yield facts


def stop_in_doubt(pipeline: Pipeline, place: JobDirectory, record: JobRecord) -> None:
    """Raise before anything is touched if an object may be the job's and may be another's.

    Left where it is, it would break I2; deleted, I5. Names that carry the job's id leave no doubt.
    """
    if record.names is not Names.EXACT:
        return

    def judge(file: PendingFile) -> None:
        if is_in_doubt(pipeline.store, file, pipeline.store.head(file.bucket, file.key)):
            raise in_doubt(place.job_id, described(file))

    for _done in pipeline.parallel(judge, _exact_files(pipeline, place, record)):
        pass


def _exact_files(
    pipeline: Pipeline, place: JobDirectory, record: JobRecord
) -> Iterator[PendingFile]:
    if record.state is JobState.ROLLING_BACK:
        return _planned(pipeline, place, record)
    return _named(pipeline, place, record)


def _named(pipeline: Pipeline, place: JobDirectory, record: JobRecord) -> Iterator[PendingFile]:
    for one in places_of(pipeline, place, record):
        yield from named_files(pipeline, one)


def _planned(pipeline: Pipeline, place: JobDirectory, record: JobRecord) -> Iterator[PendingFile]:
    if record.plan is None or not record.plan.sha256:  # refused before there was one
        yield from _named(pipeline, place, record)
        return
    # Without its manifest a file can only be proven by its metadata.
    for _, files in by_manifest(pipeline, place, record, _plan(pipeline, place, record)):
        if not isinstance(files, JobRefusedError):
            yield from files


def _plan(pipeline: Pipeline, place: JobDirectory, record: JobRecord) -> list[Unit]:
    """The decided plan; one that is lost is made again of request and manifests (docs/adr/0016)."""
    try:
        return read_plan(pipeline, place, record)
    except (JobRefusedError, NotFoundError):
        body = remade_plan(pipeline, place, record)
        if body is None:
            raise
        return decode_plan(body)


def delete_own_objects(pipeline: Pipeline, place: JobDirectory, record: JobRecord) -> None:
    """Delete what is visible of the job.

    Each as it is found: a call that runs out of time leaves less to the next one.
    """
    for _done in pipeline.parallel(
        lambda facts: _delete(pipeline, place, facts), own_objects(pipeline, place, record)
    ):
        pass


def _delete(pipeline: Pipeline, place: JobDirectory, facts: ObjectFacts) -> None:
    # By version on a versioned bucket, so that what the file covered comes back. Where versioning
    # is suspended the version "null" is whatever was put last, so the etag has to tell.
    if facts.version_id not in {None, NULL_VERSION}:
        pipeline.store.delete(
            place.bucket,
            facts.key,
            version_id=facts.version_id,
        )
        return
    with suppress(PreconditionError):  # another one by now: the last look calls it ours, or not
        pipeline.store.delete(place.bucket, facts.key, if_match=facts.etag)
