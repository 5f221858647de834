"""The deployed wiring of a catalog: commits are in moto's Glue; what fails waits and is told."""

import json
import subprocess
import sys
from collections.abc import Iterator
from functools import partial

import pytest

import s3commit
from s3commit.core.documents.result_json import JobResult
from tests.cli.support import run
from tests.e2e.conftest import STOP_SECONDS, WAIT_SECONDS, Deployed, until
from tests.local.programs import RUNTIME, environment
from tests.servers import read_line
from tests.stacks.synthesized import synthesize


def queue_of(deployed: Deployed, name: str, *, dead: bool = False) -> str:
    urls = deployed.client("sqs").list_queues()["QueueUrls"]
    [url] = [url for url in urls if name in url and ("Dead" in url) is dead]
    return str(url)


def depth(deployed: Deployed, url: str) -> int:
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    found = deployed.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=names)
    return sum(int(found["Attributes"][name]) for name in names)


SERVE = """
with LocalRuntime(Path(sys.argv[1])) as runtime:
    print(runtime.ready_line(), flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def lake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployed]:
    """A deployment that tells two tables: ``sales/`` drops empty partitions, ``late/`` is late."""
    tables = {"sales/": "lake.sales dropEmpty", "late/": "lake.late"}
    command = [sys.executable, "-c", RUNTIME + SERVE, str(synthesize(catalogs=tables).directory)]
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


def partitions(lake: Deployed, table: str) -> set[str]:
    found = lake.client("glue").get_partitions(DatabaseName="lake", TableName=table)["Partitions"]
    return {one["Values"][0] for one in found}


def commit(lake: Deployed, table: str, *numbers: int) -> JobResult:
    with s3commit.open_job(f"s3://{lake.bucket}/{table}/") as job:
        task = job.task("0")
        for number in numbers:
            with task.open(f"n={number}/part.txt") as file:
                file.write(b"1")
        job.commit_timeout = WAIT_SECONDS
        return job.commit([task.finish()])


def test_a_catalog_has_what_was_committed_and_hears_later_what_it_could_not(lake: Deployed) -> None:
    create_table(lake, "sales")
    sees = partial(partitions, lake, "sales")
    commit(lake, "sales", 1, 2)
    until(lambda: sees() == {"1", "2"}, "new partitions")
    undone = commit(lake, "sales", 2, 3)
    until(lambda: sees() == {"1", "2", "3"})
    s3commit.undo(f"s3://{lake.bucket}/sales/", undone.job_id)
    until(lambda: sees() == {"1", "2"}, "an undo empties one")
    commit(lake, "elsewhere", 1)

    # A table that is created too late: the commit stands, and a redrive tells of it.
    queues, inbox = lake.client("sqs"), queue_of(lake, "CatalogsQueue")
    queues.set_queue_attributes(QueueUrl=inbox, Attributes={"VisibilityTimeout": "0"})
    late, dead = commit(lake, "late", 1), queue_of(lake, "CatalogsDead", dead=True)
    until(lambda: depth(lake, dead) == 1, "a dead letter")
    show = ("show", f"s3://{lake.bucket}/late/__magic_job-{late.job_id}/", "--output", "json")
    shown = json.loads(run(*show).stdout)
    (problem,) = shown["problems"]
    assert shown["state"] == "COMMITTED"
    assert problem.startswith("table lake.late of the catalog was not notified of this job: ")
    assert "EntityNotFoundException" in problem
    create_table(lake, "late")
    (message,) = queues.receive_message(QueueUrl=dead)["Messages"]
    queues.send_message(QueueUrl=inbox, MessageBody=message["Body"])
    until(lambda: partitions(lake, "late") == {"1"}, "what was redriven")
    until(lambda: not json.loads(run(*show).stdout)["problems"], "nothing to tell any more")
