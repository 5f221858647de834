"""``s3commit show --follow``: a line a state, and the exit code by the outcome."""

from __future__ import annotations

import json

import pytest

from s3commit.cli.job.document import MEANING
from s3commit.cli.job.follow import COUNT_EVERY
from s3commit.core.formats.documents import encode_result
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.ticket import Ticket
from s3commit.core.model.errors import AccessError, TransientError
from s3commit.core.model.job import Conflict, JobResult, Outcome
from s3commit.core.model.states import JobState
from tests.cli.support import JOB, OTHER, REF, SALES, TABLE, Desk, arn_of, uri_of
from tests.core.world import BUCKET, job_directory
from tests.fakes.execution import STEPS


def test_a_job_is_followed_to_its_commit(desk: Desk) -> None:
    directory = desk.requested_job()
    desk.while_it_waits(lambda: None, lambda: desk.world.run(directory))
    lines = desk.run("show", "--follow", JOB, "--table", TABLE).stdout.splitlines()
    assert [line.split()[2] for line in lines] == ["OPEN", "COMMITTED"]
    assert lines[1].endswith("ended: all files are visible: 2 files, 8 B, 8 rows")


def test_each_state_is_a_line_of_json(desk: Desk) -> None:
    directory = desk.requested_job()
    ledger, clock = desk.world.ledger, desk.world.clock

    def seal() -> object:
        first = desk.world.record(directory).generation
        held = ledger.take_over(REF, generation=first, execution="e", now=clock.now()).generation
        return ledger.advance(
            REF, source=JobState.OPEN, target=JobState.SEALED, generation=held, now=clock.now()
        )

    desk.while_it_waits(seal, lambda: desk.world.run(directory))
    output = desk.run("show", "--follow", JOB, "--table", TABLE, "--output", "json").stdout
    changes = [json.loads(line) for line in output.splitlines()]
    assert [change["state"] for change in changes] == ["OPEN", "SEALED", "COMMITTED"]
    assert [change["outcome"] for change in changes] == [None, None, "COMMITTED"]
    assert (changes[2]["files"], changes[2]["rows"]) == (2, 8)


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
    assert [change["state"] for change in changes] == ["OPEN", "OPEN", "COMMITTED"]
    assert [change["noted"] and change["noted"]["tasks"] for change in changes] == [1, 2, None]


def test_for_whom_a_job_waits_is_a_line_too(desk: Desk) -> None:
    other = desk.job_at("AcquireDestination", OTHER, conflict=Conflict.REPLACE)
    directory = desk.requested_job(JOB)

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
        ["OPEN", f"{MEANING['OPEN']}: attempts 2, tasks 2, files 2, bytes 8 B"],
        ["SEALED", MEANING["SEALED"]],
        ["SEALED", f"waits for {OTHER}"],
        ["SEALED", MEANING["SEALED"]],
        ["COMMITTED", f"{MEANING['COMMITTED']}: 2 files, 8 B, 8 rows"],
    ]


def test_s3_alone_tells_less_and_the_same_end(desk: Desk) -> None:
    directory = desk.requested_job()
    desk.environment.on_sleep = lambda: desk.world.run(directory)
    lines = desk.run("show", "--follow", uri_of(directory)).stdout.splitlines()
    assert [line.split()[2] for line in lines] == ["REQUESTED", "COMMITTED"]


@pytest.mark.parametrize("outcome", [Outcome.ABORTED, Outcome.ROLLED_BACK])
def test_a_job_that_is_not_committed_exits_3_and_says_why(desk: Desk, outcome: Outcome) -> None:
    directory = desk.requested_job()
    result = JobResult(JOB, outcome, None, 0, 0, None, None, "2026-11-21T22:00:01.000Z", "")
    desk.world.store.put(BUCKET, directory.result, encode_result(result))
    ended = desk.run("show", "--follow", uri_of(directory), exit_code=3)
    assert ended.stdout.split()[2] == outcome.value
    assert f"ended {outcome}, none of its files is visible: no reason given" in ended.stderr


def test_an_aborted_job_gives_the_pipelines_reason(desk: Desk) -> None:
    desk.aborted_job()
    ended = desk.run("show", "--follow", JOB, "--table", TABLE, exit_code=3)
    assert "driver gave up [ABORTED_BY_CLIENT]" in ended.stderr


def test_i11_a_job_whose_key_another_has_added_nothing_and_exits_0(desk: Desk) -> None:
    desk.committed_job(OTHER, idempotency_key="2026-11-21")
    directory = desk.requested_job(JOB, idempotency_key="2026-11-21")
    desk.environment.on_sleep = lambda: desk.world.run(directory)
    lines = desk.run("show", "--follow", JOB, "--table", TABLE).stdout.splitlines()
    assert lines[-1].endswith(
        f"ABORTED       nothing was added: job {OTHER} has this idempotency key"
    )
    output = desk.run("show", "--follow", JOB, "--table", TABLE, "--output", "json").stdout
    assert json.loads(output)["alreadyCommittedBy"] == OTHER


def test_a_job_that_takes_longer_exits_4_and_goes_on(desk: Desk) -> None:
    desk.requested_job()
    ended = desk.run("show", "--follow", JOB, "--table", TABLE, "--timeout", "30s", exit_code=4)
    assert f"has not ended after 30s, it is OPEN and continues; see: s3commit show {JOB}" in (
        ended.stderr
    )


def test_without_the_right_to_list_a_missing_result_is_waited_for(desk: Desk) -> None:
    directory = desk.requested_job()
    desk.world.plan.fail(
        "get", AccessError("403"), nth=2, where=lambda call: call.key == directory.result
    )
    desk.environment.on_sleep = lambda: desk.world.run(directory)
    desk.run("show", "--follow", JOB, "--destination", SALES)


def test_a_look_that_fails_in_passing_is_taken_again(desk: Desk) -> None:
    directory = desk.requested_job()
    desk.world.plan.fail(
        "get",
        TransientError("503"),
        nth=2,
        times=3,
        where=lambda call: call.key == directory.result,
    )
    desk.while_it_waits(lambda: None, lambda: None, lambda: desk.world.run(directory))
    lines = desk.run("show", "--follow", JOB, "--destination", SALES).stdout.splitlines()
    assert [line.split()[2] for line in lines] == ["COMMITTED"]


def test_a_store_that_stays_away_leaves_the_outcome_unknown(desk: Desk) -> None:
    directory = desk.requested_job()
    desk.world.plan.fail(
        "get",
        TransientError("503"),
        nth=2,
        times=None,
        where=lambda call: call.key == directory.result,
    )
    line = desk.fails("show", "--follow", JOB, "--destination", SALES, exit_code=4)
    assert "has not ended after 15m, it is unseen (503) and continues" in line


def test_a_job_that_is_nowhere_is_not_waited_for(desk: Desk) -> None:
    before = desk.environment.epoch()
    desk.fails("show", "--follow", OTHER, "--destination", SALES, exit_code=1)
    assert desk.environment.epoch() - before < 1


def test_an_interrupt_stops_the_watching_alone(desk: Desk) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    desk.requested_job()
    desk.environment.on_sleep = interrupt
    ended = desk.run("show", "--follow", JOB, "--table", TABLE, exit_code=130)
    assert ended.stderr == (
        "error: interrupted; the jobs continue, and what was requested stands\n"
    )


def test_a_bad_timeout_is_usage(desk: Desk) -> None:
    line = desk.fails("show", "--follow", JOB, "--timeout", "soon", exit_code=2)
    assert "is no age: give a number with s, m, h, d or w" in line
