"""What a job's manifests name, counted or not: the only trace of files with exact names (I4).

Where file names carry the job's id, a listing finds all that is the job's, and no manifest is
asked. S3A's names carry another id, or none: there a job's uploads are those that its manifests
name, and the ``.pending`` files of attempts that were never committed. Each is judged by the codec
(I7), and none acts on another job's files (I5).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from s3commit.core.formats.file_names import belongs_to_job
from s3commit.core.formats.hadoop import PENDING_SUFFIX
from s3commit.core.formats.layout import (
    NOTE_SUFFIX,
    PENDINGSET_SUFFIX,
    JobDirectory,
    parse_manifest_key,
)
from s3commit.core.formats.manifest import (
    MAX_MANIFEST_BYTES,
    MAX_NOTE_BYTES,
    MAX_PENDING_BYTES,
    decode_note,
    decode_pending,
    decode_pendingset,
    with_ids,
)
from s3commit.core.formats.strict_json import TOO_LARGE
from s3commit.core.job.manifests import each_manifest
from s3commit.core.model.errors import InvalidInputError, NotFoundError
from s3commit.core.model.job import Names
from s3commit.core.model.pending import PendingFile
from s3commit.core.ownership.open_uploads import is_older
from s3commit.core.ownership.other_jobs import OtherJobs
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.objects import ObjectReader, OpenUpload


def uploads_of_job(
    ports: Ports,
    directory: JobDirectory,
    names: Names,
    opened_at: str,
    uploads: Iterable[OpenUpload],
    *,
    put_at: str = "",
) -> Iterator[OpenUpload]:
    """The job's of these uploads below one of its directories, and none that `is_older`.

    First those with the job's id in their file names; then, under exact names, those of the others
    that its manifests and notes name, read one by one. A caller that acts on each one at once has
    made progress even if it is stopped.

    ``opened_at`` is the ledger's word on when S3 got the ``job.json``. If it has none, ``put_at``
    says when one was put since. Without either a name proves nothing: S3A's have no job's id, and
    anyone may choose one.
    """
    other_jobs = OtherJobs(ports.store, directory)
    since = opened_at or put_at
    is_proof = names is Names.UNIQUE or since != ""
    in_question: dict[tuple[str, str], OpenUpload] = {}
    for upload in uploads:
        is_named_so = is_proof and belongs_to_job(upload.key, directory.job_id)
        if is_named_so and not is_older(upload, since):
            if not other_jobs.own(upload.key):
                yield upload
        elif names is Names.EXACT and not is_older(upload, opened_at):
            in_question[upload.key, upload.upload_id] = upload
    for named in uploads_named(ports, directory) if in_question else ():
        if named in in_question:
            yield in_question.pop(named)
            if not in_question:
                return


def uploads_named(ports: Ports, directory: JobDirectory) -> Iterator[tuple[str, str]]:
    """Key and upload id of whatever manifests, and the notes of our own writer's tasks, name.

    A task notes each upload with an exact name before its first part is sent: it may die, and
    leave no manifest.
    """
    for file in named_files(ports, directory):
        yield file.key, file.upload_id
    other_jobs = OtherJobs(ports.store, directory)
    notes = (
        listed.key
        for listed in ports.store.list(directory.bucket, directory.tasks)
        if listed.key.endswith(NOTE_SUFFIX)
    )
    for noted in ports.parallel(lambda key: _noted_at(ports.store, directory, key), notes):
        if noted is not None and not other_jobs.own(noted[0]):
            yield noted


def named_files(ports: Ports, directory: JobDirectory) -> Iterator[PendingFile]:
    """Every file that an acceptable manifest of the job names; none of another job's."""
    other_jobs = OtherJobs(ports.store, directory)
    keys = (
        listed.key
        for prefix in (directory.tasks, directory.s3a)
        for listed in ports.store.list(directory.bucket, prefix)
        if listed.key.endswith((PENDINGSET_SUFFIX, PENDING_SUFFIX))
    )

    def read(key: str, max_bytes: int) -> tuple[PendingFile, ...]:
        return files_named_at(ports.store, directory, key, max_bytes=max_bytes)

    for files in each_manifest(ports, read, keys):
        for file in files:
            if not other_jobs.own(file.key):
                yield file


def _noted_at(store: ObjectReader, directory: JobDirectory, key: str) -> tuple[str, str] | None:
    try:
        return decode_note(
            store.get(directory.bucket, key, max_bytes=MAX_NOTE_BYTES).body, directory
        )
    except (NotFoundError, InvalidInputError):
        return None


def files_named_at(
    store: ObjectReader, directory: JobDirectory, key: str, *, max_bytes: int = MAX_MANIFEST_BYTES
) -> tuple[PendingFile, ...]:
    """The files of one pendingset or ``.pending`` file; none of one that is gone or refused.

    With a smaller ``max_bytes`` a larger one raises `InvalidInputError` (``TOO_LARGE``).
    """
    try:
        if key.endswith(PENDING_SUFFIX):
            body = store.get(
                directory.bucket, key, max_bytes=min(max_bytes, MAX_PENDING_BYTES)
            ).body
            return (decode_pending(body, directory, key),)
        body = store.get(directory.bucket, key, max_bytes=max_bytes).body
        files = decode_pendingset(body, directory, names=Names.EXACT).files
    except NotFoundError:
        return ()
    except InvalidInputError as error:
        if error.code == TOO_LARGE and max_bytes < MAX_MANIFEST_BYTES:
            raise
        return ()
    try:
        _, task_id, attempt_id = parse_manifest_key(directory.bucket, key)
    except InvalidInputError:
        return files
    return with_ids(files, directory.job_id, task_id, attempt_id)
