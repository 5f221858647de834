"""docs/scale.md is what the model says, and what is deployed stays within AWS's limits."""

import json
import re
from collections import Counter
from math import ceil
from pathlib import Path

import pytest

from bench import limits, model
from bench.model import Deployment
from docs import costs
from s3commit.aws.env import DEFAULT, MOST_WORKERS
from s3commit.core.documents.pages import grouped
from s3commit.core.documents.pendingset import MAX_PARTS, PendingFile
from s3commit.core.documents.plan import parts_of, unit_limits
from s3commit.core.documents.request_json import MAX_ATTEMPTS
from s3commit.core.documents.ticket import UnitResult
from s3commit.core.jobs.listings import RANGES
from s3commit.core.model.limits import (
    CALL_SECONDS,
    COMPLETE_WORKERS,
    MAX_JOB_FILES,
    MAX_UNITS,
    UNIT_FILES,
    UNITS_OF_A_JOB,
)
from stacks.functions import FUNCTIONS
from stacks.inbox import oldest_seconds
from tests.core.world import job_directory
from tests.docs.test_costs import announced, as_large
from tests.stacks.entered import entered
from tests.stacks.synthesized import properties, synthesize

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "scale.md").read_text()
WORDS = " ".join(PAGE.split())
FIGURES = (ROOT / "bench" / "README.md").read_text()
MEASURED, BASELINE = 2, 4  # columns of its tables
FASTEST = 0.1  # of what AWS publishes of S3's latency
SLOWEST = 10.0  # seconds of a completion with 10,000 parts

DEPLOYED = Deployment()


def test_the_pages_tables_are_the_models() -> None:
    for table in (model.sizes(DEPLOYED), model.choices()):
        assert f"\n{table.strip()}\n" in PAGE
    assert f" {model.assumed()}." in WORDS


def test_the_pages_table_of_jobs_at_once_is_the_models() -> None:
    """It is simulated, call by call."""
    assert f"\n{model.crowds(DEPLOYED).strip()}\n" in PAGE
    every = {(jobs, prefixes) for jobs in model.JOBS for prefixes in (1, jobs)}
    failed = {one: DEPLOYED.crowd(one[0], model.AT_ONCE, one[1]).failed for one in every}
    many = failed.pop((model.JOBS[-1], 1))
    assert f"no execution fails, but {many} of {model.JOBS[-1]:,} below one prefix" in WORDS
    assert not any(failed.values())


def test_many_jobs_cost_what_one_does_and_the_units_that_are_begun_again() -> None:
    rows = re.findall(r"^\| ([\d,]+) \| ([\d,]+) \| .* \| ([\d.]+) \|$", PAGE, re.MULTILINE)
    assert [int(row[0].replace(",", "")) for row in rows] == [
        jobs for jobs in model.JOBS for _ in {1, jobs}
    ]
    for jobs, prefixes, price in rows:
        least = float(jobs.replace(",", "")) * DEPLOYED.price(model.AT_ONCE)[0]
        if jobs == prefixes:  # none is begun again
            assert price == f"{least:.2f}"
        assert float(price) >= round(least, 2)


def test_what_the_page_says_in_words_is_what_the_model_says() -> None:
    jobs = DEPLOYED.shares.workers // DEPLOYED.workers
    assert f"**Up to {jobs} jobs complete side by side at full speed**" in WORDS
    assert f"share the deployment's {DEPLOYED.shares.workers} workers" in WORDS
    floor = limits.EVENT + model.SMALL.transitions * limits.TRANSITION
    job, requests = DEPLOYED.job(100), DEPLOYED.requests(100)
    assert f"Of the {job:.1f} s of a job of 100 files {floor:.1f} s are AWS's floor" in WORDS
    assert f"{requests:.1f} s are {model.SMALL.requests} requests to S3" in WORDS
    assert f"finds all functions cold takes {limits.COLD:.1f} s longer" in WORDS
    assert f"names at most {MAX_ATTEMPTS:,} tasks" in WORDS
    assert f"256 KiB ({MAX_UNITS:,} units of {UNIT_FILES} files)" in WORDS
    least = min(FUNCTIONS[name].memory for name in ("decide", "end"))
    assert f"have {CALL_SECONDS // 60} minutes and {least:,} MB or more" in WORDS
    oldest = oldest_seconds("Ingest")
    tasks = oldest / costs.INGEST_SECONDS * DEPLOYED.shares.manifests
    assert f"{oldest // 60} minutes to note all manifests ({tasks:,.0f} tasks at" in WORDS


def test_every_number_has_a_page_a_measurement_or_is_called_an_assumption() -> None:
    assert len({one.what for one in limits.ALL}) == len(limits.ALL)
    for one in limits.ALL:
        assert re.match(r"<https://|measured: `|assumed", one.source), one.what
    published = [one for one in limits.ALL if one.source.startswith("<")]
    assert len(published) > len(limits.ALL) / 2


@pytest.mark.parametrize(
    ("fact", "figure", "column"),
    [
        (1000 * limits.COMPLETION, "CPU of a step: a completion", MEASURED),
        (1000 * limits.REQUEST, "CPU of a step: a completion", BASELINE),
        (1000 * limits.LISTED, "CPU of a step: list a page of 1,000 uploads", MEASURED),
        (1000 * limits.VERIFIED, "CPU of a step: VerifyManifests, 1,000 files", MEASURED),
        (1000 * limits.PUBLISHED, "CPU of a step: publishing 1,000 files", MEASURED),
        (limits.COLD, "cold deployment: request to result of 3 files", MEASURED),
    ],
)
def test_what_is_measured_is_the_benchmarks_figure(fact: float, figure: str, column: int) -> None:
    [row] = [line for line in FIGURES.splitlines() if line.startswith(f"| {figure}")]
    assert float(row.split("|")[column].split()[0]) == pytest.approx(fact, rel=1e-6)


# What is deployed, and what the model takes it to be.


def test_queues_and_functions_are_deployed_as_the_model_has_them() -> None:
    sources = {
        (one["BatchSize"], one["ScalingConfig"]["MaximumConcurrency"])
        for one in properties(synthesize().pipeline, "AWS::Lambda::EventSourceMapping")
    }
    assert sources == {(1, DEPLOYED.shares.manifests), (10, DEPLOYED.shares.requests)}
    assert DEPLOYED.workers <= limits.CHILDREN
    assert FUNCTIONS["complete"].memory == costs.ONE_MB
    assert FUNCTIONS["decide"].memory == costs.JOB_MB
    assert FUNCTIONS["end"].memory >= limits.WHOLE


@pytest.mark.parametrize("files", [1, 100, 10_000, 200_000])
def test_the_models_units_are_the_plans(files: int) -> None:
    one = PendingFile("lake", "sales/x.csv", "u", ("e",), 5)
    most, most_parts = unit_limits(files)
    units = list(grouped((one for _ in range(files)), most, parts_of, most_parts))
    count, size = DEPLOYED.units(files)
    assert (len(units), max(map(len, units))) == (count, size)


@pytest.mark.parametrize(("few", "way", "reads"), [(3, model.SMALL, 1), (2, model.OTHER, 2)])
def test_what_delays_a_result_is_counted(
    few: int, way: model.Way, reads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model's jobs: their states, and S3's requests but those for files and manifests."""
    if few < 3:
        as_large(monkeypatch)
    world, directory, tasks = announced(3), job_directory(), 3
    before = len(world.plan.calls)
    states = entered(world, directory)
    calls = world.plan.calls[before:]
    is_last = [one.verb == "put" and directory.result in one.arguments.values() for one in calls]
    until = Counter(one.verb for one in calls[: is_last.index(True) + 1])
    pages = 1 + reads + costs.PAGE_WRITES  # and a unit's
    fixed = until["get"] + until["put"] + until["list"] - tasks - pages
    assert fixed == way.requests + way.beside
    last = "PublishSuccess" if "PublishSuccess" in states else "BeginPublish"
    passed = [name for name in states[: states.index(last) + 1] if name != "CompleteUnit"]
    assert len(passed) == way.transitions


def test_the_prices_use_the_durations_of_the_model() -> None:
    _, size = DEPLOYED.units(costs.FILES)
    of_steps = (DEPLOYED.requests, DEPLOYED.verify, DEPLOYED.publish)
    steps = sum(seconds(costs.FILES) for seconds in of_steps)
    assert pytest.approx(DEPLOYED.unit(size), rel=0.01) == costs.UNIT_SECONDS
    assert pytest.approx(steps, rel=0.01) == costs.STEPS_SECONDS
    assert DEPLOYED.units(costs.FILES)[0] == costs.UNITS
    million = sum(one.cost for one in costs.million())
    assert DEPLOYED.price(costs.FILES)[0] == pytest.approx(million, abs=0.01)


# The defaults within AWS's limits.


def test_one_job_stays_below_the_limits_by_default() -> None:
    in_flight = DEPLOYED.workers * DEPLOYED.in_flight
    assert 0.9 * limits.S3_WRITES < in_flight / FASTEST < limits.S3_WRITES, "and use it"
    assert DEPLOYED.workers == MOST_WORKERS == UNITS_OF_A_JOB
    assert RANGES / FASTEST < limits.S3_READS  # of a step that reads all manifests
    assert DEFAULT <= limits.ACCOUNT / 2  # others have the rest
    assert DEPLOYED.workers <= limits.NEW
    assert DEPLOYED.shares.requests <= limits.POLLERS  # so there is nothing to wait for
    results = MAX_UNITS * len(json.dumps({"unit": MAX_UNITS, "files": 250, "lost": 0}) + ",")
    assert {"unit", "files", "lost"} <= set(UnitResult.__dataclass_fields__)
    assert results < 0.9 * limits.PAYLOAD


def test_the_largest_job_ends_within_the_time_of_its_functions() -> None:
    assert DEPLOYED.verify(MAX_JOB_FILES) < CALL_SECONDS
    assert DEPLOYED.publish(MAX_JOB_FILES) < CALL_SECONDS
    manifests = MAX_ATTEMPTS * limits.REQUEST  # as many as a request may name, read twice
    assert DEPLOYED.verify(MAX_JOB_FILES) + manifests < FUNCTIONS["decide"].timeout
    assert DEPLOYED.publish(MAX_JOB_FILES) + manifests < FUNCTIONS["end"].timeout


def test_a_unit_ends_in_time_though_all_functions_write_below_one_prefix() -> None:
    _, size = DEPLOYED.units(MAX_JOB_FILES)
    assert DEPLOYED.room * size / limits.S3_WRITES < FUNCTIONS["complete"].timeout
    for files in (100, 4_001, 10_240, 100_000):
        most, parts = unit_limits(files)
        large = min(most, parts // MAX_PARTS + 1)  # files of the most parts
        seconds = ceil(large / COMPLETE_WORKERS) * SLOWEST + most / COMPLETE_WORKERS * FASTEST
        assert seconds < FUNCTIONS["complete"].timeout
