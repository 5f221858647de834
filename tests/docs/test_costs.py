"""The costs in docs/deploy.md are the script's, and the script's counts are the code's."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bench.model import Deployment
from docs import costs
from s3commit.aws.ledger_items import SHELVES
from s3commit.core.model.destination import Conflict, Scope
from s3commit.core.model.limits import PAGE_FILES
from stacks.functions import FUNCTIONS
from tests.core.swept import Swept
from tests.core.world import OTHER_JOB, REF, World, job_directory
from tests.docs.test_docs import printed
from tests.fakes.execution import run_execution
from tests.stacks.entered import entered
from tests.stacks.synthesized import properties, synthesize

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "deploy.md").read_text()
STATES = ("advance", "take_over", "decide", "note", "open_job")


def test_the_script_prints_what_each_line_costs() -> None:
    made = printed("costs.py")
    for one in (*costs.at_rest(), *costs.million()):
        assert f"| {one.what} | {one.how_often} | {one.cost:.2f} |" in made
    assert costs.PRICED in PAGE
    metrics = costs.METRICS * costs.CUSTOM_METRIC
    assert f"{costs.METRICS} metrics of its own" in PAGE
    assert f"{metrics:.2f} USD" in PAGE


def test_what_the_page_says_in_words_is_what_the_tables_say() -> None:
    rest = sum(one.cost for one in costs.at_rest())
    million = sum(one.cost for one in costs.million())
    words = " ".join(PAGE.split())
    assert f"about {rest:.0f} USD a month: {costs.sentence(costs.at_rest())}." in words
    assert f"about {million:.0f} USD, of which more than 95 % are" in words
    assert costs.million()[0].cost / million > 0.95


def test_what_the_page_on_compaction_says_is_what_requests_cost() -> None:
    (_, units, unit, steps), *_ = costs.SIZES
    one = sum(line.cost for line in costs.job(1, units=units, unit=unit, steps=steps))
    words = " ".join((ROOT / "docs" / "guide" / "compaction.md").read_text().split())
    assert f"{3 * 1000 * costs.S3_READ:.4f} USD to read them, {one:.4f} USD for a job" in words
    assert f"afterwards saves {3 * 999 * costs.S3_READ:.4f} USD" in words


def test_the_calls_of_a_job_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a job that is not small, whose steps are calls of their own."""
    as_large(monkeypatch)
    counts = [_committed(tasks) for tasks in (6, 16)]
    more = {verb: counts[1][verb] - counts[0].get(verb, 0) for verb in counts[1]}
    assert (more["get"], more["record_attempt"]) == (10 * costs.MANIFEST_READS, 10)
    assert more["complete_upload"] == 10
    few = counts[0]
    # All six files are in one page, and in one unit.
    pages, units = 1, 1
    reads = 6 * costs.MANIFEST_READS + pages * costs.PAGE_READS + units
    assert few["get"] - reads == costs.JOB_READS
    page = few["put"] - costs.JOB_WRITES, few["list"] - costs.JOB_LISTINGS
    assert sum(page) == pages * costs.PAGE_WRITES
    assert costs.FILES_PER_PAGE == PAGE_FILES
    assert few["list_uploads"] == costs.UPLOADS_LISTED
    assert {"head", "delete"}.isdisjoint(few)
    assert sum(few.get(verb, 0) for verb in STATES) == costs.JOB_RECORD_WRITES
    assert few["decide"] + 1 == costs.JOB_TRANSACTIONS  # and the end


def as_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs are as one of more than `FEW_FILES`."""
    monkeypatch.setattr("s3commit.core.model.limits.FEW_FILES", 0)
    monkeypatch.setattr("s3commit.core.commit.verify_manifests.UNITS_OF_A_JOB", 0)


def announced(tasks: int) -> World:
    """A job that waits for its execution, on a ledger that is in use."""
    world, directory = World(), job_directory()
    world.heal()
    attempts = [world.attempt(directory, f"t{number}") for number in range(tasks)]
    for attempt in attempts:
        world.announce(directory, attempt)
    world.request(directory, *attempts)
    return world


def _committed(tasks: int) -> dict[str, int]:
    world = announced(tasks)
    world.run(job_directory(), REF)
    return dict(world.plan.counts())


def test_the_calls_of_a_sweep_with_nothing_to_do_are_counted() -> None:
    world = Swept()
    world.sweep()
    counts = dict(world.plan.counts())
    assert counts == {"jobs_in": costs.SWEEP_QUERIES}
    assert costs.SHELVES == SHELVES
    assert FUNCTIONS["sweep"].memory == costs.SWEEP_MB


def begun(files: int = 3, **spec: Any) -> World:
    """A requested job of a table that has a file."""
    world, directory = World(), job_directory()
    world.heal()
    world.store.put("lake", "sales/dt=1/old.csv", b"old")
    world.open(directory, **spec)
    names = {f"dt={n % 3}/part-{n}-{directory.job_id}.csv": b"x" for n in range(files)}
    world.request(directory, world.attempt(directory, "t0", files=names))
    return world


def undoing() -> World:
    world = World()
    world.store.put("lake", "sales/old.csv", b"old")
    first = job_directory(OTHER_JOB)
    world.commit(first)
    world.open(job_directory(), conflict=Conflict.REPLACE, undoes=OTHER_JOB)
    world.request(job_directory())
    return world


def losing() -> World:
    world = begun()
    world.lose_after_decision("sales/", slice(1))
    return world


def waiting() -> World:
    """Once, for a job with the same key."""
    world = begun(idempotency_key="k")
    world.ask(job_directory(OTHER_JOB), idempotency_key="k")
    world.plan.crash_after("decide")
    world.dies(job_directory(OTHER_JOB))
    world.lose_uploads("sales/part-t0")  # so it is rolled back
    world.plan.run_after(
        "note", lambda: run_execution(world.unplanned, job_directory(OTHER_JOB), execution="2")
    )
    return world


REPLACE: dict[str, Any] = {"conflict": Conflict.REPLACE}


@pytest.mark.parametrize(
    ("world", "count", "end"),
    [
        (partial(begun, 0), 6, "JobCommitted"),
        (begun, 7, "JobCommitted"),
        (partial(begun, 100), 14, "JobCommitted"),
        (partial(begun, 1_000), 47, "JobCommitted"),
        (partial(begun, **REPLACE), 7, "JobCommitted"),
        (partial(begun, **REPLACE, scope=Scope.PARTITION), 7, "JobCommitted"),
        (undoing, 6, "JobCommitted"),
        (waiting, 10, "JobCommitted"),
        (losing, 7, "JobRolledBack"),
    ],
    ids=[
        *("no file", "append", "100 files", "1,000 files", "overwrite", "of partitions"),
        *("undo", "wait", "rollback"),
    ],
)
def test_transitions_of_a_job_are_counted(world: Callable[[], World], count: int, end: str) -> None:
    """As AWS bills them. An event goes to a catalog by a queue: with one they are as many."""
    states = entered(world(), job_directory())
    assert states[-1] == end
    assert 1 + len(states) == count


def test_the_model_has_these_transitions(monkeypatch: pytest.MonkeyPatch) -> None:
    for files, units, _, _ in costs.SIZES:
        assert 1 + len(entered(begun(files), job_directory())) == costs.transitions(files, units)
    as_large(monkeypatch)
    assert 1 + len(entered(begun(), job_directory())) == costs.JOB_TRANSITIONS + 1  # and its unit


def test_a_small_job_is_cheap() -> None:
    files, units, unit, steps = costs.SIZES[0]
    million = 1e6 * sum(one.cost for one in costs.job(files, units=units, unit=unit, steps=steps))
    assert costs.transitions(files, units) <= 8
    assert million < 450
    assert costs.small() in PAGE
    most, units, unit, steps = costs.SIZES[-1]
    lines = costs.job(most, units=units, unit=unit, steps=steps)
    usd = sum(one.cost for one in lines)
    rest = sum(one.cost for one in costs.at_rest())
    daily = f"{million * costs.JOBS_A_MONTH / 1e6:.0f} USD a month more for 1,000 jobs a day of"
    large = f"a job of {most:,} files: {usd:.2f} USD, {100 * lines[0].cost / usd:.0f} % of it S3's"
    metrics = costs.METRICS * costs.CUSTOM_METRIC
    monthly = f"{rest:.0f} to {rest + metrics:.0f} USD a month at rest; {daily} {files} files"
    assert f"{monthly}; {large} requests" in (ROOT / "README.md").read_text()
    words = " ".join(PAGE.split())
    stream = (
        f"{costs.STREAM_SECONDS} s, with three files in each, is about {costs.stream():.0f} USD"
    )
    assert stream in words
    assert f"`freshTables` adds {costs.FRESH_TABLE:.2f}, `catalogs` {costs.CATALOGS:.2f}" in words
    assert f"{costs.DATA_EVENT * 1e6:.2f} USD a million requests" in words


def test_the_seconds_of_small_jobs_are_the_models() -> None:
    model = Deployment()
    for files, units, unit, steps in costs.SIZES:
        assert model.units(files)[0] == units
        ours = model.requests(files) + model.verify(files) + model.publish(files)
        found = model.unit(model.units(files)[1]), ours
        assert (unit, steps) == pytest.approx(found, rel=0.05)


def test_alarms_and_metrics_are_those_of_the_template() -> None:
    pipeline = synthesize().pipeline
    metrics = [
        sum("MetricStat" in one for one in alarm.get("Metrics", [])) or 1
        for alarm in properties(pipeline, "AWS::CloudWatch::Alarm")
    ]
    assert sum(metrics) == costs.ALARM_METRICS
    assert len(properties(pipeline, "AWS::CloudWatch::Dashboard")) == 1
    vocabulary = (ROOT / "layers/s3commit/python/s3commit/aws/env.py").read_text()
    own = re.findall(
        r"^[A-Z0-9_]+: Final = \"[A-Z]", vocabulary.split("# Metrics:")[1], re.MULTILINE
    )
    assert len(own) == costs.METRICS
