"""Continuing a job whose execution has died: another execution takes it over.

That is safe at any time and any number of times: the new one raises the job's generation, so the
ledger refuses whatever an older one still tries, and it continues where ledger and S3 say.
"""

from typing import Any

from s3commit.aws import env
from s3commit.aws.executions import machine_of
from s3commit.cli.job_facts import REQUESTED, JobFacts
from s3commit.cli.session import Session
from s3commit.core.formats.layout import REQUEST_FILE
from s3commit.core.jobs.rounds import start_execution
from s3commit.core.model.states import JobState
from s3commit.core.ports.executions import Reason


def start_another_execution(
    session: Session,
    job: JobFacts,
    machine: str | None,
    *,
    dry_run: bool,
    gives_up: str = "",
    lists_lost: bool = False,
) -> str:
    """Start another execution of a job that was requested and has no result, and print it.

    One that ``gives_up`` aborts the job for that reason, unless it is decided, with ``lists_lost``
    a decided one; also one on which an execution works. Returns why none was started, in a line: an
    execution runs, or was started a moment ago, or the state machine (``machine`` is its ARN) is
    not known. Empty if one was started.
    """
    last = session.describe(job.execution)
    before = f"job {job.job_id}: {job.asked}"
    see = f"see: s3commit show {job.name}"
    if last is not None and last.is_running and not gives_up:
        return f"{before}, and its execution, which is {last.status}, decides; {see}"
    machine = machine or machine_of(job.execution) or session.machine(job.table)
    if machine is None:
        return (
            f"{before}, and decides; {see}. If no execution works on it, start one: name the state"
            f" machine with --state-machine or {env.STATE_MACHINE}, or the deployment with --name"
        )
    failed = last.failure if last else None
    code = f", {failed.code}" if failed else ""
    one = f"the last one is {last.status}{code}" if last else "the first that is known"
    does = f"continues its {job.requested}"
    if REQUEST_FILE in job.problems and job.state in {JobState.OPEN, REQUESTED}:
        does = "does what the request says, which can't be read here, or else aborts the job"
    if gives_up:
        does = "aborts it, unless it is already decided"
    if lists_lost:
        does = "abandons it if a list of it is lost, and else continues it"
    action = "abort" if gives_up else job.requested
    what = f"an execution of job {job.job_id}, which {does} ({one})"
    if dry_run:
        report(session, job, f"would start {what}", action=action, dryRun=True)
        return ""
    now, executions = session.clock.now(), session.executions(machine)
    started = start_execution(executions, job.directory, now, Reason(gives_up, lists_lost))
    if started is None:
        return f"{before}, and an execution was started for it a moment ago; {see}"
    report(session, job, f"started {what}: {started}", action=action, started=started)
    if failed and not gives_up:
        session.out.note(f"it fails again unless the cause was removed; {see}")
    return ""


def report(session: Session, job: JobFacts, line: str, **facts: Any) -> None:
    """Print the outcome of a verb that requests a job's end; ``facts`` are those of the verb."""
    document = {
        "jobId": job.job_id,
        "state": job.state,
        "request": f"s3://{job.directory.bucket}/{job.directory.request}",
        "written": False,
        "dryRun": False,
        "started": None,
        "problems": [*job.problems.values()],
        **facts,
    }
    session.out.line(document, line)
    session.out.note(*job.problems.values())
    if document["written"] or document["started"]:
        session.out.note(f"follow it: s3commit show --follow {job.name}")
