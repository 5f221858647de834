"""Once: of the jobs with one idempotency key at one destination, at most one is committed (I11).

The decision acquires the key, in one transaction; a roll back frees it in another. When a job is
about to be committed, its key and counts are noted in S3 twice: below ``_s3commit/``, where no
client can write, for the pipeline when the ledger was lost; and below the destination, as a hint
for clients that are about to write the same data again.

An undo of the job frees its key: the notes say that the job is undone, and stay, so that no late
call of that job can put them again. A key is forgotten where nothing of its job is left, as after
``DROP TABLE`` or ``TRUNCATE TABLE``: a success would say that data is there which is not.
"""

import shlex
from collections import Counter
from contextlib import suppress
from functools import partial
from itertools import chain, islice
from typing import Final

from s3commit.core.documents.commit_manifest import read_commit_header, stream_commit_manifest
from s3commit.core.documents.key_note import put_note, read_note
from s3commit.core.formats.layout import JobDirectory, directories_above, is_data, owner_of
from s3commit.core.jobs.past_commits import manifests_at, manifests_below, read_commits
from s3commit.core.model.amounts import many
from s3commit.core.model.destination import Destination
from s3commit.core.model.errors import (
    ARCHIVED,
    NOT_READABLE,
    PAGE_CHANGED,
    InvalidInputError,
    JobRefusedError,
    NeedsOperatorError,
)
from s3commit.core.model.limits import S3_CLOCKS
from s3commit.core.model.locks import KeyHolder, holder_of, key_digest
from s3commit.core.model.moments import shifted
from s3commit.core.model.outcome import ALREADY_COMMITTED
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports, S3Ports
from s3commit.core.ports.objects import ObjectReader, listed_at
from s3commit.core.ports.parallel import together

LOOKED_AT: Final = 10_000  # objects: ten pages of a listing
MAX_OWNERS: Final = 100  # jobs whose lists are looked at
_KEY: Final = "this job's idempotency key"  # who wrote it knows it; documents have its digest


def other_holder(ports: Ports, record: JobRecord, key: str) -> JobRecord | None:
    """The other job that has the job's key and has not ended; None if this job may continue.

    Raises `JobRefusedError` if the key's data is committed: ``ALREADY_COMMITTED``, or
    ``KEY_TAKEN`` if the counts or the partitions show that it was other data, or only a part of
    what that job left may be there.
    """
    directory, digest = JobDirectory.of(record), key_digest(key)
    holder = ports.ledger.key_holder(record.destination, digest)
    if holder is None:
        note = _own_note(ports.store, directory, digest)
        holder = note if note and not note.undone_by else None
    elif holder.job_id != record.job_id:
        other = ports.ledger.job(JobDirectory(record.destination, holder.job_id).ref)
        if other is not None and other.state is not JobState.COMMITTED:
            return other
    if holder is not None and holder.job_id != record.job_id:
        if not _is_forgotten(ports, record.destination, holder):
            raise _refusal(record, holder)
        ports.ledger.free_key(record.destination, digest, holder.job_id)
    return None


def _is_forgotten(ports: S3Ports, destination: Destination, holder: KeyHolder) -> bool:
    """True if nothing of the committed job is left.

    The list of its files was put before the key was noted. Requests: a listing of it, a GET and a
    HEAD. If the list or its first file was deleted: up to ten listings, and a GET for each job that
    has files there, or has ended since. Raises `JobRefusedError` if a part may be left, in its
    files or in others.
    """
    job, store = JobDirectory(destination, holder.job_id), ports.store
    listed = listed_at(store, job.bucket, job.commits)
    if listed and (has_its_files(store, job) or _was_replaced(ports, job, listed.modified)):
        return False
    start = len(job.destination.prefix)
    seen = [*islice(store.list(job.bucket, job.destination.prefix), LOOKED_AT)]
    owners = Counter(owner_of(one.key) for one in seen if is_data(one.key[start:]))
    left = owners.pop(job.job_id, 0)
    is_all = len(seen) < LOOKED_AT
    if not listed and is_all and left and left == holder.files:
        return False
    is_none = is_all and not left and len(owners) <= MAX_OWNERS
    if is_none and (not holder.files or all(_is_new(store, job, one) for one in owners)):
        return True
    what = "some of its files have" if listed else "the list of its files has"
    raise JobRefusedError(
        f"job {job.job_id} committed the data of {_KEY}, {what} been deleted since, and some of its"
        " rows may be there. Nothing was added: look, and write what is missing under another key",
        code="KEY_TAKEN",
    )


def has_its_files(store: ObjectReader, job: JobDirectory) -> bool:
    """True if the first file of the job's list is there, or it has none, or can't be read."""
    with suppress(*NOT_READABLE):
        _, files = stream_commit_manifest(store, job)
        first = next(files, None)
        return first is None or store.head(job.bucket, first.key) is not None
    return True


def _was_replaced(ports: S3Ports, job: JobDirectory, put_at: str) -> bool:
    """True if a job that was committed later, by S3's clocks, may have removed the job's files."""
    store, bucket, prefix = ports.store, job.bucket, job.destination.prefix
    above = (Destination(bucket, at) for at in filter(ports.serves, directories_above(prefix)))
    listed = chain(
        chain.from_iterable(manifests_at(store, at) for at in above),
        manifests_below(bucket, store.list(bucket, prefix)),
    )
    since = shifted(put_at, -S3_CLOCKS)
    later = (one for one in listed if one[1].modified >= since and one[0] != job)
    some = [*islice(later, MAX_OWNERS + 1)]
    if len(some) > MAX_OWNERS:
        return True
    headers = [one.header for one in read_commits(store, ports.parallel, some)]
    return len(headers) < len(some) or any(one.undoes or one.replaced for one in headers)


def _is_new(store: ObjectReader, job: JobDirectory, owner: str | None) -> bool:
    """True if the owner's files can't be copies of the job's, or rewritten from them."""
    with suppress(*NOT_READABLE):
        if owner is not None:
            header = read_commit_header(store, JobDirectory(job.destination, owner))
            return not header.undoes and not header.replaced_files
    return False


def _refusal(record: JobRecord, holder: KeyHolder) -> JobRefusedError:
    """A key says what the data is: other counts or partitions are other data."""
    difference = _difference(holder_of(record), holder)
    if not difference:
        return JobRefusedError(
            f"job {holder.job_id} already committed the data of {_KEY}; this job added nothing",
            code=ALREADY_COMMITTED,
        )
    return JobRefusedError(
        f"job {holder.job_id} used {_KEY} for other data: {difference}; nothing was added, write"
        " the data again under another key",
        code="KEY_TAKEN",
    )


def _difference(ours: KeyHolder, other: KeyHolder) -> str:
    """How the data of two jobs is seen to differ; empty if it is not."""
    if ours.rows is not None and other.rows is not None:
        if ours.rows != other.rows:
            return f"that has {many(other.rows, 'row')}, this job {many(ours.rows, 'row')}"
    elif (ours.files > 0) != (other.files > 0):
        return f"that has {many(other.files, 'file')}, this job {many(ours.files, 'file')}"
    is_known = ours.directories and other.directories
    is_elsewhere = is_known and ours.directories != other.directories
    return "its files are in other partitions" if is_elsewhere else ""


def note_key(ports: Ports, record: JobRecord, key: str) -> None:
    """Note the key of a job that is about to be committed; repeatable.

    Another object there is written over, a stranger's too (I12), as long as the job has the key:
    otherwise this call is late, and the job undone.
    """
    digest = key_digest(key)

    def has_it(_found: KeyHolder | None) -> bool:
        holder = ports.ledger.key_holder(record.destination, digest)
        return holder is not None and holder.job_id == record.job_id

    put = partial(
        put_note, ports.store, record.destination.bucket, note=holder_of(record), may_replace=has_it
    )
    together(ports.parallel, *(partial(put, name) for name in _names(record, digest)))


def free_key(ports: Ports, record: JobRecord) -> None:
    """Free the key of the job that the record's job undoes; repeatable.

    A key that another job has acquired since stays that one's. The pipeline's note says what has
    become of the job. The hint names the undo, which has no such key: so it is not valid.
    """
    facts = record.replaced
    if facts is None or not facts.frees:
        return

    def is_its(found: KeyHolder | None) -> bool:
        return found is None or found.job_id == record.undoes

    digest, bucket = key_digest(facts.frees), record.destination.bucket
    # First: who finds the note below, and asks the ledger then, must not hear that the job has it.
    ports.ledger.free_key(record.destination, digest, record.undoes)
    undone = KeyHolder(record.undoes, 0, undone_by=record.job_id)
    notes = (undone, KeyHolder(record.job_id, 0))
    for name, note in zip(_names(record, digest), notes, strict=True):
        put_note(ports.store, bucket, name, note, is_its)


def _names(record: JobRecord, digest: str) -> tuple[str, str]:
    """The keys of the pipeline's note and of the hint for clients."""
    directory = JobDirectory.of(record)
    return directory.key_note(digest), directory.once(digest)


def _own_note(store: ObjectReader, directory: JobDirectory, digest: str) -> KeyHolder | None:
    """The pipeline's own note.

    Raises `NeedsOperatorError` if it is spoilt, `InvalidInputError` (``ARCHIVED``).
    """
    key = directory.key_note(digest)
    try:
        return read_note(store, directory.bucket, key)
    except InvalidInputError as error:
        if error.code == ARCHIVED:
            raise
        typed = shlex.quote(directory.destination.uri)
        raise NeedsOperatorError(
            f"s3://{directory.bucket}/{key} names the committed job with this idempotency key, and"
            f" is not what the pipeline wrote: {error.message}; nothing was changed. If `s3commit"
            f" log {typed}` shows no other committed job with key {digest[:8]},"
            " delete the object, else restore an earlier version of it",
            code=PAGE_CHANGED,
        ) from error


def hinted_job(
    store: ObjectReader, destination: Destination, key: str, *, needs_files: bool = True
) -> JobDirectory | None:
    """The job that has committed the key's data here, if the hint for clients names one.

    The hint says only where to look: the header of that job's list has to have the key, and if it
    ``needs_files`` the first of them to be there. An object that is a stranger's, was copied, or
    can't be read is ignored; the pipeline decides.
    """
    name = JobDirectory(destination, "").once(key_digest(key))
    with suppress(*NOT_READABLE):
        note = read_note(store, destination.bucket, name)
        job = JobDirectory(destination, note.job_id) if note else None
        if job and read_commit_header(store, job).idempotency_key == key:
            return job if not needs_files or has_its_files(store, job) else None
    return None
