"""A deployment's alarms, dead letters and pause: for `status`, `doctor` and the page."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

from s3commit.aws import env, notifications
from s3commit.cli.deployment import Deployment, Finding, ok, skipped, to_do
from s3commit.cli.render import moment
from s3commit.cli.session import Session
from s3commit.core.model.errors import S3CommitError
from s3commit.core.model.moments import rfc3339

RUNBOOK = "docs/operations.md#runbook"
_MOST = 100  # alarms that fire, which is one request


def firing(around: Deployment) -> dict[str, dict[str, str]]:
    """The alarms that fire, by their names in the runbook: ``description``, ``firingSince``."""
    prefix = env.ALARM.format(around.stack(env.PIPELINE_STACK), "")
    asked: dict[str, Any] = {"AlarmNamePrefix": prefix, "StateValue": "ALARM", "MaxRecords": _MOST}
    found = around.ask("reading the alarms", "cloudwatch", "describe_alarms", **asked)
    return {
        one["AlarmName"].removeprefix(prefix): {
            "description": one.get("AlarmDescription", ""),
            "firingSince": rfc3339(_since(one).astimezone(UTC)),
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


# The things watched: the heading of each, and how it is read.
_WATCHED: dict[str, tuple[str, Callable[[Deployment], Any]]] = {
    "alarms": ("alarms", firing),
    "deadLetters": ("dead letters", dead_letters),
    "disabled": ("deployment", disabled),
    "unheard": ("events", unheard),
}


def watched(session: Session, table: str) -> tuple[dict[str, Any], list[str]]:
    """The members of ``_WATCHED`` for the deployment with that table; null: not seen, and why."""
    found: dict[str, Any] = dict.fromkeys(_WATCHED)
    problems: dict[str, list[str]] = {}
    if around := session.deployment_of(table):
        for name, (heading, read) in _WATCHED.items():
            try:
                found[name] = read(around)
            except S3CommitError as error:  # a caller without these rights still sees the jobs
                problems.setdefault(error.message, []).append(heading)
    return found, [f"{', '.join(what)} cannot be read: {why}" for why, what in problems.items()]


def sentences(found: dict[str, Any]) -> list[str]:
    """A line each for the alarms of `watched`, the dead letters and a pause, if there are some."""
    known = ((heading, name, found.get(name)) for name, (heading, _) in _WATCHED.items())
    return [f"{heading}: {_told(name, one)}" for heading, name, one in known if one]


def _told(name: str, found: Any) -> str:
    """The sentence about a member of ``_WATCHED`` that is not empty, with the way out."""
    if name == "alarms":
        named = (f"{one} since {moment(its['firingSince'])}" for one, its in sorted(found.items()))
        return f"{', '.join(named)}; see {RUNBOOK}"
    if name == "deadLetters":
        each = ", ".join(f"{count} in {inbox}" for inbox, count in found.items())
        return f"{each}; fix the cause, then s3commit redrive"
    if name == "disabled":
        paused = env.MAPPING_OUTPUTS["Request"] in found
        kind = "paused, no job starts" if paused else "partly paused"
        return f"{kind} ({', '.join(found)} disabled); s3commit resume"
    return f"{found[0]}; see {RUNBOOK}"


def alarms(around: Deployment) -> Finding:
    """No alarm of the deployment fires."""
    if (around.parameters or {}).get("alarms", True) is False:
        return skipped("it has none (parameter alarms)")
    return _finding(around, "alarms", "no alarm fires")


def _finding(around: Deployment, what: str, well: str) -> Finding:
    if not around.pipeline:
        return skipped(f"no stack {around.stack(env.PIPELINE_STACK)}: not deployed")
    _, read = _WATCHED[what]
    return to_do(_told(what, found)) if (found := read(around)) else ok(well)


letters = partial(_finding, what="deadLetters", well="there are none")  # messages put aside
sources = partial(_finding, what="disabled", well="all are enabled")  # not paused
