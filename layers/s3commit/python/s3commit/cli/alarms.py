"""A deployment's alarms, dead letters and pause: for `status`, `doctor` and the page."""

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from s3commit.aws import env, notifications
from s3commit.cli.deployment import Deployment, Finding, ok, skipped, to_do
from s3commit.cli.render import moment
from s3commit.cli.session import Session
from s3commit.core.model.errors import S3CommitError
from s3commit.core.model.moments import rfc3339

RUNBOOK = "docs/operations.md#runbook"
_MOST = 100  # alarms that ring, which is one request


def ringing(around: Deployment) -> dict[str, dict[str, str]]:
    """The alarms that ring, by their names in the runbook: ``description``, ``ringsSince``."""
    prefix = env.ALARM.format(around.stack(env.PIPELINE_STACK), "")
    asked: dict[str, Any] = {"AlarmNamePrefix": prefix, "StateValue": "ALARM", "MaxRecords": _MOST}
    found = around.ask("reading the alarms", "cloudwatch", "describe_alarms", **asked)
    return {
        one["AlarmName"].removeprefix(prefix): {
            "description": one.get("AlarmDescription", ""),
            "ringsSince": rfc3339(_since(one).astimezone(UTC)),
        }
        for one in found["MetricAlarms"]
        if one["StateValue"] == "ALARM"
    }


def _since(alarm: dict[str, Any]) -> datetime:
    """When its state changed for the last time.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_MetricAlarm.html
    """
    updated: datetime = alarm["StateUpdatedTimestamp"]  # also by another kind of evaluation
    transitioned: datetime = alarm.get("StateTransitionedTimestamp", updated)
    return transitioned


def read_queue(around: Deployment, inbox: str) -> tuple[int, str]:
    """How many messages the dead-letter queue of an inbox has, and its ARN."""
    asked = {
        "QueueUrl": _outputs(around)[env.DEAD_LETTERS_OUTPUTS[inbox]],
        "AttributeNames": ["ApproximateNumberOfMessages", "QueueArn"],
    }
    doing = f"counting the dead letters of {inbox}"
    found = around.ask(doing, "sqs", "get_queue_attributes", **asked)["Attributes"]
    return int(found["ApproximateNumberOfMessages"]), found["QueueArn"]


def inboxes(around: Deployment) -> list[str]:
    """The queues whose dead letters the deployment names; an older one names none."""
    outputs = _outputs(around)
    return [name for name, output in env.DEAD_LETTERS_OUTPUTS.items() if output in outputs]


def _outputs(around: Deployment) -> dict[str, str]:
    """Those of both stacks: each names the queues that it has."""
    return {**around.storage, **around.pipeline}


def dead_letters(around: Deployment) -> dict[str, int]:
    """How many messages were put aside, by the queues that have such."""
    counts = {name: read_queue(around, name)[0] for name in inboxes(around)}
    return {name: count for name, count in counts.items() if count}


def disabled(around: Deployment) -> list[str]:
    """The outputs of the event sources that `s3commit pause` has disabled."""
    outputs, doing, off = around.pipeline, "looking at the event sources", []
    for output in (env.MAPPING_OUTPUTS[inbox] for inbox in env.PAUSED):
        if uuid := outputs.get(output):
            mapping = around.ask(doing, "lambda", "get_event_source_mapping", UUID=uuid)
            off += [output] * mapping["State"].startswith("Disabl")
    if rule := outputs.get(env.SWEEP_RULE_OUTPUT):
        state = around.ask(doing, "events", "describe_rule", Name=rule)["State"]
        off += [env.SWEEP_RULE_OUTPUT] * (state == "DISABLED")
    return off


def unheard(around: Deployment) -> list[str]:
    """Why events do not reach the deployment, in a sentence; none where they do."""
    ears = around.ears
    found = notifications.unheard(around.notifications, ears) if ears else {}
    return [notifications.told(found)] * bool(found)


_READS: dict[str, Callable[[Deployment], Any]] = {
    "alarms": ringing,
    "deadLetters": dead_letters,
    "disabled": disabled,
    "unheard": unheard,
}


def watched(session: Session, table: str) -> dict[str, Any]:
    """The members of ``_READS`` for the deployment with that table; null: not to be seen."""
    found: dict[str, Any] = dict.fromkeys(_READS)
    if around := session.deployment_of(table):
        for name, read in _READS.items():
            with suppress(S3CommitError):  # a caller without these rights still sees the jobs
                found[name] = read(around)
    return found


def sentences(found: dict[str, Any]) -> list[str]:
    """A line each for the alarms of `watched`, the dead letters and a pause, if there are some."""
    lines = []
    if found.get("alarms"):
        alarms = sorted(found["alarms"].items())
        named = ", ".join(f"{name} since {moment(one['ringsSince'])}" for name, one in alarms)
        lines.append(f"alarms: {named}; see {RUNBOOK}")
    if found.get("deadLetters"):
        each = ", ".join(f"{count} in {name}" for name, count in found["deadLetters"].items())
        lines.append(f"dead letters: {each}; fix the cause, then s3commit redrive")
    if found.get("disabled"):
        names = ", ".join(found["disabled"])
        paused = env.MAPPING_OUTPUTS["Request"] in found["disabled"]
        kind = "paused, no job starts" if paused else "partly paused"
        lines.append(f"deployment: {kind} ({names} disabled); s3commit resume")
    lines += [f"events: {one}; see {RUNBOOK}" for one in found.get("unheard") or ()]
    return lines


def alarms(around: Deployment) -> Finding:
    """No alarm of the deployment rings."""
    if (around.parameters or {}).get("alarms", True) is False:
        return skipped("it has none (parameter alarms)")
    return _finding(around, "alarms", "no alarm rings")


def letters(around: Deployment) -> Finding:
    """No message was put aside."""
    return _finding(around, "deadLetters", "there are none")


def sources(around: Deployment) -> Finding:
    """No event source is disabled: the deployment is not paused."""
    return _finding(around, "disabled", "all are enabled")


def _finding(around: Deployment, what: str, well: str) -> Finding:
    if not around.pipeline:
        return skipped(f"no stack {around.stack(env.PIPELINE_STACK)}: not deployed")
    (line,) = sentences({what: _READS[what](around)}) or [""]
    return to_do(line.partition(": ")[2]) if line else ok(well)
