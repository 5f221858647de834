"""``s3commit undo``."""

import shlex
from collections.abc import Callable
from functools import partial
from typing import Any

import click

from s3commit.cli.job_facts import kind_of, locate
from s3commit.cli.options import NamedJob, dry_run_option, job_options, label_option, with_session
from s3commit.cli.session import Session
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.amounts import amount, many
from s3commit.core.model.errors import JobRefusedError
from s3commit.core.model.states import JobState
from s3commit.core.undo.back_to import plan_way_back
from s3commit.core.undo.job import PlannedUndo, plan_undo
from s3commit.writer.commit_result import CommitResult
from s3commit.writer.options import make_options
from s3commit.writer.undo import carry_out, take_back

_COLUMNS = "endedAt, kind, removed, restored, jobId as JOB"


@click.command()
@job_options
@click.option(
    "--leave-removed",
    is_flag=True,
    help="Remove the job's files, without restoring the files that it replaced.",
)
@click.option(
    "--back-to",
    is_flag=True,
    help="Keep JOB, and undo what came after it at its destination, and inside, newest first.",
)
@click.option("--note", help="A text for people, up to 500 characters.")
@label_option("A label of the undo; may be repeated.")
@dry_run_option
@with_session
def undo(
    session: Session,
    *,
    job: NamedJob,
    leave_removed: bool,
    back_to: bool,
    note: str | None,
    labels: tuple[str, ...],
    dry_run: bool,
) -> None:
    """Undo a committed job: remove its files, restore what it replaced.

    JOB is a job id, its first 8 digits or more, or the s3:// URI of a job directory. The undo is a
    job of its own, with the same guarantee: after its decision it happens completely, or not at
    all. Its id is printed; to undo the undo, undo that job. The job's idempotency key is free
    again, for the corrected data.

    Files that a later job has replaced stay as they are. Files that the job itself replaced come
    back from the versions that the bucket keeps. Refused (exit 3), and nothing is changed, if a
    file is not what the job wrote and no job says why, if a version is missing, or if a later job
    has written over what would come back.

    With --back-to the table then holds what it held right after JOB, as far as jobs changed
    it: files of other writers stay, and those deleted by hand stay deleted. All undos are planned
    and printed first. If one of them would be refused, nothing is changed. If a job is committed
    before the last undo, the rest is not done. The same command continues, also after a crash.
    """
    if back_to and leave_removed:
        raise click.UsageError("--back-to restores what was there: leave out --leave-removed")
    directory, table, _ = locate(session, job)
    record = session.ledger(table).job(directory.ref) if table else None
    needs = "--back-to needs" if back_to else "an undo needs"
    if record is not None and record.state is not JobState.COMMITTED:
        raise JobRefusedError(
            f"job {directory.job_id} is {record.state}; {needs} a committed job",
            code="NOT_COMMITTED",
        )
    named = dict(label.split("=", 1) for label in labels)
    if len(named) < len(labels):
        raise click.UsageError("two labels have one name")
    options = make_options(directory.destination.uri, check_names=False, note=note, labels=named)
    carry = partial(carry_out, session.s3, options=options, environment=session.environment)
    if back_to:
        _back_to(session, directory, None if dry_run else carry)
        return
    planned = plan_undo(session.s3, directory, leave_removed=leave_removed)
    _print(session, planned, None if dry_run else carry(planned).job_id)


def _back_to(
    session: Session, directory: JobDirectory, carry: Callable[[PlannedUndo], CommitResult] | None
) -> None:
    place, out = directory.destination.uri, session.out
    way = plan_way_back(session.s3, directory)
    undos = {
        one.directory: _document(planned, None)
        | {"endedAt": one.put_at, "kind": kind_of(None, one.header)}
        for one, planned in way.undos
    }
    facts = {"jobId": directory.job_id, "destination": place, "dryRun": carry is None}
    if not out.json:
        rows = [
            one | {"at": "" if one["destination"] == place else one["destination"]}
            for one in undos.values()
        ]
        out.table({"undos": rows}, "undos", _COLUMNS, "at")
    verb = "would undo" if carry is None else "undoing"
    to = f"{verb} {many(len(undos), 'job')}: {place} is then as right after job"
    out.note(
        f"{to if undos else f'nothing to undo at {place}: no job came after'} {directory.job_id}"
    )
    try:
        for one, result in take_back(session.s3, way, carry) if carry else ():
            undos[one]["undoId"] = result.job_id
            session.begun = "the undos that are done stay"
            out.note(f"undid job {one.job_id} by job {result.job_id}")
    finally:
        if out.json:
            out.table({**facts, "undos": [*undos.values()]}, "undos", "")


def _print(session: Session, planned: PlannedUndo, undo_id: str | None) -> None:
    found, job = planned.found, planned.directory
    document = {**_document(planned, undo_id), "dryRun": undo_id is None}
    verb = "would undo" if undo_id is None else "undid"
    gone = amount(*document["removed"].values())
    did, more = f"{verb} job {job.job_id} at {job.destination.uri}: {gone} removed", []
    if planned.restores:
        back = amount(*document["restored"].values())
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


def _document(planned: PlannedUndo, undo_id: str | None) -> dict[str, Any]:
    found, job, backs = planned.found, planned.directory, [file for file, _ in planned.restores]
    removed, size = (sum(one.length for one in files) for files in (found.removes, backs))
    rows = None if None in (known := [one.rows for one in backs]) else sum(filter(None, known))
    gone = None if found.replaced else found.header.rows
    return {
        "jobId": job.job_id,
        "destination": job.destination.uri,
        "undoId": undo_id,
        "removed": {"files": len(found.removes), "bytes": removed, "rows": gone},
        "restored": {"files": len(backs), "bytes": size, "rows": rows},
        "replacedFiles": found.replaced,
        "idempotencyKey": found.header.idempotency_key,
    }
