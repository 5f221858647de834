"""The costs in docs/deploy.md are the script's, and the script's counts are the code's."""

import itertools
import re
from collections import deque
from pathlib import Path
from typing import Any

import pytest

from docs import costs
from s3commit.aws.ledger_items import SHELVES
from s3commit.core.model.limits import PAGE_FILES
from stacks.definition import definition
from stacks.functions import FUNCTIONS
from tests.core.swept import Swept
from tests.core.test_job import COMMIT_PATH
from tests.core.world import World, job_directory
from tests.docs.test_docs import printed
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


def test_the_calls_of_a_job_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a job that is not small, whose steps are calls of their own."""
    monkeypatch.setattr("s3commit.core.calls.seal_and_decide.FEW_FILES", 0)
    monkeypatch.setattr("s3commit.core.commit.verify_manifests.UNITS_OF_A_JOB", 0)
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
    world.run(job_directory())
    return dict(world.plan.counts())


def test_the_calls_of_a_sweep_with_nothing_to_do_are_counted() -> None:
    world = Swept()
    world.sweep()
    counts = dict(world.plan.counts())
    assert counts == {"jobs_in": costs.SWEEP_QUERIES}
    assert costs.SHELVES == SHELVES
    assert FUNCTIONS["sweep"].memory == costs.SWEEP_MB


def test_the_states_of_a_job_are_counted() -> None:
    assert 1 + transitions([*COMMIT_PATH, "JobCommitted"]) == costs.JOB_TRANSITIONS


def transitions(passed: list[str]) -> int:
    """How many states are entered, from the first of these to the last."""
    states = definition(dict.fromkeys(FUNCTIONS, "arn"))["States"]
    return 1 + sum(steps_between(states, *pair) for pair in itertools.pairwise(passed))


def steps_between(states: dict[str, Any], here: str, there: str) -> int:
    """How many states are entered from one to the other, without waiting and repeating."""
    seen, left = {here}, deque([(here, 0)])
    while left:
        name, count = left.popleft()
        if name == there:
            return count
        state = states[name]
        for following in (state.get("Next"), *(one["Next"] for one in state.get("Choices", []))):
            if following and following not in seen:
                seen.add(following)
                left.append((following, count + 1))
    raise AssertionError(f"no way from {here} to {there}")


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
