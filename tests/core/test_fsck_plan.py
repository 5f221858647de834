"""The plan of repairs, and what the etag of a listed file tells."""

from __future__ import annotations

from dataclasses import replace

import pytest

from s3commit.core.fsck.findings import Repair, decode_plan, encode_plan
from s3commit.core.fsck.repair import DONE, NOT_CHOSEN
from s3commit.core.fsck.verdict import Action
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.job import Conflict, Destination
from s3commit.core.ports.bundle import Ports
from tests.core.fsck_world import (
    SALES,
    Checked,
    checked,
    committed,
    file_of,
    make,
    rolled_back,
    start_upload,
)
from tests.core.world import BUCKET, JOB, NEIGHBOUR, OTHER_JOB, job_directory
from tests.fakes.execution import run_execution

# The plan.


def repairs(desk: Checked) -> list[Repair]:
    return [one for finding in desk.findings() for one in finding.repairs]


def test_a_plan_is_read_as_it_was_written() -> None:
    desk = checked(versioned=True)
    rolled_back(desk.world)
    make(desk.world, file_of(JOB, "zombie"))
    start_upload(desk.world, f"sales/part-{JOB}.x")
    desk.world.open(job_directory(OTHER_JOB))
    desk.world.request(job_directory(OTHER_JOB))
    planned = repairs(desk)
    assert {one.action for one in planned} == set(Action)
    body = b"".join(encode_plan(SALES, planned))
    assert decode_plan(body, SALES) == planned
    with pytest.raises(InvalidInputError, match="not of s3://lake/orders/"):
        decode_plan(body, Destination(BUCKET, "orders/"))


def test_i5_only_what_the_plan_names_is_repaired_and_only_as_it_was_seen() -> None:
    desk = checked()
    rolled_back(desk.world)
    for name in ("a", "b", "c"):
        make(desk.world, file_of(JOB, name))
    chosen = [one for one in repairs(desk) if "-b-" not in one.key]
    make(desk.world, file_of(JOB, "c"), b"another")
    outcomes = [one.outcomes for one in desk.repair(chosen)]
    assert outcomes == [(DONE,), (NOT_CHOSEN,), (NOT_CHOSEN,)]
    assert list(desk.world.visible()) == [file_of(JOB, "b"), file_of(JOB, "c")]


def test_i5_a_plan_that_somebody_made_up_touches_nothing() -> None:
    desk = checked()
    committed(desk.world)
    facts = desk.world.store.head(BUCKET, file_of(JOB))
    assert facts is not None
    made_up = Repair(Action.DELETE_OBJECT, "x", BUCKET, facts.key, JOB, etag=facts.etag)
    assert desk.repair([made_up]) == []
    assert list(desk.world.visible()) == [file_of(JOB)]


# What a listed file's etag tells.


@pytest.mark.parametrize(
    ("etag", "found"),
    [
        ('"0123456789abcdef0123456789abcdef-1"', ["UNSURE"]),
        ('"0-2"', ["CHANGED"]),
        ('"0"', ["CHANGED"]),
    ],
)
def test_an_etag_that_can_not_be_foretold_is_no_other_file(etag: str, found: list[str]) -> None:
    desk = checked()
    committed(desk.world)
    (version,) = desk.world.store._bucket(BUCKET).objects[file_of(JOB)]
    assert version.etag.endswith('-1"')
    without = replace(version, etag=etag, metadata={})
    desk.world.store._bucket(BUCKET).objects[file_of(JOB)] = [without]
    assert [name for name in desk.names() if not name.startswith("MARKER")] == found
    encrypted = replace(version, etag=etag)
    desk.world.store._bucket(BUCKET).objects[file_of(JOB)] = [encrypted]
    assert desk.findings() == []


def test_files_are_judged_in_batches_as_they_are_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = checked()
    for job_id in (JOB, OTHER_JOB, NEIGHBOUR):
        committed(desk.world, job_id)
        make(desk.world, file_of(job_id, "dead"), job_id=job_id)
        desk.world.store.delete(BUCKET, file_of(job_id))
    start_upload(desk.world, f"sales/x-{JOB[:-1]}9.csv")
    at_once = sorted((one.name, one.key) for one in desk.findings())
    assert len(at_once) == 8
    monkeypatch.setattr("s3commit.core.fsck.expected.BATCH_FILES", 1)
    assert sorted((one.name, one.key) for one in desk.findings()) == at_once


@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize("verb", ["job", "list"])
def test_i9_a_job_that_is_committed_while_the_check_runs_is_no_finding(
    verb: str, is_known: bool
) -> None:
    """One that is known when the check begins may replace files, too."""
    desk, other = checked(), job_directory(OTHER_JOB)
    committed(desk.world)
    desk.hands.running.add(OTHER_JOB)

    def begins() -> None:
        desk.world.open(other, conflict=Conflict.REPLACE if is_known else Conflict.APPEND)
        attempt = desk.world.attempt(other, "t0")
        desk.world.announce(other, attempt)
        desk.world.request(other, attempt)

    def commits() -> None:
        if not is_known:
            begins()
        run_execution(Ports(desk.world.store, desk.world.ledger, desk.world.clock), other)

    if is_known:
        begins()
    desk.world.plan.run_before(
        verb, commits, where=lambda call: verb == "job" or call.key == "sales/"
    )
    assert desk.findings() == []
    assert (file_of(JOB) in desk.world.visible()) is not is_known


def test_what_an_execution_is_tidying_up_is_left_to_it() -> None:
    desk = checked()
    directory = committed(desk.world)
    desk.world.attempt(directory, "late")
    desk.hands.running.add(JOB)
    assert desk.findings() == []
