"""Programs that follow new data: what each of them finds (docs/guide/consumers.md).

A reader, sensor or crawler is a function here that does what its documentation or source says.
"""

import fnmatch
import json
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any
from urllib.parse import unquote_plus

import boto3
import pytest

import s3commit
from s3commit.core.documents.commit_manifest import read_commit_manifest
from s3commit.core.formats.layout import JobDirectory, is_data, parse_commit_manifest_key
from s3commit.core.model.destination import Scope
from s3commit.core.ports.objects import ListedObject
from tests.core.world import BUCKET, JOB, NEIGHBOUR, OTHER_JOB, World, job_directory
from tests.fakes.execution import walk_execution
from tests.guide import GUIDE
from tests.lake import Lake
from tests.moments import Instead

TABLE = "sales/"
[CHECK] = map(eval, re.findall("check_fn=(.+),", (GUIDE / "consumers.md").read_text()))


def listed(world: World) -> list[ListedObject]:
    return list(world.store.list(BUCKET, TABLE))


# Readers that read again


def by_time(world: World) -> Callable[[], set[str]]:
    """What is newer than the newest that it has seen, as a bookmark or ``modifiedAfter`` has it."""
    mark = ""

    def look() -> set[str]:
        nonlocal mark
        found = [one for one in listed(world) if one.modified > mark and is_data_of(one.key)]
        mark = max([mark, *(one.modified for one in found)])
        return {one.key for one in found}

    return look


def by_name(world: World) -> Callable[[], set[str]]:
    """Each name once, as Spark's stream of files has it (FileStreamSource.SeenFilesMap)."""
    seen: set[str] = set()

    def look() -> set[str]:
        new = {one.key for one in listed(world) if is_data_of(one.key)} - seen
        seen.update(new)
        return new

    return look


def by_manifest(world: World) -> Callable[[], set[str]]:
    """The files of each commit manifest, and each manifest once."""
    seen: set[JobDirectory | None] = {None}

    def look() -> set[str]:
        keys = [one.key for one in listed(world)]
        jobs = {parse_commit_manifest_key(job_directory().destination, key) for key in keys} - seen
        seen.update(jobs)
        files = [read_commit_manifest(world.store, job)[1] for job in jobs if job is not None]
        return {file.key for some in files for file in some}

    return look


def is_data_of(key: str) -> bool:
    return is_data(key.removeprefix(TABLE))


@pytest.mark.parametrize(
    ("reader", "finds_all"), [(by_time, False), (by_name, True), (by_manifest, True)]
)
def test_who_goes_by_time_misses_a_file_whose_upload_began_before_the_last_look(
    reader: Callable[[World], Callable[[], set[str]]], finds_all: bool
) -> None:
    world, slow, fast = World(), job_directory(JOB), job_directory(OTHER_JOB)
    look = reader(world)
    counted = world.attempt(slow, "t0")
    world.clock.advance(60)
    world.commit(fast)
    first = look()
    world.request(slow, counted)
    world.run(slow)

    assert len(world.visible()) == 2
    assert all(OTHER_JOB in key for key in first)
    assert (first | look() == set(world.visible())) is finds_all


# Sensors


class Unchanged:
    """Airflow's S3KeysUnchangedSensor: no key more or less in two looks that are far apart."""

    before: frozenset[str] = frozenset()

    def __call__(self, found: list[ListedObject]) -> bool:
        keys, before = frozenset(one.key for one in found), self.before
        self.before = keys
        return bool(keys) and keys == before


def sensors(since: str) -> dict[str, Callable[[list[ListedObject]], bool]]:
    """By the source of Airflow's sensors: a ``*`` is fnmatch's, which matches ``/`` too."""

    def matches(pattern: str) -> Callable[[list[ListedObject]], bool]:
        return lambda found: any(fnmatch.fnmatch(one.key, pattern) for one in found)

    def newer(found: list[ListedObject]) -> bool:
        times = [one.modified for one in found if one.key == f"{TABLE}_SUCCESS"]
        files = [{"LastModified": datetime.fromisoformat(time)} for time in times]
        return bool(files) and CHECK(files, data_interval_end=datetime.fromisoformat(since))

    return {
        "S3KeySensor, `*`": matches(f"{TABLE}*"),
        "S3KeySensor, `*.parquet`": matches(f"{TABLE}*.parquet"),
        "S3KeysUnchangedSensor": Unchanged(),
        "S3KeySensor, `_SUCCESS`": matches(f"{TABLE}_SUCCESS"),
        "S3KeySensor, a newer `_SUCCESS`": newer,
    }


@pytest.mark.parametrize(
    ("jobs_before", "right"),
    [
        (0, ["S3KeySensor, `_SUCCESS`", "S3KeySensor, a newer `_SUCCESS`"]),
        (1, ["S3KeySensor, a newer `_SUCCESS`"]),
    ],
)
def test_a_sensor_fires_early_but_for_a_newer_marker(jobs_before: int, right: list[str]) -> None:
    """At each state of a job, each looked at twice: all other sensors fire before its end."""
    world, own = World(), job_directory(JOB)
    for job in [OTHER_JOB][:jobs_before]:
        world.commit(job_directory(job))
    asked = sensors(world.clock.now())
    world.ask(own, "t0", "t1")
    early: set[str] = set()
    for state in walk_execution(world.ports, own):
        for _ in range(2 * (state not in {"PublishSuccess", "TidyUp"})):
            early |= {name for name, fires in asked.items() if fires(listed(world))}

    assert [name for name in asked if name not in early] == right
    assert all(asked[name](listed(world)) for name in right)


# Events


KINDS = ("Put", "Copy", "Post", "CompleteMultipartUpload")


@pytest.fixture
def heard(lake: Lake) -> Iterator[Callable[[], dict[str, list[str]]]]:
    """A queue for each kind of event; the keys that each was notified of, since the last call."""
    sqs: Any = boto3.client("sqs")
    queues = {
        kind: {"QueueUrl": sqs.create_queue(QueueName=f"{lake.bucket}-{kind}")["QueueUrl"]}
        for kind in KINDS
    }
    known = lake.client.get_bucket_notification_configuration(Bucket=lake.bucket)
    rules = known["QueueConfigurations"]
    for kind, queue in queues.items():
        attributes = sqs.get_queue_attributes(**queue, AttributeNames=["QueueArn"])
        arn = attributes["Attributes"]["QueueArn"]
        rules.append({"QueueArn": arn, "Events": [f"s3:ObjectCreated:{kind}"]})
    lake.client.put_bucket_notification_configuration(
        Bucket=lake.bucket, NotificationConfiguration={"QueueConfigurations": rules}
    )

    def receive(queue: dict[str, str]) -> Iterator[str]:
        while found := sqs.receive_message(**queue, MaxNumberOfMessages=10).get("Messages"):
            for one in found:
                sqs.delete_message(**queue, ReceiptHandle=one["ReceiptHandle"])
                for event in json.loads(one["Body"]).get("Records", ()):
                    yield unquote_plus(event["s3"]["object"]["key"])

    yield lambda: {kind: sorted(receive(queue)) for kind, queue in queues.items()}
    for queue in queues.values():
        sqs.delete_queue(**queue)


def test_data_files_are_announced_as_completed_uploads_even_if_they_are_deleted_again(
    lake: Lake, heard: Callable[[], dict[str, list[str]]]
) -> None:
    def write(job: s3commit.Job) -> list[Any]:
        with job.task("0") as task:
            for number in range(2):
                with task.open(f"part-{number}.parquet") as file:
                    file.write(b"x")
        return [task.counted]

    with s3commit.open_job(f"s3://{lake.bucket}/{TABLE}") as job:
        job.commit(write(job))
    got = heard()
    data = [key for keys in got.values() for key in keys if key.endswith(".parquet")]
    assert data == got["CompleteMultipartUpload"] == lake.visible(TABLE)
    assert got["Put"]
    assert all("/_" in key for key in got["Put"])

    rolled = s3commit.open_job(f"s3://{lake.bucket}/{TABLE}")
    counted = write(rolled)

    def loses_one() -> None:
        for state in walk_execution(lake.ports, rolled.directory):
            if state == "CompleteUploads":
                lost = list(lake.store.list_uploads(lake.bucket, TABLE))[-1]
                lake.store.abort_upload(lake.bucket, lost.key, lost.upload_id)

    rolled._environment = Instead(loses_one)
    with pytest.raises(s3commit.JobFailedError):
        rolled.commit(counted)
    [announced] = heard()["CompleteMultipartUpload"]
    assert rolled.job_id in announced
    assert lake.visible(TABLE) == data


# Crawlers


def glue(pattern: str) -> re.Pattern[str]:
    """An exclude pattern: ``*`` stays in a directory, ``**`` crosses them; of the path below.

    https://docs.aws.amazon.com/glue/latest/dg/define-crawler-choose-data-sources.html
    """
    regex = re.escape(pattern).replace(r"\*\*", ".*").replace(r"\*", "[^/]*")
    return re.compile(regex)


@pytest.mark.parametrize(
    ("patterns", "include", "right"),
    [
        (["_**"], TABLE, False),
        (["**/_**"], TABLE, False),
        (["_**", "**/_**"], TABLE, True),
        (["_**", "**/_**"], "", True),
    ],
)
def test_a_glue_crawler_needs_both_patterns(patterns: list[str], include: str, right: bool) -> None:
    """The table has a partition that was overwritten by name, so its documents are in there."""
    world = World()
    world.commit(job_directory(JOB))
    by_name = job_directory(OTHER_JOB, f"{TABLE}dt=a/")
    world.commit(by_name, scope=Scope.DIRECTORY)
    world.attempt(job_directory(NEIGHBOUR), "t0")

    keys = [one.key.removeprefix(include) for one in world.store.list(BUCKET, include)]
    crawled = [key for key in keys if not any(glue(one).fullmatch(key) for one in patterns)]
    data = [key for key in keys if re.fullmatch(rf"({TABLE})?(dt=a/)?part-.*", key)]
    assert len(data) == 2
    assert (crawled == data) is right
