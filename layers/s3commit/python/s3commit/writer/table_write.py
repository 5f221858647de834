"""Shared by `write` and `write_table`: checks before the first row, the commit, a result.

A table is rows with columns. For other files, open a job (`s3commit.writer.job`).
"""

import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from s3commit.aws.s3 import S3ObjectStore
from s3commit.core.documents.job_json import Who
from s3commit.core.documents.pendingset import MAX_MANIFEST_BYTES, decode_pendingset
from s3commit.core.documents.request_json import CountedAttempt
from s3commit.core.formats.layout import JobDirectory, is_data, partition_of
from s3commit.core.jobs.idempotency import hinted_job
from s3commit.core.model.amounts import amount, many
from s3commit.core.model.destination import Conflict, Destination
from s3commit.core.model.errors import AccessError, InvalidInputError, JobFailedError
from s3commit.core.model.locks import key_digest
from s3commit.core.ports.objects import ListedObject
from s3commit.writer.commit_result import CommitResult, result_at
from s3commit.writer.connect import check_pipeline
from s3commit.writer.job import Job
from s3commit.writer.options import ABORTED, NOT_EMPTY, WAY_OUT, Options
from s3commit.writer.place import check_place, newest_beside, refuse_files, side_by_side
from s3commit.writer.start import start_job
from s3commit.writer.system import say
from s3commit.writer.target import DEFAULT_CONTENT_TYPE

MANIFESTS_AT_ONCE = 32


def earlier_result(options: Options) -> CommitResult | None:
    """That of the job that surely has the key's data, by the pipeline's hint: else that judges."""
    key = options.idempotency_key
    store = options.access.store(None)
    earlier = key and hinted_job(store, options.destination, key_digest(key))
    if not earlier:
        return None
    say(
        f"job {earlier.job_id} already committed the data for idempotency_key {key!r}; the rows of"
        " this write are not added. Corrected data needs another key, or s3commit undo before;"
        f" see: s3commit show {earlier.typed}"
    )
    return result_at(earlier, already_committed=True)


# Compares the table's columns with those of a file; raises `InvalidInputError`.
CheckSchema = Callable[[S3ObjectStore, Destination, ListedObject], None]
# Compares them with the files that an overwrite of partitions leaves, by its tasks' manifests.
CheckLeft = Callable[[Sequence[CountedAttempt]], None]


def look(options: Options, check_schema: CheckSchema, *more: Callable[[], object]) -> bool:
    """Refuse a bucket without a pipeline, a bad place, and files that the mode refuses.

    ``options`` have the scope. True if the newest file has other columns, which an overwrite of
    partitions may be there to replace.
    """
    store, place = options.access.store(options.encryption), options.destination

    def look_at_place() -> bool:
        newest = check_place(store, options)
        if newest is not None and options.check_schema:
            try:
                check_schema(store, place, newest)
            except InvalidInputError:
                if options.conflict is not Conflict.REPLACE:
                    raise
                return True
        return False

    _, newest_differs, *_ = side_by_side(
        partial(check_pipeline, options.access.client(), place),
        look_at_place,
        partial(refuse_files, store, options),
        *more,
    )
    return bool(newest_differs)


def look_only(options: Options, check_schema: CheckSchema) -> CommitResult:
    """A dry run: as `look`, and refuse who has no right to write. Writes nothing."""
    store, place = options.access.store(options.encryption), options.destination
    newest_differs = look(options, check_schema, partial(_check_rights, store, place))
    if (earlier := earlier_result(options)) is not None:
        return replace(earlier, dry_run=True)
    removed, what = 0, ""
    if options.conflict is Conflict.REPLACE:
        listed = store.list(place.bucket, place.prefix)
        try:
            removed = sum(is_data(one.key[len(place.prefix) :]) for one in listed)
            what = many(removed, "file")
        except AccessError:
            what = "files that it cannot list"
        what = f"; the overwrite would remove {what}, at most"
    if newest_differs:
        what += ", and be refused if it leaves files of other types, such as the newest"
    say(f"dry run at {place.uri}: nothing was written, and no check refused the write{what}")
    return CommitResult(place.uri, replaced=removed, dry_run=True)


def begin(
    options: Options, check_schema: CheckSchema, client: str, who: Who | None = None
) -> tuple[Job, CheckLeft | None]:
    """`look`, and start the job; `commit` takes both that it returns."""
    newest_differs = look(options, check_schema)
    store = options.access.store(options.encryption)
    job = start_job(options, client=client, who=who, store=store)
    say(f"job {job.job_id} begins; see: s3commit show --follow {job.directory.typed}")
    return job, partial(_check_left, store, job.directory, check_schema) if newest_differs else None


def _check_left(
    store: S3ObjectStore,
    directory: JobDirectory,
    check_schema: CheckSchema,
    attempts: Sequence[CountedAttempt],
) -> None:
    """See `CheckLeft`. Requests: a GET of each manifest, and those of `newest_beside`."""
    place = directory.destination

    def partitions(one: CountedAttempt) -> set[str]:
        key = directory.prefix + one.manifest
        stored = store.get(directory.bucket, key, max_bytes=MAX_MANIFEST_BYTES)
        files = decode_pendingset(stored.body, directory, one.manifest).files
        return {partition_of(file.key) for file in files}

    with ThreadPoolExecutor(MANIFESTS_AT_ONCE) as threads:
        replaced = set[str]().union(*threads.map(partitions, attempts))
    left = newest_beside(store, place, replaced) if replaced else None
    if left is not None:
        check_schema(store, place, left)


def commit(
    job: Job,
    attempts: Sequence[CountedAttempt | None],
    rows: int,
    check_left: CheckLeft | None = None,
) -> CommitResult:
    """Request the commit, wait for the outcome, and print both.

    Raises as `Job.commit`, and as ``check_left``.
    """
    counted = [one for one in attempts if one]
    if check_left is not None:
        try:
            check_left(counted)
        except InvalidInputError as error:
            error.guarantee(f"{ABORTED}.")
            raise
    ended = amount(sum(one.files for one in counted), sum(one.bytes for one in counted), rows)
    say(f"the tasks have ended with {ended}; requesting the commit of job {job.job_id}")
    try:
        result = job.commit(attempts)
    except JobFailedError as error:
        if error.code != NOT_EMPTY:
            raise
        raise JobFailedError(f"{error.message}; {WAY_OUT}", code=NOT_EMPTY) from error
    if result.already_committed:
        return result
    done = f"replaced {many(result.replaced, 'file')} with" if result.replaced else "committed"
    written = amount(result.files, result.bytes, rows)
    say(f"{done} {written}; see: s3commit show {job.directory.typed}")
    return replace(result, rows=rows)


def _check_rights(store: S3ObjectStore, destination: Destination) -> None:
    """Start and abort an upload of a file and of ``_job.json``. Raises `AccessError`.

    S3 checks the same right as for a put, and the KMS key's
    (https://docs.aws.amazon.com/AmazonS3/latest/API/API_CreateMultipartUpload.html, Permissions).
    """
    directory = JobDirectory(destination, str(uuid.uuid4()))
    for key in (f"{destination.prefix}part-0-{directory.job_id}", directory.job):
        upload = store.create_upload(
            destination.bucket, key, metadata={}, content_type=DEFAULT_CONTENT_TYPE
        )
        store.abort_upload(destination.bucket, key, upload)
