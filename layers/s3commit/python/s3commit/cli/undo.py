"""``s3commit undo``."""

import shlex

import click

from s3commit.cli.job_facts import locate
from s3commit.cli.options import NamedJob, dry_run_option, job_options, with_session
from s3commit.cli.session import Session
from s3commit.core.documents.result_json import JobResult
from s3commit.core.model.amounts import amount, many
from s3commit.core.model.errors import JobRefusedError
from s3commit.core.model.states import JobState
from s3commit.core.undo.job import PlannedUndo, plan_undo
from s3commit.writer.options import DEFAULT_COMMIT_TIMEOUT
from s3commit.writer.undo import carry_out


@click.command()
@job_options
@click.option(
    "--leave-removed",
    is_flag=True,
    help="Remove the job's files, without restoring the files that it replaced.",
)
@dry_run_option
@with_session
def undo(session: Session, *, job: NamedJob, leave_removed: bool, dry_run: bool) -> None:
    """Undo a committed job: remove its files and restore the files that it replaced.

    JOB is a job id, its first 8 digits or more, or the s3:// URI of a job directory. The undo is a
    job of its own, with the same guarantee: after its decision it happens completely, or not at
    all. Its id is printed; to undo the undo, undo that job. The job's idempotency key is free
    again, for the corrected data.

    Files that a later job has replaced stay as they are. Files that the job itself replaced come
    back from the versions that the bucket keeps. Refused (exit 3), and nothing is changed, if a
    file is not what the job wrote and no job says why, if a version is missing, or if a later job
    has written over what would come back.
    """
    directory, table, _ = locate(session, job)
    record = session.ledger(table).job(directory.ref) if table else None
    if record is not None and record.state is not JobState.COMMITTED:
        raise JobRefusedError(
            f"job {directory.job_id} is {record.state}; only a committed job can be undone",
            code="NOT_COMMITTED",
        )
    planned = plan_undo(session.s3, directory, leave_removed=leave_removed)
    result = None
    if not dry_run:
        result = carry_out(
            session.s3, planned, session.environment, commit_timeout=DEFAULT_COMMIT_TIMEOUT
        )
    _print(session, planned, result)


def _print(session: Session, planned: PlannedUndo, result: JobResult | None) -> None:
    found, job, undo_id = planned.found, planned.directory, result.job_id if result else None
    rows = None if found.replaced else found.header.rows
    removed = sum(one.length for one in found.removes)
    backs = [file for file, _ in planned.restores]
    back_rows = None if None in (known := [one.rows for one in backs]) else sum(filter(None, known))
    back_bytes = sum(one.length for one in backs)
    document = {
        "jobId": job.job_id,
        "destination": job.destination.uri,
        "undoId": undo_id,
        "removed": {"files": len(found.removes), "bytes": removed, "rows": rows},
        "restored": {"files": len(backs), "bytes": back_bytes, "rows": back_rows},
        "replacedFiles": found.replaced,
        "idempotencyKey": found.header.idempotency_key,
        "dryRun": undo_id is None,
    }
    verb = "would undo" if undo_id is None else "undid"
    gone = amount(len(found.removes), removed, rows)
    did, more = f"{verb} job {job.job_id} at {job.destination.uri}: {gone} removed", []
    if backs:
        back = amount(len(backs), back_bytes, back_rows)
        more.append(f"{'to be restored' if undo_id is None else 'restored'}: {back}")
    elif planned.leaves_removed and found.restores:
        left = many(len(found.restores), "file")
        more.append(f"not restored: {left} that it had replaced")
    if found.replaced:
        more.append(f"later jobs had already replaced {found.replaced} of its files")
    if found.header.idempotency_key:
        when = "becomes" if undo_id is None else "is"
        more.append(f"its idempotency key {when} free: the next job with it is committed")
    session.out.line(document, did, *more)
    if undo_id:
        typed = shlex.quote(job.destination.uri)
        session.out.note(f"to revert the undo: s3commit undo {undo_id} --destination {typed}")
