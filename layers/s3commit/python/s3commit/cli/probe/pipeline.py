"""The deployment itself: one small job, from its request to its result, and one alarm."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from s3commit.aws.arns import machine_of
from s3commit.aws.executions import StateMachine
from s3commit.aws.ledger_items import SHARDS, id_key, shard_key, unit_key
from s3commit.aws.s3 import S3ObjectStore
from s3commit.cli.probe.model import Case, Cost, Seen, needs, probe
from s3commit.cli.probe.s3_prefix import Prefix
from s3commit.cli.probe.target import Target
from s3commit.core.formats.documents import MAX_RESULT_BYTES, decode_result
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.errors import AccessError, TransientError
from s3commit.writer.bucket import S3BucketProbe
from s3commit.writer.config import Config
from s3commit.writer.job import open_job

EVENTS = "https://docs.aws.amazon.com/AmazonS3/latest/userguide/EventNotifications.html"
ALARMS = "https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_SetAlarmState.html"

JOB_SECONDS = 300
TIDY_SECONDS = 120
ALARM_SECONDS = 300
PAUSE = 1.0
UNKNOWN_SECONDS = 15.0  # for the end of an execution that can't be looked at


def _no_pipeline(target: Target) -> str:
    queues = S3BucketProbe(target.s3).request_queues(target.prefix.bucket)
    if queues is None:
        return "needs the right s3:GetBucketNotification"
    return "" if queues else "give a bucket that a deployment serves"


@probe(
    relies=("docs/protocol.md",),
    source=EVENTS,
    cost=Cost(requests=120, transitions=30, writes=60),
    lacks=_no_pipeline,
    cases={
        "the job ends": Case(("COMMITTED",)),
        "its file": Case(("first",)),
        "its manifests are deleted": Case(("yes",)),
    },
)
def job(target: Target) -> Iterator[Seen]:
    """A request's event starts the job, and it is committed."""
    at, environment = target.prefix, target.environment
    uri = f"s3://{at.bucket}/{at.prefix}job/"
    # No configuration: a condition on rows, say, would refuse the job.
    store = S3ObjectStore(target.s3)
    opened = open_job(uri, store=store, environment=environment, config=Config())
    target.undo.callback(_forget, target, opened.directory)
    with opened, opened.task("0") as task:
        with task.open("part-0.txt") as file:
            file.write(b"first")
        counted = task.finish()
        began = environment.monotonic()
        result = opened.commit([counted], timeout=JOB_SECONDS)
    took = environment.monotonic() - began
    yield Seen("the job ends", result.outcome.value, f"{took:.1f} s from request to result")
    names = [key for key in at.listed("job/part-") if opened.job_id in key]
    yield Seen("its file", at.body(names[0]) if names else "nothing")
    tidied = _wait_for_end(target, opened.directory)
    yield Seen("its manifests are deleted", "yes" if tidied else "no")


def _wait_for_end(target: Target, directory: JobDirectory) -> bool:
    """Until the job's last step has ended; False if that took too long.

    What a step reads must not be deleted meanwhile: its execution would fail, and raise an alarm.
    """
    at, store = target.prefix, S3ObjectStore(target.s3)

    def ended() -> bool | None:
        if store.head(directory.bucket, directory.result) is None:
            return None
        body = store.get(directory.bucket, directory.result, max_bytes=MAX_RESULT_BYTES).body
        execution = decode_result(body, directory).execution
        tidy = not at.listed(directory.tasks.removeprefix(at.prefix))
        return True if tidy and not _runs(target, execution) else None

    return bool(target.wait(ended, TIDY_SECONDS, PAUSE))


def _runs(target: Target, execution: str) -> bool:
    """Whether the execution is under way; who may not ask waits instead."""
    try:
        return StateMachine(machine_of(execution) or "").describe(execution).is_running
    except AccessError:
        target.environment.sleep(UNKNOWN_SECONDS)
        return False


def _forget(target: Target, directory: JobDirectory) -> None:
    """Delete what the pipeline has of the job beside the destination: its plans, its items.

    Raises `TransientError` if the job has not ended; then all of it is left.
    """
    asked = target.prefix.head(directory.request.removeprefix(target.prefix.prefix)) == "200"
    if asked and not _wait_for_end(target, directory):
        target.kept = "job/"
        raise TransientError(f"left, since it has not ended: job {directory.uri}")
    Prefix(target.s3, directory.bucket, directory.pipeline_prefix).empty()
    if not target.given.table:
        return
    client = target.client("dynamodb")
    keys = [id_key(directory.job_id)]
    keys += [shard_key(directory.ref, number) for number in range(SHARDS)]
    keys += [unit_key(directory.ref, number)[0] for number in range(SHARDS)]
    for key in keys:
        found = client.query(
            TableName=target.given.table,
            KeyConditionExpression="pk = :pk",
            ExpressionAttributeValues={":pk": {"S": key}},
            ConsistentRead=True,
        )
        for item in found["Items"]:
            named = {"pk": item["pk"], "sk": item["sk"]}
            client.delete_item(TableName=target.given.table, Key=named)


@probe(
    relies=("docs/operations.md",),
    source=ALARMS,
    cost=Cost(transitions=1),
    lacks=needs("alarm"),
    cases={
        "actions of the alarm": Case(("some",)),
        "the first action": Case(("succeeded",)),
    },
)
def alarm(target: Target) -> Iterator[Seen]:
    """An alarm reaches whoever it is to wake.

    It is set off by hand: how soon is its action carried out?
    """
    client, name = target.client("cloudwatch"), target.given.alarm or ""
    (found,) = client.describe_alarms(AlarmNames=[name])["MetricAlarms"]
    reason = "s3commit doctor --probe: a test, nothing is wrong"
    yield Seen("actions of the alarm", "some" if found["AlarmActions"] else "none")
    began, start = target.environment.monotonic(), target.environment.epoch()
    target.undo.callback(
        client.set_alarm_state,
        AlarmName=name,
        StateValue=found["StateValue"],
        StateReason=f"{reason}; set back",
    )
    client.set_alarm_state(AlarmName=name, StateValue="ALARM", StateReason=reason)

    def carried_out() -> str | None:
        history = client.describe_alarm_history(
            AlarmName=name,
            HistoryItemType="Action",
            StartDate=datetime.fromtimestamp(start, UTC),
        )
        told = [item["HistorySummary"] for item in history["AlarmHistoryItems"]]
        # CloudWatch's summary of an action begins with "Successfully executed action".
        done = any(summary.startswith("Successfully") for summary in told)
        return "succeeded" if done else "failed" if told else None

    told = target.wait(carried_out, ALARM_SECONDS, PAUSE) or "nothing"
    took = target.environment.monotonic() - began
    yield Seen("the first action", told, f"{took:.1f} s after the alarm")


PROBES: Final = (job, alarm)
