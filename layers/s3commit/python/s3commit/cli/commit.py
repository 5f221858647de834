"""``s3commit commit``."""

import shlex
from collections import Counter
from dataclasses import dataclass, field
from functools import partial

import click

from s3commit.cli.job_facts import (
    JobFacts,
    locate,
    own_uploads,
    read_job,
    read_manifest,
    read_manifests,
    refuse_second_request,
    unreadable,
)
from s3commit.cli.options import (
    NamedJob,
    dry_run_option,
    job_options,
    state_machine_option,
    with_session,
)
from s3commit.cli.others import doubt_of, others_since, told
from s3commit.cli.render import fields, some
from s3commit.cli.restart import report, start_another_execution
from s3commit.cli.session import Session
from s3commit.core.documents.job_json import JOB_CHANGED
from s3commit.core.documents.pendingset import PendingSet
from s3commit.core.documents.request_json import CommitRequest, CountedAttempt
from s3commit.core.formats.layout import JOB_FILE, partition_of
from s3commit.core.formats.strict_json import digest
from s3commit.core.model.amounts import amount, many
from s3commit.core.model.destination import Conflict
from s3commit.core.model.errors import NOT_READABLE, JobRefusedError, PreconditionError
from s3commit.core.model.limits import TURN_DAYS
from s3commit.core.model.moments import seconds
from s3commit.core.model.states import JobState
from s3commit.writer.requests import Patience, request_commit

TIMEOUT = 60.0  # seconds to get the request through


@click.command()
@job_options
@state_machine_option
@click.option(
    "--tasks",
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of the job's tasks that have files, if its manifests do not record it.",
)
@click.option(
    "--partial",
    is_flag=True,
    help="Commit even if tasks may be missing. Their files are not committed.",
)
@click.option(
    "--after-others",
    is_flag=True,
    help="Commit even if other jobs were committed there since the job began.",
)
@dry_run_option
@with_session
def commit(
    session: Session,
    *,
    job: NamedJob,
    machine: str | None,
    tasks: int | None,
    partial: bool,
    after_others: bool,
    dry_run: bool,
) -> None:
    """Finish a job whose driver or execution died.

    Writes the commit request in place of the driver. Every manifest in the job directory counts.
    JOB is the s3:// URI of a job directory, or a job id, or its first 8 digits or more. Make sure
    first that no task of the job is still running.

    The command checks every manifest against the open uploads. It refuses (exit 3) and changes
    nothing if a task has two manifests, or if tasks may be missing: an open upload is in no
    manifest, there are fewer tasks than the manifests or --tasks say, or these differ. Spark does
    not tell its Python tasks how many they are: look up the number in Spark's UI or event log. A
    task without rows leaves no manifest.

    Names the jobs that were committed at the destination, or at a table above, since this one
    began: one of them may be its second run. If one of them replaced files where this one has some,
    or if this one is an overwrite, which would remove what they appended there, it refuses without
    --after-others. An overwrite takes its place by the end of its last task: if an overwrite of the
    same place that was requested later is committed, this one ends ABORTED with OVERTAKEN.

    If the commit was requested before and its execution failed (the ledger has its name), starts
    another execution, which continues the commit and frees the job's destination. An overwrite
    that is not decided then also removes what was appended since its request: look at `s3commit
    log DESTINATION` first; `s3commit abort JOB` aborts it. Refused (exit 3) while an execution is
    running.
    """
    found = read_job(session, *locate(session, job))
    stands = found.request_stands and found.requested == "commit"
    if found.result is None and found.ledger and stands:
        why_not = start_another_execution(session, found, machine, dry_run=dry_run)
        if why_not:
            raise PreconditionError(why_not, code="OTHER_REQUEST")
        spec, undecided = found.spec, found.state in {JobState.OPEN, JobState.SEALED}
        if dry_run and undecided and spec and spec.conflict is Conflict.REPLACE and not spec.undoes:
            typed = shlex.quote(found.directory.destination.uri)
            session.out.note(
                "an overwrite also removes what was appended since its request; see: s3commit log"
                f" {typed}; to abort it: s3commit abort {found.name}"
            )
        return
    refuse_second_request(found)
    counted = count_everything(session, found)
    refuse_wrong_number(found, counted, tasks)
    if not partial:
        refuse_incomplete(found, counted, tasks)
    removes = found.spec is not None and found.spec.conflict is Conflict.REPLACE
    now, ended = session.environment.now(), counted.ended_at
    if removes and ended and seconds(ended, now) > TURN_DAYS * 86_400:
        raise refusal(
            found,
            f"its last task ended more than {TURN_DAYS} days ago, and it would end in an abort: the"
            " pipeline no longer knows what was committed there since. Write the data again",
            "OVERTAKEN",
        )
    others = others_since(session, found)
    if found.spec and others and not after_others:
        doubt = doubt_of(session, found.spec, counted.partitions, others)
        if doubt:
            raise refusal(found, f"{doubt}. If that is right, add --after-others", "OTHERS_SINCE")
    if others:
        session.out.note(told(others))
    if not dry_run:
        # By name and digest: what was looked at is what is committed, or the job is refused.
        sha256 = found.spec.sha256 if found.spec is not None else ""
        attempts = tuple(counted.attempts)
        request = CommitRequest(found.job_id, attempts, job_sha256=sha256, put_at=ended)
        patience = Patience(session.environment, TIMEOUT)
        if not request_commit(session.store, found.directory, request, patience):
            why = "the sweep requested its abort first, so it will not be committed"
            line = f"job {found.job_id}: {why}; see: s3commit show {found.name}"
            raise JobRefusedError(line, code="ABORT_REQUESTED")
    content = amount(counted.files, counted.bytes, counted.rows)
    manifests = many(len(counted.attempts), "manifest")
    requested = "would request" if dry_run else "requested"
    line = f"{requested} the commit of job {found.job_id}, {manifests} with {content}"
    facts = fields(counted, "tasks", "task_count", "files", "bytes", "rows", "unfinished_uploads")
    facts |= {"action": "commit", "manifests": len(counted.attempts)}
    facts["others"] = [other.header.job_id for other in others]
    report(session, found, line, written=not dry_run, dryRun=dry_run, **facts)
    if counted.unfinished_uploads:
        uploads = many(counted.unfinished_uploads, "open upload")
        session.out.note(f"{uploads} in no manifest: to be aborted at the end")
    if counted.task_count is not None and counted.task_count > counted.tasks:
        missing = many(counted.task_count - counted.tasks, "task has", "tasks have")
        session.out.note(f"{missing} no manifest: their files are not committed")


@dataclass
class Counted:
    """The files that a commit of every manifest would make visible, without unfinished uploads.

    ``tasks`` have a manifest; ``task_count`` is how many there should be, if a manifest says it.
    ``ended_at`` is when S3 has got the last manifest; ``partitions`` are relative.
    """

    attempts: list[CountedAttempt] = field(default_factory=list)
    tasks: int = 0
    task_count: int | None = None
    files: int = 0
    bytes: int = 0
    rows: int | None = 0
    unfinished_uploads: int = 0
    ended_at: str = ""
    partitions: set[str] = field(default_factory=set)

    def add(self, attempt: CountedAttempt, pending: PendingSet, put_at: str) -> None:
        """Count an attempt."""
        self.attempts.append(attempt)
        self.ended_at = max(self.ended_at, put_at)
        self.files += attempt.files
        self.bytes += attempt.bytes
        self.rows = None if self.rows is None or pending.rows is None else self.rows + pending.rows
        if pending.task_count is not None:
            self.task_count = max(pending.task_count, self.task_count or 0)


def refusal(job: JobFacts, why: str, code: str) -> JobRefusedError:
    """The error of a job that can't be committed, or not yet; it can always be aborted."""
    line = f"job {job.job_id}: {why}. To abort the job: s3commit abort {job.name}"
    return JobRefusedError(line, code=code)


def count_everything(session: Session, job: JobFacts) -> Counted:
    """Judge every manifest as the pipeline would, against the uploads that are open.

    Raises `JobRefusedError` for what would only end in an abort: ``NO_MANIFEST``,
    ``TWO_ATTEMPTS``, ``JOB_CHANGED``, ``UPLOAD_GONE``, or a manifest that is not acceptable.
    """
    kept = job.record.job_sha256 if job.record is not None else None
    if job.spec is None or kept not in {None, job.spec.sha256}:
        why = "_job.json was deleted or changed. A commit would end in an abort"
        cure = "restore it as it was"
        if unread := job.problems.get(JOB_FILE):
            why = f"{unread}. Unless the pipeline can read it, a commit would end in an abort"
            cure += ", or run the command with the right to read it"
        why = f"{why}: {cure}"
        raise refusal(job, why, JOB_CHANGED)
    manifests, _ = read_manifests(session, job)
    if not manifests:
        why = "it has no manifest: none of its tasks are done, so there is nothing to commit"
        raise refusal(job, why, "NO_MANIFEST")
    open_ids = {upload.upload_id for upload in own_uploads(session, job)[0]}
    counted, gone = Counted(), list[str]()
    for attempt, pending, put_at in session.parallel(partial(_read, session, job), manifests):
        counted.add(attempt, pending, put_at)
        keys = (file.key[len(job.directory.destination.prefix) :] for file in pending.files)
        counted.partitions.update(map(partition_of, keys))
        gone += [file.key for file in pending.files if file.upload_id not in open_ids]
        open_ids.difference_update(file.upload_id for file in pending.files)
    counted.attempts.sort(key=lambda one: one.task_id)
    counted.unfinished_uploads = len(open_ids)
    attempts = Counter(one.task_id for one in counted.attempts)
    counted.tasks = len(attempts)
    if twice := [task for task, count in attempts.items() if count > 1]:
        tasks = many(len(twice), "task has", "tasks have")
        why = f"{tasks} two manifests, and only the driver knows which one counts: {some(twice)}"
        raise refusal(job, why, "TWO_ATTEMPTS")
    if gone:
        uploads = many(len(gone), "upload is", "uploads are")
        why = f"{uploads} missing that the manifests name, so a commit would end in an abort"
        raise refusal(job, f"{why}: {some(gone)}", "UPLOAD_GONE")
    return counted


def refuse_wrong_number(job: JobFacts, counted: Counted, tasks: int | None) -> None:
    """Raise `JobRefusedError` (``WRONG_TASKS``) if ``tasks`` contradicts the manifests."""
    recorded = counted.task_count
    if tasks is not None and tasks != (recorded or max(tasks, counted.tasks)):
        has = many(recorded or counted.tasks, "task")
        says = f"its manifests say that it has {has}" if recorded else f"{has} have manifests"
        line = f"job {job.job_id}: --tasks is {tasks}, but {says}: correct --tasks, or leave it out"
        raise JobRefusedError(line, code="WRONG_TASKS")


def refuse_incomplete(job: JobFacts, counted: Counted, tasks: int | None) -> None:
    """Raise `JobRefusedError` if tasks may be missing, whose rows would be lost in silence.

    ``TASKS_MISSING`` if there are fewer than a manifest or the caller (``tasks``) says;
    ``UNFINISHED`` if uploads are open that no manifest names; ``TASKS_UNKNOWN`` if neither
    says how many tasks there are.
    """
    has = f"there are manifests of {many(counted.tasks, 'task')}"
    expected = counted.task_count or tasks or 0
    is_short = expected > 0 and counted.tasks != expected
    uploads = many(counted.unfinished_uploads, "open upload is", "open uploads are")
    left = f"{uploads} in no manifest: of tasks that are not done, or of attempts that died"
    if counted.unfinished_uploads and is_short:
        raise refusal(
            job,
            f"{has}, not {expected}, and {left}. To commit without the other tasks, and abort the"
            " uploads, add --partial",
            "TASKS_MISSING",
        )
    if counted.unfinished_uploads:
        raise refusal(
            job, f"{left}. If every task is done, add --partial, and they are aborted", "UNFINISHED"
        )
    if not expected:
        raise refusal(
            job,
            f"{has}, and the number of tasks is not recorded: a task that never began leaves no"
            f" trace. If these are all, add --tasks {counted.tasks}; if the others had no rows, or"
            " you can do without them, add --partial",
            "TASKS_UNKNOWN",
        )
    if is_short:
        raise refusal(
            job,
            f"{has}, not {expected}: the others had no rows, or never ran, and S3 does not show"
            " which. If you know that they had none, or can do without them, add --partial",
            "TASKS_MISSING",
        )


def _read(session: Session, job: JobFacts, key: str) -> tuple[CountedAttempt, PendingSet, str]:
    name = key[len(job.directory.prefix) :]
    try:
        pending, stored = read_manifest(session, job, key)
    except NOT_READABLE as error:
        raise refusal(job, unreadable(name, error), error.code) from error
    task, attempt = pending.task_id, pending.attempt_id
    sha256, files = digest(stored.body), len(pending.files)
    counted = CountedAttempt(task, attempt, name, sha256, files, pending.bytes)
    return counted, pending, stored.facts.modified
