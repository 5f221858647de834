"""Asking in a driver's place: the checks before an abort or a commit is written."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from s3commit.cli.job.snapshot import JobSnapshot, open_uploads, own_uploads
from s3commit.cli.session import Session
from s3commit.cli.text import many, some
from s3commit.core.formats.layout import JOB_FILE
from s3commit.core.formats.manifest import MAX_MANIFEST_BYTES, digest
from s3commit.core.job.documents import JOB_CHANGED
from s3commit.core.job.manifests import decode_manifest
from s3commit.core.model.errors import JobRefusedError, PreconditionError
from s3commit.core.model.job import AbortRequest, CountedAttempt
from s3commit.core.model.pending import PendingSet
from s3commit.core.model.states import JobState


@dataclass(frozen=True, slots=True)
class Countable:
    """What a commit of every manifest would make visible; ``unfinished`` uploads would not be.

    ``task_count`` is how many tasks there should be, if a manifest says it.
    """

    attempts: tuple[CountedAttempt, ...]
    files: int
    bytes: int
    rows: int | None
    unfinished: int
    task_count: int | None = None

    @property
    def tasks(self) -> int:
        """How many tasks have a manifest."""
        return len({attempt.task_id for attempt in self.attempts})


def refuse_second_request(snapshot: JobSnapshot) -> None:
    """Raise `PreconditionError` if the job has its request, or has ended."""
    job = snapshot.job_id
    if snapshot.ended and snapshot.state == JobState.PUBLISHING:
        raise PreconditionError(
            f"job {job} is PUBLISHING: all its files are visible, and there is no way back; see:"
            f" s3commit show {snapshot.name}",
            code="OTHER_REQUEST",
        )
    if snapshot.ended:
        raise PreconditionError(f"job {job} is {snapshot.state} already", code="JOB_ENDED")
    if snapshot.request_stands:
        raise PreconditionError(
            f"job {job}: its {requested(snapshot)} was requested before, and decides; see:"
            f" s3commit show {snapshot.name}",
            code="OTHER_REQUEST",
        )


def requested(snapshot: JobSnapshot) -> str:
    """What the request that stands asks for."""
    if snapshot.request is None:
        return "request, which can not be read,"
    return "abort" if isinstance(snapshot.request, AbortRequest) else "commit"


def is_aborting(snapshot: JobSnapshot) -> bool:
    """Whether the job's abort was requested, or it has ended without being committed."""
    if snapshot.ended:
        return snapshot.state in {JobState.ABORTED, JobState.ROLLED_BACK}
    return isinstance(snapshot.request, AbortRequest)


def count_everything(session: Session, snapshot: JobSnapshot) -> Countable:
    """Judge every manifest as the pipeline would, against the uploads that are open.

    Raises `JobRefusedError` for what would only end in an abort: ``NO_MANIFEST``,
    ``TWO_ATTEMPTS``, ``JOB_CHANGED``, ``UPLOAD_GONE``, or a manifest that is not acceptable.
    """
    _refuse_without_job_json(snapshot)
    if not snapshot.manifests:
        raise JobRefusedError(
            f"job {snapshot.job_id} has no manifest: no task of it is done, there is nothing to"
            " commit",
            code="NO_MANIFEST",
        )
    uploads = own_uploads(session, snapshot, open_uploads(session, snapshot))
    open_ids = {upload.upload_id for upload in uploads}
    found: list[CountedAttempt] = []
    said: list[int] = []
    rows: int | None = 0
    gone: list[str] = []
    read = partial(_read_manifest, session, snapshot)
    for attempt, pending in session.parallel(read, snapshot.manifests):
        found.append(attempt)
        said += [] if pending.task_count is None else [pending.task_count]
        rows = None if rows is None or pending.rows is None else rows + pending.rows
        gone += [file.key for file in pending.files if file.upload_id not in open_ids]
        open_ids.difference_update(file.upload_id for file in pending.files)
    _refuse_two_attempts(found)
    if gone:
        raise JobRefusedError(
            f"{many(len(gone), 'upload')} that the manifests name {_are(len(gone))} gone, so the"
            f" commit would end in an abort: {some(gone)}",
            code="UPLOAD_GONE",
        )
    return Countable(
        attempts=tuple(sorted(found, key=lambda one: one.task_id)),
        files=sum(one.files for one in found),
        bytes=sum(one.bytes for one in found),
        rows=rows,
        unfinished=len(open_ids),
        task_count=max(said, default=None),
    )


def refuse_incomplete(snapshot: JobSnapshot, countable: Countable, tasks: int | None) -> None:
    """Raise `JobRefusedError` if tasks may be missing, whose rows would be lost in silence.

    ``UNFINISHED`` if uploads are open that no manifest names; ``TASKS_UNKNOWN`` if nobody says how
    many tasks there are, neither a manifest nor the caller by ``tasks``; ``TASKS_MISSING`` if
    there are not so many.
    """
    _refuse_unfinished(snapshot, countable)
    job = snapshot.job_id
    known = [count for count in (tasks, countable.task_count) if count is not None]
    if not known:
        raise JobRefusedError(
            f"job {job} has manifests of {many(countable.tasks, 'task')}, and nobody says of how"
            " many: a task that never began leaves no trace. If they are all, say so with --tasks"
            f" {countable.tasks}; if you know that the others had no rows, or can do without"
            " them, with --partial",
            code="TASKS_UNKNOWN",
        )
    if countable.tasks != max(known):
        raise JobRefusedError(
            f"job {job} has manifests of {many(countable.tasks, 'task')}, not {max(known)}: the"
            " others had no rows, or never ran, and nothing in S3 tells which. If you know that"
            " they had none, or can do without them, add --partial",
            code="TASKS_MISSING",
        )


def _refuse_unfinished(snapshot: JobSnapshot, countable: Countable) -> None:
    count = countable.unfinished
    if count:
        raise JobRefusedError(
            f"{many(count, 'open upload')} of job {snapshot.job_id} {_are(count)} in no"
            " manifest: of tasks that are not done, or of attempts that died. If every task is"
            " done, add --partial, and they are aborted",
            code="UNFINISHED",
        )


def _refuse_two_attempts(attempts: list[CountedAttempt]) -> None:
    counted: dict[str, set[str]] = {}
    for one in attempts:  # an attempt has a manifest in each place where it has files
        counted.setdefault(one.task_id, set()).add(one.attempt_id)
    twice = [task for task, found in counted.items() if len(found) > 1]
    if twice:
        raise JobRefusedError(
            f"{many(len(twice), 'task has', 'tasks have')} two manifests, and only the driver"
            f" knows which counts: {some(twice)}",
            code="TWO_ATTEMPTS",
        )


def _refuse_without_job_json(snapshot: JobSnapshot) -> None:
    kept = snapshot.record.job_sha256 if snapshot.record is not None else None
    if snapshot.spec is not None and kept in {None, snapshot.spec.sha256}:
        return
    why = next((one for one in snapshot.problems if one.startswith(JOB_FILE)), "")
    raise JobRefusedError(
        f"job {snapshot.job_id}: {why or 'job.json is gone, or not what it was'}. A"
        " commit would end in an abort: bring it back as it was, or give the job up: s3commit abort"
        f" {snapshot.name}",
        code=JOB_CHANGED,
    )


def _read_manifest(
    session: Session, snapshot: JobSnapshot, key: str
) -> tuple[CountedAttempt, PendingSet]:
    directory = snapshot.directory
    name = key[len(directory.prefix) :]
    stored = session.store.get(directory.bucket, key, max_bytes=MAX_MANIFEST_BYTES)
    pending = decode_manifest(directory, name, stored.body)
    attempt = CountedAttempt(
        task_id=pending.task_id,
        attempt_id=pending.attempt_id,
        manifest=name,
        sha256=digest(stored.body),
        files=len(pending.files),
        bytes=pending.bytes,
    )
    return attempt, pending


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
