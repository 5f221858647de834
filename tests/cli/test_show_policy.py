"""``s3commit show``: what a job may do to others, what others do to it, and why it ended so."""

from __future__ import annotations

from typing import Any

from s3commit.cli import render
from s3commit.core.model.job import Conditions, Conflict, Scope
from tests.cli.support import JOB, OTHER, TABLE, THIRD, Desk, arn_of, uri_of
from tests.cli.test_show import text_of

DAY: dict[str, Any] = {
    "conflict": Conflict.REPLACE,
    "scope": Scope.PARTITION,
    "partition_by": ("dt",),
}


def shown(desk: Desk, job_id: str = JOB) -> Any:
    return desk.json("show", job_id, "--table", TABLE)


def test_the_policy_is_shown_whole(desk: Desk) -> None:
    directory = desk.requested_job(
        **DAY,
        idempotency_key="sales 2026-11-21",
        conditions=Conditions(min_rows=1, max_rows=9),
    )
    text = text_of(desk, "show", uri_of(directory))
    assert (
        "conflict replace\nscope partition\npartition by dt\n"
        "idempotency key sales 2026-11-21\n"
        "conditions min rows 1, max rows 9\n"
    ) in text
    document = desk.json("show", uri_of(directory))
    assert document["conditions"] == {"minRows": 1, "maxRows": 9}
    assert document["idempotencyKey"] == "sales 2026-11-21"


def test_a_job_says_what_it_holds(desk: Desk) -> None:
    desk.job_at("AcquireDestination", **DAY, files={f"dt=1/part-{JOB}.csv": b"x"})
    text = text_of(desk, "show", JOB, "--table", TABLE)
    assert "locks stage HELD\nlocks claims node lake/sales/dt=1/, mode X\n" in text
    locks = shown(desk)["locks"]
    assert locks["claims"] == [{"node": "lake/sales/dt=1/", "mode": "X"}]
    assert (locks["stage"], locks["waitsSince"], locks["inTheWay"]) == ("HELD", None, [])


def test_of_many_partitions_text_shows_some_and_json_all(desk: Desk) -> None:
    files = {f"dt={day}/part-{JOB}.csv": b"x" for day in range(60)}
    desk.job_at("AcquireDestination", **DAY, files=files)
    text = text_of(desk, "show", JOB, "--table", TABLE)
    assert text.count("node lake/sales/dt=") == render.SHOWN
    assert "and 10 more; --output json has them all" in text
    assert sum(claim["mode"] == "X" for claim in shown(desk)["locks"]["claims"]) == 60


def test_a_job_that_waits_says_since_when_for_what_and_for_whom(desk: Desk) -> None:
    desk.job_at("DecideCommit", OTHER, conflict=Conflict.REPLACE)
    desk.job_at("AcquireDestination", JOB)
    desk.world.clock.advance(70)
    text = text_of(desk, "show", JOB, "--table", TABLE)
    assert "locks stage WAITING\nlocks claims node lake/sales/, mode S\n" in text
    assert (
        f"locks in the way job id {OTHER}, state COMMITTING, node lake/sales/, mode X, holds yes,"
        " unchanged 1m 10s, execution"
    ) in text
    document = shown(desk)
    assert document["locks"]["waitsSeconds"] == 70
    (other,) = document["locks"]["inTheWay"]
    assert (other["jobId"], other["mode"], other["holds"]) == (OTHER, "X", True)
    assert (other["execution"], other["executionStatus"]) == (arn_of(OTHER), "RUNNING")
    assert document["next"] == [
        "nothing while these jobs run, which go first",
        f"job {OTHER} is COMMITTING, its execution RUNNING: s3commit show {OTHER}",
    ]
    assert shown(desk, OTHER)["locks"]["inTheWay"] == []
    assert shown(desk, OTHER)["locks"]["keptWaiting"] == [JOB]
    assert f"locks kept waiting {JOB}\n" in text_of(desk, "show", OTHER, "--table", TABLE)
    desk.job_at("AcquireDestination", THIRD)
    assert shown(desk, OTHER)["locks"]["keptWaiting"] == [THIRD, JOB]


def test_who_waits_for_longer_is_in_the_way_too(desk: Desk) -> None:
    desk.job_at("AcquireDestination", THIRD)
    desk.job_at("AcquireDestination", OTHER, conflict=Conflict.REPLACE)
    desk.job_at("AcquireDestination", JOB)
    (other,) = shown(desk)["locks"]["inTheWay"]
    assert (other["jobId"], other["mode"], other["holds"]) == (OTHER, "X", False)


def test_a_decided_holder_whose_execution_died_is_named_with_the_way_out(desk: Desk) -> None:
    desk.job_at("DecideCommit", OTHER, conflict=Conflict.REPLACE)
    desk.job_at("AcquireDestination", JOB)
    desk.dies(OTHER)
    assert shown(desk)["next"][1] == (
        f"job {OTHER} is COMMITTING, its execution FAILED: s3commit commit {OTHER}"
    )
    assert shown(desk, OTHER)["next"] == [
        f"its execution is FAILED: s3commit commit {OTHER} starts another, which continues"
    ]


def test_i10_what_is_replaced_is_said_by_what_became_of_it(desk: Desk) -> None:
    desk.committed_job(OTHER)
    directory = desk.job_at("CheckConditions", JOB, conflict=Conflict.REPLACE)
    text = text_of(desk, "show", JOB, "--table", TABLE)
    assert "replaced files 2, bytes 8 B\n" in text
    assert shown(desk)["replaced"] == {"files": 2, "bytes": 8}
    desk.world.run(directory)
    text = text_of(desk, "show", JOB, "--table", TABLE)
    assert "rows 8, replaced 2, decided" in text
    assert shown(desk)["result"]["replaced"] == 2
