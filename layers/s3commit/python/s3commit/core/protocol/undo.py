"""AbortJob, RollBack and TidyUp: no upload stays open, and what must not be is not visible."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from s3commit.core.errors import JobRefusedError, PreconditionError, TransientError
from s3commit.core.layout import META_JOB, JobDirectory, belongs_to_job, is_hidden
from s3commit.core.model import Failure, JobRecord, Names, PendingFile
from s3commit.core.plan import MAX_PLAN_BYTES, decode_plan
from s3commit.core.policy import ABORT_ROUNDS
from s3commit.core.ports import NULL_VERSION, ListedObject, ObjectFacts, OpenUpload
from s3commit.core.protocol.acquire import release_locks
from s3commit.core.protocol.ending import write_result
from s3commit.core.protocol.identity import (
    described,
    in_doubt,
    is_in_doubt,
    is_ours,
    is_provably_ours,
)
from s3commit.core.protocol.named_uploads import named_files, named_uploads
from s3commit.core.protocol.pipeline import (
    Pipeline,
    own_record,
    unless_overtaken,
)
from s3commit.core.protocol.places import places_of, slice_of
from s3commit.core.protocol.remembered import stop_if_published
from s3commit.core.protocol.seal import ABANDONED, ABORTED_BY_CLIENT
from s3commit.core.protocol.taken import JOB_ID_TAKEN, says_elsewhere, turn_away
from s3commit.core.states import JobState
from s3commit.core.ticket import Ticket

ASKED_FOR = (ABORTED_BY_CLIENT, ABANDONED)
REFUSED = Failure("REFUSED", "the job was refused")


def abort_job(pipeline: Pipeline, ticket: Ticket) -> Ticket:
    """End a job before its decision: abort all its uploads (I4), then ABORTED and the result.

    A SEALED job comes here with the refusal of the step that refused it. While uploads are still
    being opened the job stays ABORTING, and the caller comes again. Raises `LostRaceError`.
    """
    if ticket.code == JOB_ID_TAKEN:
        return turn_away(pipeline, ticket)
    record = own_record(pipeline, ticket, JobState.SEALED, JobState.ABORTING, JobState.ABORTED)
    if record.state is JobState.SEALED:
        record = pipeline.ledger.advance(
            record.job_id,
            source=JobState.SEALED,
            target=JobState.ABORTING,
            generation=record.generation,
            now=pipeline.clock.now(),
            failure=ticket.refusal or REFUSED,
        )
    if record.state is JobState.ABORTING:
        _stop_in_doubt(pipeline, ticket.place, record)
        if not abort_uploads(pipeline, ticket.place):
            return ticket.after(record)
        asked_for = record.failure is not None and record.failure.code in ASKED_FOR
        lost_once = not asked_for or record.names is Names.EXACT
        if lost_once and not says_elsewhere(pipeline, ticket.place):
            # Refused after a commit was asked for. Had the ledger been lost during an earlier
            # decision of the same job, files of it would be visible already (I2), as they are if
            # an S3A driver died in its own commit. A copied table's files are not the job's.
            stop_if_published(pipeline, ticket.place)
            _delete_own_objects(pipeline, ticket.place, record)
        record = _end(pipeline, record, JobState.ABORTED)
    return _conclude(pipeline, ticket, record)


def roll_back(pipeline: Pipeline, ticket: Ticket) -> Ticket:
    """Undo a decided job of which a file is lost: afterwards none of its files is visible (I2).

    First every upload is aborted, which fences off workers that still complete; then what is
    visible and provably ours is deleted; then both are looked at once more. While uploads are
    still being opened the job stays ROLLING_BACK, and the caller comes again. Raises
    `IdentityUnknownError` before it touches anything where nobody can tell whose a
    file is; `AccessError` where a file may not be deleted: it goes on there when that is mended.
    """
    record = own_record(pipeline, ticket, JobState.ROLLING_BACK, JobState.ROLLED_BACK)
    if record.state is JobState.ROLLING_BACK:
        with unless_overtaken(pipeline, ticket, JobState.ROLLING_BACK):
            _stop_in_doubt(pipeline, ticket.place, record)
            stop_if_published(pipeline, ticket.place)
        if not abort_uploads(pipeline, ticket.place):
            return ticket.after(record)
        with unless_overtaken(pipeline, ticket, JobState.ROLLING_BACK):
            _delete_own_objects(pipeline, ticket.place, record)
            _verify_undone(pipeline, ticket.place, record)
        record = _end(pipeline, record, JobState.ROLLED_BACK)
    return _conclude(pipeline, ticket, record)


def tidy_up(pipeline: Pipeline, ticket: Ticket) -> Ticket:
    """After the end: abort what losers left open (I4), delete manifests and plan.

    ``job.json``, ``request.json`` and ``result.json`` stay for the retention time. A loser that
    still runs is not waited for: its manifest is aborted when it arrives. Of a job that was turned
    away nothing is tidied: the ledger has it elsewhere.
    """
    if ticket.code == JOB_ID_TAKEN:
        return ticket
    record = own_record(
        pipeline, ticket, JobState.COMMITTED, JobState.ABORTED, JobState.ROLLED_BACK
    )
    place = ticket.place
    places = places_of(pipeline, place, record)
    # Listed first: a manifest that comes later names uploads that nobody has aborted here, and it
    # is all that its own event finds them by.
    scratch = [
        (listed.key, listed.etag)
        for one in places
        for listed in pipeline.store.list(one.bucket, one.prefix)
        if listed.key.startswith(one.scratch)
    ]
    abort_uploads(pipeline, place)
    for key, etag in scratch:
        _delete_seen(pipeline, place.bucket, key, etag)
    return ticket


def _end(pipeline: Pipeline, record: JobRecord, target: JobState) -> JobRecord:
    return pipeline.ledger.advance(
        record.job_id,
        source=record.state,
        target=target,
        generation=record.generation,
        now=pipeline.clock.now(),
    )


def _conclude(pipeline: Pipeline, ticket: Ticket, record: JobRecord) -> Ticket:
    release_locks(pipeline, record)
    write_result(pipeline, ticket.place, record)
    return ticket.after(record)


def abort_uploads(pipeline: Pipeline, place: JobDirectory) -> bool:
    """Abort every open upload of the job, counted or not; True if none is left (I4, I5).

    The job's id in the file name, before the first dot, proves whose an upload is; manifests are
    not asked, since an attempt that was killed has none, save where names are exact. Listed again
    until nothing is left, since a task that nobody has stopped yet may open new ones faster than
    they are aborted; and each is aborted until ListParts does not know it: a part that was under
    way may have survived the abort
    (https://docs.aws.amazon.com/AmazonS3/latest/API/API_AbortMultipartUpload.html).
    """
    left: set[OpenUpload] = set()
    for _ in range(ABORT_ROUNDS):
        left.update(_own_uploads(pipeline, place))
        if not left:
            return True
        found = sorted(left, key=lambda upload: (upload.key, upload.upload_id))
        answers = pipeline.parallel(lambda upload: _abort(pipeline, place, upload), found)
        left = {upload for upload in answers if upload is not None}
    return False


def _own_uploads(pipeline: Pipeline, place: JobDirectory) -> Iterator[OpenUpload]:
    for one in places_of(pipeline, place, pipeline.ledger.job(place.job_id)):
        yield from _uploads_at(pipeline, one)


def _uploads_at(pipeline: Pipeline, place: JobDirectory) -> Iterator[OpenUpload]:
    for upload in pipeline.store.list_uploads(place.bucket, place.destination.prefix):
        if belongs_to_job(upload.key, place.job_id):
            yield upload
    yield from named_uploads(pipeline, place)


def _abort(pipeline: Pipeline, place: JobDirectory, upload: OpenUpload) -> OpenUpload | None:
    """Abort the upload; what is returned is still there."""
    pipeline.store.abort_upload(place.bucket, upload.key, upload.upload_id)
    is_open = pipeline.store.upload_is_open(place.bucket, upload.key, upload.upload_id)
    return upload if is_open else None


def _own_objects(
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
    for listed in _own_names(pipeline, places_of(pipeline, place, record)):
        facts = pipeline.store.head(place.bucket, listed.key)
        if facts is None:
            continue
        if META_JOB in facts.metadata:
            if facts.metadata[META_JOB] == place.job_id:
                yield facts
            continue
        if planned is None:
            planned = {file.key: file.length for file in _planned(pipeline, place, record)}
        if planned.get(listed.key) == facts.length:
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
    for file in _exact_files(pipeline, place, record):
        facts = pipeline.store.head(file.bucket, file.key)
        if facts is not None and proven(file, facts):
            yield facts


def _stop_in_doubt(pipeline: Pipeline, place: JobDirectory, record: JobRecord) -> None:
    """Raise before anything is touched if an object may be the job's and may be another's.

    Left where it is, it would break I2; deleted, I5. Names that carry the job's id leave no doubt.
    """
    if record.names is not Names.EXACT:
        return
    for file in _exact_files(pipeline, place, record):
        if is_in_doubt(pipeline.store, file, pipeline.store.head(file.bucket, file.key)):
            raise in_doubt(place.job_id, described(file))


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
    decided = place.plan(record.plan.sha256)
    stored = pipeline.store.get(place.bucket, decided, max_bytes=MAX_PLAN_BYTES)
    for unit in decode_plan(stored.body):
        for part in unit.slices:
            try:
                yield from slice_of(pipeline, place, record, part)
            except JobRefusedError:
                continue  # without its manifest a file can only be proven by its metadata


def _delete_own_objects(pipeline: Pipeline, place: JobDirectory, record: JobRecord) -> None:
    for facts in list(_own_objects(pipeline, place, record)):
        _delete(pipeline, place, facts)


def _delete(pipeline: Pipeline, place: JobDirectory, facts: ObjectFacts) -> None:
    # By version on a versioned bucket, so that what the file covered comes back. One that has
    # become another since is looked at again: _verify_undone calls it ours, or nobody's. Where
    # versioning is suspended the version "null" is whatever was put last, so the etag has to tell.
    if facts.version_id in {None, NULL_VERSION}:
        _delete_seen(pipeline, place.bucket, facts.key, facts.etag)
    else:
        pipeline.store.delete(
            place.bucket,
            facts.key,
            version_id=facts.version_id,
        )


def _verify_undone(pipeline: Pipeline, place: JobDirectory, record: JobRecord) -> None:
    _stop_in_doubt(pipeline, place, record)  # a zombie may have completed one since
    visible = next(_own_objects(pipeline, place, record), None)
    if visible is not None:
        raise TransientError(f"{visible.key} of job {place.job_id} is still visible")
    if next(_own_uploads(pipeline, place), None) is not None:
        raise TransientError(f"an upload of job {place.job_id} is open again")


def _delete_seen(pipeline: Pipeline, bucket: str, key: str, etag: str) -> None:
    # Another object than the one listed is not ours to delete.
    with suppress(PreconditionError):
        pipeline.store.delete(bucket, key, if_match=etag)
