"""``s3commit pause`` and ``s3commit resume``: what calls the functions of a deployment."""

from typing import Any

import click

from s3commit.aws import env
from s3commit.cli.deployment import Deployment
from s3commit.cli.options import name_option, with_session
from s3commit.cli.session import Session
from s3commit.core.model.errors import NotFoundError, S3CommitError


@click.command()
@name_option
@with_session
def pause(session: Session) -> None:
    """Stop starting jobs and sweeps.

    Disables the event sources of the deployment's two queues and the rule of its sweep, in a minute
    or so. Running executions continue. Requests wait in their queue, for four days. The alarms
    IngestBacklog, RequestBacklog and SweepsMissing fire in time, and `s3commit status` says that
    the deployment is paused, until `s3commit resume`. Needs cloudformation:DescribeStacks,
    lambda:UpdateEventSourceMapping and events:DisableRule.
    """
    session.out.facts(switch(session.deployment, on=False))


@click.command()
@name_option
@with_session
def resume(session: Session) -> None:
    """Undo `s3commit pause` and process the backlog.

    After more than four days the next sweep finds the jobs whose messages have expired, at
    destinations that the ledger knows. Needs the rights of `s3commit pause`, with
    events:EnableRule.
    """
    session.out.facts(switch(session.deployment, on=True))


def switch(around: Deployment, *, on: bool) -> dict[str, Any]:
    """Switch what calls the functions on or off; repeating it is harmless.

    One that fails stops no other. Raises `NotFoundError` if the stack is not there, or is too old
    to say what that is, and `S3CommitError` (``HALF_DONE``).
    """
    stack, outputs = around.stack(env.PIPELINE_STACK), around.pipeline
    if env.SWEEP_RULE_OUTPUT not in outputs:
        raise NotFoundError(
            f"no stack {stack} in {around.region} names the event sources of its functions: name"
            " another one with --name, or deploy again"
        )
    doing = f"{'resuming' if on else 'pausing'} {stack}"
    calls: list[tuple[str, str, str, dict[str, Any]]] = [
        (output, "lambda", "update_event_source_mapping", {"UUID": outputs[output], "Enabled": on})
        for output in (env.MAPPING_OUTPUTS[inbox] for inbox in env.PAUSED)
    ]
    name = {"Name": outputs[env.SWEEP_RULE_OUTPUT]}
    switching = "enable_rule" if on else "disable_rule"
    calls.append((env.SWEEP_RULE_OUTPUT, "events", switching, name))
    failed: dict[str, S3CommitError] = {}
    for output, service, operation, parameters in calls:
        try:
            around.ask(doing, service, operation, **parameters)
        except S3CommitError as error:
            failed[output] = error
    if len(failed) == len(calls):
        raise next(iter(failed.values()))
    if failed:  # not as an error that says that nothing was changed
        done = ", ".join(output for output, *_ in calls if output not in failed)
        raise S3CommitError(
            f"{next(iter(failed.values())).message}; switched {'on' if on else 'off'}: {done}; not"
            f" switched: {', '.join(failed)}. Repeat the command",
            code="HALF_DONE",
        )
    return {"deployment": stack, "state": "working" if on else "paused"}
