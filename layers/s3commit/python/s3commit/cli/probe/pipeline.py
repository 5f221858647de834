"""The deployment itself: one small job, from its request to its result, and one alarm."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from s3commit.aws.arns import machine_of
from s3commit.aws.executions import StateMachine
from s3commit.aws.ledger_items import SHARDS, id_key, shard_key, unit_key
from s3commit.aws.s3 import S3ObjectStore
from s3commit.cli.probe.items import delete_items
from s3commit.cli.probe.model import Answers, Cost, Seen, needs, probe, sees
from s3commit.cli.probe.place import Place
from s3commit.cli.probe.world import World
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.job.documents import read_result
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


def _no_pipeline(world: World) -> str:
    queues = S3BucketProbe(world.s3).request_queues(world.place.bucket)
    if queues is None:
        return "needs the right s3:GetBucketNotification"
    return "" if queues else "give a bucket that a deployment serves"


@probe(
    "job",
    "a request's event starts the job, and it is committed",
    "docs/protocol.md",
    EVENTS,
    Cost(requests=120, transitions=30, writes=60),
    lacks=_no_pipeline,
)
@sees("the job ends", "COMMITTED")
@sees("its file", "first")
@sees("its manifests are deleted", "yes")
def _small_job(world: World, place: Place) -> Answers:
    environment = world.environment
    uri = f"s3://{place.bucket}/{place.prefix}job/"
    # No configuration: a condition on rows, say, would refuse the job.
    store = S3ObjectStore(world.s3)
    job = open_job(uri, store=store, environment=environment, config=Config())
    world.undo.callback(_forget, world, job.directory)
    with job, job.task("0") as task:
        with task.open("part-0.txt") as file:
            file.write(b"first")
        counted = task.finish()
        began = environment.monotonic()
        result = job.commit([counted], timeout=JOB_SECONDS)
    took = environment.monotonic() - began
    yield Seen([result.outcome.value], f"{took:.1f} s from request to result")
    names = [key for key in place.listed("job/part-") if job.job_id in key]
    yield place.body(names[0]) if names else "nothing"
    yield "yes" if _wait_for_end(world, job.directory) else "no"


def _wait_for_end(world: World, directory: JobDirectory) -> bool:
    """Until the job's last step has ended; False if that took too long.

    What a step reads must not be deleted meanwhile: its execution would fail, and raise an alarm.
    """
    place, store = world.place, S3ObjectStore(world.s3)

    def ended() -> bool | None:
        if store.head(directory.bucket, directory.result) is None:
            return None
        execution = read_result(store, directory).execution
        tidy = not place.listed(directory.tasks.removeprefix(place.prefix))
        return True if tidy and not _runs(world, execution) else None

    return bool(world.wait(ended, TIDY_SECONDS, PAUSE))


def _runs(world: World, execution: str) -> bool:
    """Whether the execution is under way; who may not ask waits instead."""
    try:
        return StateMachine(machine_of(execution) or "").describe(execution).is_running
    except AccessError:
        world.environment.sleep(UNKNOWN_SECONDS)
        return False


def _forget(world: World, directory: JobDirectory) -> None:
    """Delete what the pipeline has of the job beside the destination: its plans, its items.

    Raises `TransientError` if the job has not ended; then all of it is left.
    """
    asked = world.place.head(directory.request.removeprefix(world.place.prefix)) == "200"
    if asked and not _wait_for_end(world, directory):
        world.kept = "job/"
        raise TransientError(f"left, since it has not ended: job {directory.uri}")
    Place(world.s3, directory.bucket, directory.pipeline_prefix).empty()
    if not world.given.table:
        return
    client = world.client("dynamodb")
    delete_items(client, world.given.table, id_key(directory.job_id))
    for number in range(SHARDS):
        delete_items(client, world.given.table, shard_key(directory.ref, number))
        delete_items(client, world.given.table, unit_key(directory.ref, number)[0])


@probe(
    "alarm",
    "an alarm reaches whoever it is to wake",
    "docs/operations.md",
    ALARMS,
    Cost(transitions=1),
    lacks=needs("alarm"),
)
@sees("actions of the alarm", "some")
@sees("the first action", "succeeded")
def _alarm_by_hand(world: World, place: Place) -> Answers:
    """An alarm that is set off by hand: how soon its action was carried out."""
    client, name = world.client("cloudwatch"), world.given.alarm or ""
    (alarm,) = client.describe_alarms(AlarmNames=[name])["MetricAlarms"]
    reason = "s3commit doctor --probe: a test, nothing is wrong"
    yield "some" if alarm["AlarmActions"] else "none"
    began, start = world.environment.monotonic(), world.environment.epoch()
    world.undo.callback(
        client.set_alarm_state,
        AlarmName=name,
        StateValue=alarm["StateValue"],
        StateReason=f"{reason}; set back",
    )
    client.set_alarm_state(AlarmName=name, StateValue="ALARM", StateReason=reason)

    def carried_out() -> str | None:
        found = client.describe_alarm_history(
            AlarmName=name,
            HistoryItemType="Action",
            StartDate=datetime.fromtimestamp(start, UTC),
        )["AlarmHistoryItems"]
        told = [_how(item) for item in found]
        return "succeeded" if "succeeded" in told else next(iter(told), None)

    told = world.wait(carried_out, ALARM_SECONDS, PAUSE) or "nothing"
    took = world.environment.monotonic() - began
    yield Seen([told], f"{took:.1f} s after the alarm")


def _how(item: Any) -> str:
    """CloudWatch's summary of an action begins with ``Successfully executed action``."""
    return "succeeded" if item["HistorySummary"].startswith("Successfully") else "failed"


PROBES = (_small_job, _alarm_by_hand)
