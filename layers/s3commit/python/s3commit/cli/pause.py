"""``s3commit pause`` and ``s3commit resume``: what calls the functions of a deployment."""

from __future__ import annotations

from typing import Any

import click

from s3commit.aws import env
from s3commit.cli.options import with_session
from s3commit.cli.session import Session
from s3commit.cli.surroundings import Surroundings, surroundings
from s3commit.core.model.errors import NotFoundError

_name_option = click.option(
    "--name", metavar="NAME", help="The deployment's parameter name, if it has one."
)


@click.command()
@_name_option
@with_session
def pause(session: Session, *, name: str | None) -> None:
    """Start nothing more: neither jobs nor sweeps.

    Disables the event sources of the deployment's two queues and the rule of its sweep, in a
    minute or so. Executions that run go on. Requests wait in their queue, for four days. The alarm
    SweepsMissing rings until `s3commit resume`. Needs cloudformation:DescribeStacks,
    lambda:UpdateEventSourceMapping and events:DisableRule.
    """
    session.out.facts(switch(surroundings(name=name), on=False))


@click.command()
@_name_option
@with_session
def resume(session: Session, *, name: str | None) -> None:
    """Undo `s3commit pause`: what has waited is taken up now.

    After more than four days the next sweep finds the jobs whose messages are gone, at destinations
    that the ledger knows. Needs the rights of `s3commit pause`, with events:EnableRule.
    """
    session.out.facts(switch(surroundings(name=name), on=True))


def switch(around: Surroundings, *, on: bool) -> dict[str, Any]:
    """Switch what calls the functions on or off; repeating it is harmless.

    Raises `NotFoundError` if the stack is not there, or is too old to say what that is.
    """
    stack, outputs = around.stack(env.PIPELINE_STACK), around.pipeline or {}
    if env.SWEEP_RULE_OUTPUT not in outputs:
        raise NotFoundError(
            f"no stack {stack} in {around.region} says what calls its functions: name another one"
            " with --name, or deploy again"
        )
    doing = f"{'resuming' if on else 'pausing'} {stack}"
    for output in env.MAPPING_OUTPUTS.values():
        update = {"UUID": outputs[output], "Enabled": on}
        around.ask(doing, "lambda", "update_event_source_mapping", **update)
    rule = {"Name": outputs[env.SWEEP_RULE_OUTPUT]}
    around.ask(doing, "events", "enable_rule" if on else "disable_rule", **rule)
    return {"deployment": stack, "state": "working" if on else "paused"}
