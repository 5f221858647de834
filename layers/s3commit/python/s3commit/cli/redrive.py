"""``s3commit redrive``."""

import json
from typing import Any

import click

from s3commit.aws import env
from s3commit.cli.alarms import inboxes, read_queue
from s3commit.cli.deployment import Deployment
from s3commit.cli.options import dry_run_option, name_option, with_session
from s3commit.cli.render import CommandError
from s3commit.cli.session import Session
from s3commit.core.model.errors import AccessError, NotFoundError, TransientError


@click.command()
@click.argument("queues", nargs=-1, type=click.Choice(env.INBOXES, case_sensitive=False))
@name_option
@dry_run_option
@with_session
def redrive(session: Session, *, queues: tuple[str, ...], dry_run: bool) -> None:
    """Move dead letters back to all queues, or to these QUEUES.

    A message that fails repeatedly is put aside; nothing is lost for 14 days. Repeating it is
    harmless. First the queue's function is called without a message: while that fails, or its event
    source is disabled, nothing is moved. A message that fails for a reason of its own comes back:
    the function's log says why. Needs cloudformation:DescribeStacks, lambda:GetEventSourceMapping,
    lambda:InvokeFunction (otherwise the function is not tried), sqs:GetQueueAttributes and
    sqs:StartMessageMoveTask, which needs sqs:ReceiveMessage, sqs:DeleteMessage and sqs:SendMessage.
    """
    around = session.deployment
    if not inboxes(around):
        raise NotFoundError(
            f"no stack {around.stack(env.PIPELINE_STACK)} in {around.region} names its dead-letter"
            " queues: name another one with --name, or deploy again"
        )
    if lacking := [one for one in queues if one not in inboxes(around)]:
        raise NotFoundError(
            f"{around.stack(env.PIPELINE_STACK)} has no queue {', '.join(lacking)}; it has"
            f" {', '.join(inboxes(around))} (Catalogs is there if the parameter catalogs is set)"
        )
    if table := around.storage.get(env.TABLE_OUTPUT):
        session.ledger(table)  # into a restored one all would fail again
    rows = [_move(around, one, dry_run) for one in inboxes(around) if one in (queues or [one])]
    document = {"dryRun": dry_run, "queues": rows}
    session.out.table(document, "queues", "queue, deadLetters, moved, why as WHY NOT")
    if failing := [row["queue"] for row in rows if row["why"]]:
        raise CommandError(
            f"not moved: {', '.join(failing)}. Fix the cause, then repeat the command", 3
        )


def _move(around: Deployment, inbox: str, dry_run: bool) -> dict[str, Any]:
    """Give them back to the queue they came from.

    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_StartMessageMoveTask.html
    """
    count, arn = read_queue(around, inbox)
    why = _cause(around, inbox) if count else ""
    moved = count > 0 and not why and not dry_run
    if moved:
        doing = f"moving the dead letters of {inbox}"
        around.ask(doing, "sqs", "start_message_move_task", SourceArn=arn)
    return {"queue": inbox, "deadLetters": count, "moved": moved, "why": why or None}


def _cause(around: Deployment, inbox: str) -> str:
    """Why its messages would fail again, as far as is known without trying one."""
    uuid, doing = around.pipeline[env.MAPPING_OUTPUTS[inbox]], f"looking at the queue {inbox}"
    mapping = around.ask(doing, "lambda", "get_event_source_mapping", UUID=uuid)
    if mapping["State"].startswith("Disabl"):
        return "the deployment is paused: s3commit resume"
    arn = mapping["FunctionArn"]
    try:
        empty = json.dumps({"Records": []})
        answer = around.ask(f"calling {arn}", "lambda", "invoke", FunctionName=arn, Payload=empty)
    except AccessError:  # then it is not tried
        return ""
    except TransientError as error:
        return error.message
    if "FunctionError" not in answer:
        return ""
    failed = json.load(answer["Payload"])
    return f"its function fails: {failed.get('errorType')}: {failed.get('errorMessage')}"
