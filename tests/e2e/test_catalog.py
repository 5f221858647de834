"""The deployed wiring of a catalog: commits are in moto's Glue (what fails: test_night.py)."""

import json
import subprocess
import sys
from collections.abc import Iterator
from functools import partial

import pytest

import s3commit
from s3commit.core.documents.result_json import JobResult
from tests.e2e.conftest import STOP_SECONDS, WAIT_SECONDS, Deployed
from tests.local.programs import RUNTIME, environment
from tests.servers import read_line, until
from tests.stacks.synthesized import synthesize

SERVE = """
with LocalRuntime(Path(sys.argv[1])) as runtime:
    print(runtime.ready_line(), flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def lake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployed]:
    """A deployment that tells a table, which drops empty partitions."""
    tables = {"sales/": "lake.sales dropEmpty"}
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


def test_a_catalog_has_what_was_committed(lake: Deployed) -> None:
    create_table(lake, "sales")
    sees = partial(partitions, lake, "sales")
    commit(lake, "sales", 1, 2)
    until(lambda: sees() == {"1", "2"}, "new partitions")
    undone = commit(lake, "sales", 2, 3)
    until(lambda: sees() == {"1", "2", "3"})
    s3commit.undo(f"s3://{lake.bucket}/sales/", undone.job_id)
    until(lambda: sees() == {"1", "2"}, "an undo empties one")
    commit(lake, "elsewhere", 1)
