"""``s3commit show``: what a job may do to others, what others do to it, and why it ended so."""

from __future__ import annotations

from typing import Any

import pytest

from s3commit.cli import printer
from s3commit.cli.job import document as job_document
from s3commit.core.model.conditions import Conditions
from s3commit.core.model.errors import AccessError
from s3commit.core.model.job import Conflict, Scope
from s3commit.core.model.states import JobState
from tests.cli.support import JOB, OTHER, SALES, TABLE, THIRD, Desk, arn_of, uri_of
from tests.cli.test_show import text_of
from tests.core.world import BUCKET

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


def test_the_ledger_tells_the_policy_of_a_job_that_lost_its_document(desk: Desk) -> None:
    directory = desk.job_at("VerifyManifests", **DAY, idempotency_key="k")
    desk.world.store.delete(BUCKET, directory.job)
    document = shown(desk)
    assert (document["conflict"], document["scope"]) == ("replace", "partition")
    assert (document["idempotencyKey"], document["conditions"]) == ("k", None)


def test_a_job_says_what_it_holds(desk: Desk) -> None:
    desk.job_at("AcquireDestination", **DAY, files={f"dt=1/part-{JOB}.csv": b"x"})
    assert "locks holds node lake/sales/dt=1/, mode X\n" in text_of(
        desk, "show", JOB, "--table", TABLE
    )
    locks = shown(desk)["locks"]
    assert locks["holds"] == [{"node": "lake/sales/dt=1/", "mode": "X"}]
    assert (locks["waits"], locks["waitsSince"], locks["inTheWay"]) == ([], None, [])


def test_i11_a_key_is_held_like_a_place(desk: Desk) -> None:
    desk.job_at("AcquireDestination", idempotency_key="daily")
    text = text_of(desk, "show", JOB, "--table", TABLE)
    assert "locks holds node lake/sales/, mode S\n" in text


def test_of_many_partitions_text_shows_some_and_json_all(desk: Desk) -> None:
    files = {f"dt={day}/part-{JOB}.csv": b"x" for day in range(20)}
    desk.job_at("AcquireDestination", **DAY, files=files)
    text = text_of(desk, "show", JOB, "--table", TABLE)
    assert text.count("node lake/sales/dt=") == printer.SHOWN
    assert "and 15 more; --output json has them all" in text
    assert sum(claim["mode"] == "X" for claim in shown(desk)["locks"]["holds"]) == 20


def test_a_job_that_waits_says_since_when_for_what_and_for_whom(desk: Desk) -> None:
    desk.job_at("DecideCommit", OTHER, conflict=Conflict.REPLACE)
    desk.job_at("AcquireDestination", JOB)
    desk.world.clock.advance(70)
    text = text_of(desk, "show", JOB, "--table", TABLE)
    assert "locks waits node lake/sales/, mode S\n" in text
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
        "nothing while these jobs, which go first, have live executions",
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


def test_many_in_the_way_are_counted(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_document, "SHOWN_BLOCKERS", 1)
    desk.job_at("AcquireDestination", OTHER)
    desk.job_at("AcquireDestination", THIRD)
    desk.job_at("AcquireDestination", JOB, conflict=Conflict.REPLACE)
    assert shown(desk)["next"][-1] == "and 1 more job"
    assert len(shown(desk)["locks"]["inTheWay"]) == 2


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


def test_one_that_will_not_be_committed_is_no_reason_to_worry(desk: Desk) -> None:
    directory = desk.job_at("AcquireDestination", OTHER, conflict=Conflict.REPLACE)
    desk.job_at("AcquireDestination", JOB)
    record = desk.world.record(directory)
    desk.world.ledger.advance(
        directory.ref,
        source=JobState.SEALED,
        target=JobState.ABORTING,
        generation=record.generation,
        now=desk.world.clock.now(),
    )
    document = shown(desk)
    assert (document["locks"]["inTheWay"], len(document["next"])) == ([], 1)


def test_who_may_not_look_at_executions_sees_all_the_rest(desk: Desk) -> None:
    desk.job_at("DecideCommit", OTHER, conflict=Conflict.REPLACE)
    desk.job_at("AcquireDestination", JOB)
    desk.executions.refusal = AccessError("not authorized: states:DescribeExecution")
    document = shown(desk)
    assert document["problems"] == [
        "executions can not be looked at: not authorized: states:DescribeExecution"
    ]
    assert document["next"][1].endswith(f"its execution not known: s3commit show {OTHER}")


def test_i10_what_is_replaced_is_said_by_what_became_of_it(desk: Desk) -> None:
    desk.committed_job(OTHER)
    directory = desk.job_at("CheckConditions", JOB, conflict=Conflict.REPLACE)
    text = text_of(desk, "show", JOB, "--table", TABLE)
    assert "replaced files 2, bytes 8 B\n" in text
    assert shown(desk)["replaced"] == {"files": 2, "bytes": 8}
    listed = desk.run("show", JOB, "--table", TABLE, "--replaced")
    assert [line.split()[-1] for line in listed.stdout.splitlines()] == [
        f"sales/part-0-{OTHER}.parquet",
        f"sales/part-1-{OTHER}.parquet",
    ]
    assert listed.stderr == f"2 files that job {JOB} replaces: SEALED\n"
    document = desk.json("show", JOB, "--table", TABLE, "--replaced")
    assert [file["bytes"] for file in document["replaced"]] == [4, 4]
    desk.world.run(directory)
    text = text_of(desk, "show", JOB, "--table", TABLE)
    assert "rows 8, replaced 2, decided" in text
    assert shown(desk)["result"]["replaced"] == 2


def test_a_replace_list_that_is_not_there_is_one_line(desk: Desk) -> None:
    directory = desk.committed_job(JOB)
    line = desk.fails("show", JOB, "--table", TABLE, "--replaced", exit_code=1)
    assert "has no replace list: it is COMMITTED, with conflict 'append'" in line
    desk.committed_job(OTHER, conflict=Conflict.REPLACE)
    line = desk.fails("show", OTHER, "--table", TABLE, "--replaced", exit_code=1)
    assert f"the replace list of job {OTHER} is gone" in line
    line = desk.fails("show", uri_of(directory), "--replaced", exit_code=2)
    assert "name it with --table" in line


def test_i11_a_job_whose_key_another_has_says_that_nothing_was_added(desk: Desk) -> None:
    desk.committed_job(OTHER, idempotency_key="daily")
    directory = desk.committed_job(JOB, idempotency_key="daily")
    text = text_of(desk, "show", uri_of(directory))
    assert f"state ABORTED\nmeans nothing was added: job {OTHER} has this idempotency key\n" in text
    assert "error code ALREADY_COMMITTED\n" in text
    document = shown(desk)
    assert document["alreadyCommittedBy"] == OTHER
    assert document["next"] == [f"nothing, the data is there: s3commit ls {SALES} --files {OTHER}"]


def test_a_key_that_looks_like_a_job_does_not_mislead(desk: Desk) -> None:
    key = f"by job {THIRD};"
    desk.committed_job(OTHER, idempotency_key=key)
    desk.committed_job(JOB, idempotency_key=key)
    assert shown(desk)["alreadyCommittedBy"] == OTHER


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        ({"conflict": Conflict.FAIL}, "DESTINATION_NOT_EMPTY"),
        ({"conditions": Conditions(min_rows=100)}, "CONDITION_FAILED"),
    ],
)
def test_a_refused_job_says_the_figure_and_what_to_do(
    desk: Desk, spec: dict[str, Any], code: str
) -> None:
    desk.committed_job(OTHER)
    desk.committed_job(JOB, **spec)
    document = shown(desk)
    assert document["error"]["code"] == code
    assert document["next"][0].endswith(document["advice"]["do"])
    text = text_of(desk, "show", JOB, "--table", TABLE)
    assert f"error code {code}\n" in text
    assert f"advice means {document['advice']['means']}\n" in text
