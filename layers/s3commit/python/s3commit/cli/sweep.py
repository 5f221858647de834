"""``s3commit sweep``."""

from dataclasses import replace

import click

from s3commit.aws import env
from s3commit.aws.failures import answered
from s3commit.cli.options import (
    age_option,
    dry_run_option,
    state_machine_option,
    table_option,
    with_session,
)
from s3commit.cli.render import CommandError, coded, cures
from s3commit.cli.session import Session
from s3commit.core.model.amounts import many
from s3commit.core.model.errors import AccessError, TransientError
from s3commit.core.sweep.actions import encode_report
from s3commit.core.sweep.questions import run_sweep
from s3commit.core.sweep.sweep import Limits, Sweep


@click.command()
@table_option
@state_machine_option
@age_option("--stuck-after", "stuck", about="In place of stuckMinutes, as deployed.")
@age_option("--abandoned-after", "abandoned", about="In place of abandonedHours, as deployed.")
@age_option("--retention", about="In place of retentionDays, as deployed.")
@dry_run_option
@with_session
def sweep(session: Session, *, machine: str | None, dry_run: bool, **limits: int | None) -> None:
    """Run the scheduled sweep now.

    Continues stuck jobs, aborts dead ones, and deletes documents that are past their time, with
    the rights of the caller and the limits of the deployment. Never aborts a job of which a task
    has ended lately.
    """
    table = session.table()
    machine = machine or session.machine(table)
    typed = {name: seconds for name, seconds in limits.items() if seconds is not None}
    given = session.parameters(table)
    if machine is None or (given is None and len(typed) < len(limits)):
        try:
            _ = session.deployment.storage
        except AccessError as error:
            if not answered(error):  # there are no credentials
                raise
        raise click.UsageError(
            "no stack has the limits and the state machine of the deployment with that table:"
            " give --stuck-after, --abandoned-after, --retention and --state-machine (the stack's"
            " output StateMachineArn), or name the deployment with --name"
        )
    chosen = replace(Limits.of({**env.SWEEP_LIMITS, **(given or {})}), **typed)
    report = run_sweep(
        Sweep(session.ports(table), session.executions(machine), chosen, dry_run=dry_run)
    )
    if dry_run:
        report.notes = [f"would be done: {note}" for note in report.notes]
    session.out.facts({"dryRun": dry_run, **encode_report(report)})
    if report.first is not None:
        line = f"the sweep had {many(report.failed, 'error')}: {report.failures[0]}"
        passes = isinstance(report.first, TransientError)
        helps = ["run it again"] if passes else cures(report.first)
        raise CommandError("; ".join([coded(line, report.first), *helps]), 1)
