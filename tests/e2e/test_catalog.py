"""The deployed wiring of a catalog: commits are in moto's Glue; what fails waits and is told."""

import json
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

import s3commit
from s3commit.core.model.job import JobResult
from tests.cli.support import run
from tests.e2e.conftest import STOP_SECONDS, WAIT_SECONDS, Deployed, until
from tests.e2e.test_pipeline import depth, queue_of
from tests.local.programs import RUNTIME, environment
from tests.servers import read_line
from tests.stacks.synthesized import synthesize

SERVE = """
with LocalRuntime(Path(sys.argv[1])) as runtime:
    print(runtime.ready_line(), flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def lake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployed]:
    """A deployment that tells two tables: ``sales/`` drops empty partitions, ``late/`` is late."""
    tables = {"sales/": "lake.sales dropEmpty", "late/": "lake.late"}
    assembly = synthesize(catalogs=tables).directory
    command = [sys.executable, "-c", RUNTIME + SERVE, str(assembly)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment()) as served:
        deployed = Deployed(**json.loads(read_line(served)))
        for name, value in deployed.environment.items():
            monkeypatch.setenv(name, value)
        deployed.client("glue").create_database(DatabaseInput={"Name": "lake"})
        yield deployed
        served.communicate(timeout=STOP_SECONDS)


def create_table(lake: Deployed, name: str) -> None:
    storage = {"Location": f"s3://{lake.bucket}/{name}/", "Columns": []}
    keys = [{"Name": "n", "Type": "int"}]
    table = {"Name": name, "PartitionKeys": keys, "StorageDescriptor": storage}
    lake.client("glue").create_table(DatabaseName="lake", TableInput=table)


def partitions(lake: Deployed, table: str) -> dict[str, str]:
    found = lake.client("glue").get_partitions(DatabaseName="lake", TableName=table)["Partitions"]
    return {one["Values"][0]: one["StorageDescriptor"]["Location"] for one in found}


def commit(lake: Deployed, table: str, *numbers: int, **options: Any) -> JobResult:
    with s3commit.open_job(f"s3://{lake.bucket}/{table}/", **options) as job:
        task = job.task("0")
        for number in numbers:
            with task.open(f"n={number}/part.txt") as file:
                file.write(b"1")
        counted = task.finish()
        return job.commit([counted] if counted else [], timeout=WAIT_SECONDS)


def announce(lake: Deployed, table: str, job: JobResult) -> None:
    """Send the event of a job again."""
    directory = f"{table}/__magic_job-{job.job_id}/"
    detail = {"outcome": "COMMITTED", "bucket": lake.bucket, "directory": directory}
    event = {"Source": "s3commit", "DetailType": "s3commit job ended", "Detail": json.dumps(detail)}
    lake.client("events").put_events(Entries=[event])


def test_a_catalog_has_what_was_committed_whatever_becomes_of_the_events(lake: Deployed) -> None:
    create_table(lake, "sales")
    sees, place = partial(partitions, lake, "sales"), f"s3://{lake.bucket}/sales/"
    first = commit(lake, "sales", 1, 2)
    until(lambda: sees() == {"1": f"{place}n=1/", "2": f"{place}n=2/"}, "new partitions")
    second = commit(lake, "sales", 2, 3, conflict="replace")
    until(lambda: set(sees()) == {"2", "3"}, "one is empty")
    inbox = queue_of(lake, "CatalogsQueue")
    for job in (second, first, first):
        announce(lake, "sales", job)
        until(lambda: depth(lake, inbox) == 0)
        assert set(sees()) == {"2", "3"}, "in another order, and repeated"
    commit(lake, "sales", conflict="replace")
    until(lambda: not sees(), "files removed, none added")
    commit(lake, "elsewhere", 1)
    assert depth(lake, queue_of(lake, "CatalogsDead", dead=True)) == 0

    # A table that is created too late: the commit stands, and a redrive tells of it.
    queues = lake.client("sqs")
    queues.set_queue_attributes(QueueUrl=inbox, Attributes={"VisibilityTimeout": "0"})
    dead = queue_of(lake, "CatalogsDead", dead=True)
    late = commit(lake, "late", 1)
    until(lambda: depth(lake, dead) == 1, "a dead letter")
    show = ("show", f"s3://{lake.bucket}/late/__magic_job-{late.job_id}/", "--output", "json")
    shown = json.loads(run(*show).stdout)
    (problem,) = shown["problems"]
    assert shown["state"] == "COMMITTED"
    assert problem.startswith("table lake.late of the catalog was not told of this job: ")
    assert "EntityNotFoundException" in problem
    create_table(lake, "late")
    (message,) = queues.receive_message(QueueUrl=dead)["Messages"]
    queues.send_message(QueueUrl=inbox, MessageBody=message["Body"])
    until(lambda: set(partitions(lake, "late")) == {"1"}, "what was redriven")
    until(lambda: not json.loads(run(*show).stdout)["problems"], "nothing to tell any more")
