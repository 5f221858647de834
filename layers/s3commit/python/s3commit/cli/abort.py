"""``s3commit abort``."""

import click

from s3commit.cli.job_facts import REQUESTED, locate, read_job, refuse_second_request
from s3commit.cli.options import (
    NamedJob,
    dry_run_option,
    job_options,
    state_machine_option,
    with_session,
)
from s3commit.cli.restart import report, start_another_execution
from s3commit.cli.session import Session
from s3commit.core.formats.layout import REQUEST_FILE
from s3commit.core.jobs.lost_lists import GOES_BY_LISTS, visible_files
from s3commit.core.model.errors import PreconditionError
from s3commit.core.model.states import JobState
from s3commit.writer.requests import request_abort
from s3commit.writer.who import this_program

_GIVEN_UP = {JobState.OPEN, REQUESTED, JobState.SEALED}  # requested and not decided


@click.command()
@job_options
@state_machine_option
@click.option(
    "--reason",
    default="aborted by `s3commit abort`",
    show_default=True,
    help="Recorded in the job's result.",
)
@click.option(
    "--lists-lost",
    is_flag=True,
    help="Abandon a decided job too, if a list that the pipeline keeps of it is lost.",
)
@dry_run_option
@with_session
def abort(
    session: Session,
    *,
    job: NamedJob,
    machine: str | None,
    reason: str,
    lists_lost: bool,
    dry_run: bool,
) -> None:
    """Abort an undecided job: none of its files becomes visible.

    Writes the abort request in place of the job's driver. A request is written once and never
    changes, so a driver that is still alive cannot commit any more. JOB is a job id, its
    first 8 digits or more, or the s3:// URI of a job directory.

    If the commit was requested before, starts an execution that aborts the job, unless it is
    already decided; its result has your name and the reason. Refused (exit 3) once it is decided.
    If the abort was requested before and its execution failed (the ledger has its name), starts
    another execution, which continues the abort.

    With --lists-lost a decided job is abandoned, too, but only if its plan or its list of what it
    replaces can't be read below _s3commit/, and the plan can't be made again from its manifests. It
    ends ROLLED_BACK, and its error says which of its files are visible; without a plan none is
    deleted. One that is being published, and has all its files visible, ends COMMITTED.
    """
    found = read_job(session, *locate(session, job))
    requested = found.result is None and found.request_stands and found.requested == "abort"
    why_not = ""
    if requested and found.ledger:
        why_not = start_another_execution(session, found, machine, dry_run=dry_run)
        if not why_not:
            return
    is_known = requested and REQUEST_FILE not in found.problems
    if is_known or found.state in {JobState.ABORTED, JobState.ROLLED_BACK}:
        line = f"nothing to do: the abort was already requested, and the job is {found.state}"
        report(session, found, why_not or line, action="abort")
        return
    record = found.record
    is_decided = lists_lost and record is not None and record.state in GOES_BY_LISTS
    if is_decided and record is not None:
        seen = sum(1 for _ in visible_files(session.s3, record))
        session.out.note(f"visible now, by their names: {seen} of its {record.planned.files} files")
    if is_decided or (found.request_stands and found.state in _GIVEN_UP):
        who = this_program()
        why_not = start_another_execution(
            session,
            found,
            machine,
            dry_run=dry_run,
            gives_up=f"{who.user}@{who.host}: {reason}",
            lists_lost=is_decided,
        )
        if why_not:
            raise PreconditionError(why_not, code="OTHER_REQUEST")
        return
    refuse_second_request(found)
    if not dry_run:
        answer = request_abort(session.store, found.directory, reason)
        if not answer.accepted:
            raise PreconditionError(answer.message, code="OTHER_REQUEST")
    line = f"{'would request' if dry_run else 'requested'} the abort of job {found.job_id}"
    report(session, found, line, action="abort", written=not dry_run, dryRun=dry_run)
