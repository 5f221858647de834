"""``s3commit show --follow``: a line a state, and the exit code by the outcome."""

from __future__ import annotations

import json

import pytest

from s3commit.cli.advice import MEANING, meaning_of
from s3commit.cli.show import COUNT_EVERY
from s3commit.core.formats.documents import encode_result
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.ticket import Ticket
from s3commit.core.model.errors import TransientError
from s3commit.core.model.job import Conflict, JobResult, Outcome
from tests.cli.support import JOB, OTHER, SALES, TABLE, Desk, arn_of, uri_of
from tests.core.world import BUCKET, job_directory
from tests.fakes.execution import STEPS


def test_the_progress_of_an_open_job_is_counted_twice_a_minute(desk: Desk) -> None:
    world, directory = desk.world, job_directory(JOB)
    attempts = [world.attempt(directory, task) for task in "01"]
    world.announce(directory, attempts[0])

    desk.while_it_waits(
        lambda: world.announce(directory, attempts[1]),
        lambda: world.clock.advance(COUNT_EVERY),
        lambda: world.request(directory, *attempts),
        lambda: world.run(directory),
    )
    output = desk.run("show", "--follow", JOB, "--table", TABLE, "--output", "json").stdout
    changes = [json.loads(line) for line in output.splitlines()]
    assert [change["state"] for change in changes] == ["OPEN", "OPEN", "OPEN", "COMMITTED"]
    assert [change["noted"] and change["noted"]["tasks"] for change in changes] == [1, 2, 2, None]
    assert "its end was requested" in changes[2]["means"]


def test_for_whom_a_job_waits_is_a_line_too(desk: Desk) -> None:
    other = desk.job_at("AcquireDestination", OTHER, conflict=Conflict.REPLACE)
    directory = desk.requested_job(JOB, conflict=Conflict.REPLACE)

    def step(job: JobDirectory, *names: str) -> Ticket:
        ticket = Ticket(job.job_id, job.bucket, job.prefix, execution=arn_of(job.job_id))
        for name in names:
            ticket = STEPS[name](desk.world.ports, ticket)
        return ticket

    desk.while_it_waits(
        lambda: step(directory, "SealJob"),
        lambda: step(directory, "SealJob", "VerifyManifests", "AcquireDestination"),
        lambda: None,
        lambda: desk.world.run(other),
        lambda: desk.world.run(directory),
    )
    lines = desk.run("show", "--follow", JOB, "--table", TABLE).stdout.splitlines()
    assert [line[21:].split(maxsplit=1) for line in lines] == [
        ["OPEN", f"{meaning_of('OPEN', None, requested=True)}: 2 tasks done, 2 files, 8 B"],
        ["SEALED", MEANING["SEALED"]],
        ["SEALED", f"waits for {OTHER}"],
        ["SEALED", MEANING["SEALED"]],
        ["COMMITTED", f"{MEANING['COMMITTED']}: 2 files, 8 B, 8 rows"],
    ]


@pytest.mark.parametrize("outcome", [Outcome.ABORTED, Outcome.ROLLED_BACK])
def test_a_job_that_is_not_committed_exits_3_and_says_why(desk: Desk, outcome: Outcome) -> None:
    directory = desk.requested_job()
    result = JobResult(JOB, outcome, None, 0, 0, None, None, "2026-11-21T22:00:01.000Z", "")
    desk.world.store.put(BUCKET, directory.result, encode_result(result))
    ended = desk.run("show", "--follow", uri_of(directory), exit_code=3)
    assert ended.stdout.split()[2] == outcome.value
    assert f"ended {outcome}, none of its files is visible: no reason given" in ended.stderr


def test_i11_a_job_whose_key_another_has_added_nothing_and_exits_0(desk: Desk) -> None:
    desk.committed_job(OTHER, idempotency_key="2026-11-21")
    directory = desk.requested_job(JOB, idempotency_key="2026-11-21")
    desk.environment.on_sleep = lambda: desk.world.run(directory)
    lines = desk.run("show", "--follow", JOB, "--table", TABLE).stdout.splitlines()
    assert "  ABORTED       nothing was added: another job has this idempotency key" in lines[-1]
    output = desk.run("show", "--follow", JOB, "--table", TABLE, "--output", "json").stdout
    assert OTHER in json.loads(output)["error"]["message"]


def test_a_job_that_takes_longer_exits_4_and_goes_on(desk: Desk) -> None:
    desk.requested_job()
    ended = desk.run("show", "--follow", JOB, "--table", TABLE, "--timeout", "30s", exit_code=4)
    assert "has not ended after 30s, it is OPEN and continues; see: s3commit show" in ended.stderr


def test_a_look_that_fails_in_passing_is_taken_again(desk: Desk) -> None:
    directory = desk.requested_job()
    desk.world.plan.fail("list", TransientError("503"), times=3)
    desk.while_it_waits(lambda: None, lambda: None, lambda: desk.world.run(directory))
    lines = desk.run("show", "--follow", JOB, "--destination", SALES).stdout.splitlines()
    assert [line.split()[2] for line in lines] == ["COMMITTED"]


def test_a_store_that_stays_away_leaves_the_outcome_unknown(desk: Desk) -> None:
    desk.requested_job()
    desk.world.plan.fail("list", TransientError("503"), times=None)
    line = desk.fails("show", "--follow", JOB, "--destination", SALES, exit_code=4)
    assert "has not ended after 15m, it is unseen (503) and continues" in line


def test_an_interrupt_stops_the_watching_alone(desk: Desk) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    desk.requested_job()
    desk.environment.on_sleep = interrupt
    ended = desk.run("show", "--follow", JOB, "--table", TABLE, exit_code=130)
    assert ended.stderr == (
        "Error: interrupted; the jobs continue, and what was requested stands\n"
    )
