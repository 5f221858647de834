"""The deployed wiring of a catalog: commits are in moto's Glue (what fails: test_night.py)."""

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

import s3commit
from tests.e2e.conftest import STOP_SECONDS, Deployed, commit, create_table
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
        yield deployed
        served.communicate(timeout=STOP_SECONDS)


def test_a_catalog_has_what_was_committed(lake: Deployed) -> None:
    glue = lake.client("glue")
    create_table(glue, lake.bucket, "sales")

    def sees() -> set[str]:
        found = glue.get_partitions(DatabaseName="lake", TableName="sales")["Partitions"]
        return {one["Values"][0] for one in found}

    commit(lake.bucket, "sales", 1, 2)
    until(lambda: sees() == {"1", "2"}, "new partitions")
    undone = commit(lake.bucket, "sales", 2, 3)
    until(lambda: sees() == {"1", "2", "3"})
    s3commit.undo(f"s3://{lake.bucket}/sales/", undone.job_id)
    until(lambda: sees() == {"1", "2"}, "an undo empties one")
    commit(lake.bucket, "elsewhere", 1)
