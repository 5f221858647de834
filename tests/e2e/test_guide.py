"""The guide's Python page against the deployed pipeline."""

import re
import uuid
from collections.abc import Iterator
from pathlib import Path

import pandas
import polars
import pytest
from pyarrow.dataset import dataset

from docs import screens
from tests.cli.support import run
from tests.e2e.conftest import Deployed
from tests.guide import GUIDE, run_page
from tests.moments import TABLES, fill


def test_the_python_page_does_what_it_says(
    environment: Deployed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = run_page(GUIDE / "python.md", tmp_path, f"{environment.bucket}/guide")
    assert capsys.readouterr().out.splitlines() == expected
    assert len(expected) >= 5


@pytest.fixture(scope="module")
def under_way(deployed: Deployed) -> Iterator[str]:
    """The tables of the page on readers, each with a job that has not ended."""
    place = f"s3://{deployed.bucket}/readers-{uuid.uuid4().hex}/"
    with pytest.MonkeyPatch.context() as patch:
        for name, value in deployed.environment.items():
            patch.setenv(name, value)
        with fill(place):
            yield place


def test_the_readers_pages_do_what_they_say(
    under_way: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = under_way.removeprefix("s3://").rstrip("/")
    expected = [
        line
        for page in ("readers.md", "during_a_commit.md")
        for line in run_page(GUIDE / page, tmp_path, place)
    ]
    assert capsys.readouterr().out.splitlines() == expected
    assert len(expected) == 4


def test_readers_meet_the_documents_of_jobs_as_the_page_says(under_way: str) -> None:
    flat = f"{under_way}flat/"
    assert len(pandas.read_parquet(flat)) == dataset(flat).count_rows() == TABLES["flat"]
    assert polars.scan_parquet(f"{flat}**/*.parquet").collect().height == TABLES["flat"]
    for table in ("flat", "sales"):
        with pytest.raises(polars.exceptions.InvalidOperationError, match="_SUCCESS"):
            polars.scan_parquet(f"{under_way}{table}/").collect()
    found = {
        one: polars.scan_ndjson(f"{under_way}events/**/{one}.json").collect().height
        for one in ("part-*", "*")
    }
    assert found["part-*"] == TABLES["events"] < found["*"]


def columns(log: str) -> list[list[str]]:
    """The columns of the jobs, then the first word of each thing that is said below a job."""
    head, *lines = log.splitlines()
    below = "".join(line for line in lines if line.startswith("  ")).split("  who ")[1:]
    return [head.split(), *(re.findall(r"; +(\w+)", one) for one in below)]


def test_the_log_on_the_page_of_undo_is_that_of_the_command(environment: Deployed) -> None:
    page = (GUIDE / "undo.md").read_text()
    [shown] = re.findall(r"^\$ s3commit log .+\n((?:.+\n)+?)```$", page, re.MULTILINE)
    with screens.jobs(environment.bucket) as table:
        today = columns(run("log", table).output)
    assert len(columns(shown)) == 3
    assert [one for one in columns(shown) if one not in today] == []
