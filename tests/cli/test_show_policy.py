"""``s3commit show``: what a job may do to others, what others do to it, and why it ended so."""

from __future__ import annotations

from typing import Any

from s3commit.cli import render
from s3commit.core.model.job import Conditions, Conflict, Scope
from tests.cli.support import JOB, OTHER, TABLE, Desk, arn_of, uri_of
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


def test_a_job_says_what_it_has_locked(desk: Desk) -> None:
    desk.job_at("AcquireDestination", **DAY, files={f"dt=1/part-{JOB}.csv": b"x"})
    assert "locks nodes lake/sales/dt=1/\n" in text_of(desk, "show", JOB, "--table", TABLE)
    assert shown(desk)["locks"] == {
        "nodes": ["lake/sales/dt=1/"],
        "waitsSeconds": None,
        "inTheWay": [],
    }
    desk.job_at("AcquireDestination", OTHER)  # an append
    assert shown(desk, OTHER)["locks"] is None


def test_of_many_partitions_text_shows_some_and_json_all(desk: Desk) -> None:
    files = {f"dt={day}/part-{JOB}.csv": b"x" for day in range(60)}
    desk.job_at("AcquireDestination", **DAY, files=files)
    text = text_of(desk, "show", JOB, "--table", TABLE)
    assert text.count("lake/sales/dt=") == render.SHOWN
    assert "and 10 more; --output json has them all" in text
    assert len(shown(desk)["locks"]["nodes"]) == 60


def test_a_job_that_waits_says_since_when_and_for_whom(desk: Desk) -> None:
    holder = desk.job_at("DecideCommit", OTHER, conflict=Conflict.REPLACE)
    desk.job_at("AcquireDestination", JOB, conflict=Conflict.REPLACE)
    desk.world.clock.advance(70)
    text = text_of(desk, "show", JOB, "--table", TABLE)
    assert (
        f"locks in the way job id {OTHER}, state COMMITTING, destination s3://lake/sales/,"
        " nodes lake/sales/, unchanged 1m 10s, execution"
    ) in text
    document = shown(desk)
    assert (document["locks"]["nodes"], document["locks"]["waitsSeconds"]) == ([], 70)
    (other,) = document["locks"]["inTheWay"]
    assert (other["jobId"], other["nodes"]) == (OTHER, ["lake/sales/"])
    assert (other["execution"], other["executionStatus"]) == (arn_of(OTHER), "RUNNING")
    assert document["next"] == [
        "nothing while these jobs run, which go first",
        f"job {OTHER} is COMMITTING, its execution RUNNING: s3commit show {OTHER} --table {TABLE}",
    ]
    assert shown(desk, OTHER)["locks"]["inTheWay"] == []
    desk.world.run(holder)
    assert shown(desk)["locks"] is None


def test_who_has_its_locks_waits_for_the_jobs_below(desk: Desk) -> None:
    desk.job_at("DecideCommit", OTHER, **DAY, files={f"dt=1/part-{OTHER}.csv": b"x"})
    desk.job_at("AcquireDestination", JOB, conflict=Conflict.REPLACE)
    locks = shown(desk)["locks"]
    assert locks["nodes"] == ["lake/sales/"]
    assert [(one["jobId"], one["nodes"]) for one in locks["inTheWay"]] == [
        (OTHER, ["lake/sales/dt=1/"])
    ]


def test_a_decided_holder_whose_execution_died_is_named_with_the_way_out(desk: Desk) -> None:
    desk.job_at("DecideCommit", OTHER, conflict=Conflict.REPLACE)
    desk.job_at("AcquireDestination", JOB, conflict=Conflict.REPLACE)
    desk.dies(OTHER)
    assert shown(desk)["next"][1] == (
        f"job {OTHER} is COMMITTING, its execution FAILED: s3commit commit {OTHER} --table {TABLE}"
    )
    assert shown(desk, OTHER)["next"] == [
        f"its execution is FAILED: s3commit commit {OTHER} --table {TABLE} starts another, which"
        " continues"
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
