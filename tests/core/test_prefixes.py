"""A deployment that has rights below some prefixes alone: what its steps touch, and jobs elsewhere.

What the roles are given for it is the matter of tests/stacks/test_rights_in_use.py.
"""

from dataclasses import replace

import pytest

from s3commit.core.formats.layout import PIPELINE, JobDirectory
from s3commit.core.model.destination import Conflict, Scope
from s3commit.core.model.errors import (
    AccessError,
    JobFailedError,
    JobRefusedError,
    NeedsOperatorError,
)
from s3commit.core.model.outcome import Outcome
from s3commit.core.model.states import JobState
from s3commit.core.sweep.sweep import DAY
from tests.core.swept import Swept, announced, sealed
from tests.core.way_back import PARTITION, REPLACE, Table
from tests.core.world import World, job_directory
from tests.fakes.faults import Call

SERVED = "sales/eu/"
PLACES = [SERVED, f"{SERVED}t/"]
# A sibling that begins alike, the directory above, and another one.
OUTSIDE = ["sales/eu-2/", "sales/", "other/t/"]


def narrow(world: World) -> World:
    """Its pipeline has rights below `SERVED` alone, for as long as its ports say so."""

    def is_denied(call: Call) -> bool:
        named = call.arguments
        keys = [one.key for one in named.get("objects", ())]
        keys += [named[name] for name in ("key", "prefix") if name in named]
        is_result = call.verb == "put" and call.key.endswith("/_result.json")
        if "bucket" not in named or is_result or world.ports.serves(""):
            return False
        return not all(key.startswith((SERVED, PIPELINE)) for key in keys)

    world.plan.fail(None, AccessError("outside"), times=None, where=is_denied)
    world.ports = replace(world.ports, prefixes=(SERVED,))
    return world


# Jobs inside


@pytest.mark.parametrize("place", PLACES)
def test_i7_jobs_of_each_policy_and_undos_touch_nothing_elsewhere(place: str) -> None:
    table = Table(narrow(World(versioned=True)))
    table.write("dt=0/", place=place, conflict=Conflict.FAIL)
    table.write("dt=4/", place=place, conflict=Conflict.FAIL, scope=Scope.PARTITION)
    wrong = table.write("dt=1/", "dt=2/", place=place, key="k")
    table.write("dt=1/", place=place, conflict=Conflict.REPLACE, scope=Scope.PARTITION)
    overwrite = table.write("dt=3/", place=place, conflict=Conflict.REPLACE)
    table.undo(overwrite)
    table.undo(wrong, leave_removed=True)
    assert table.visible() == table.replayed()


@pytest.mark.parametrize("end", ["commit", "abort", "roll back", "abandon"])
@pytest.mark.parametrize("place", PLACES)
def test_i4_a_job_inside_comes_to_its_end_and_is_swept(place: str, end: str) -> None:
    world, directory = Swept(), job_directory(prefix=place)
    narrow(world)
    attempt = world.attempt(directory, "t0")
    world.announce(directory, attempt)
    if end == "abort":
        world.request_abort(directory)
    elif end != "abandon":
        world.request(directory, attempt)
    if end == "roll back":
        world.lose_after_decision(place)
    if end != "abandon":
        world.run(directory)
    for _ in range(3):
        world.later(2 * DAY)
        assert world.sweep_and_settle().failed == 0
    expected = {"commit": Outcome.COMMITTED, "roll back": Outcome.ROLLED_BACK}
    assert world.result(directory).outcome is expected.get(end, Outcome.ABORTED)
    assert world.open_uploads() == []
    world.later(40 * DAY)
    report = world.sweep_and_settle()
    assert (report.failed, report.expired) == (0, 1)
    assert world.all_keys(directory.prefix) == []


@pytest.mark.parametrize(
    ("above", "code"),
    [
        ("appended", ""),
        ("overwrote what comes back", "REPLACED_SINCE"),
        ("overwrote what goes", "FILES_CHANGED"),
        ("overwrote it, and was undone", "FILES_CHANGED"),
        ("was undone before", "FILES_CHANGED"),
    ],
)
def test_i6_an_undo_beside_jobs_above_that_the_pipeline_sees_no_longer(
    above: str, code: str
) -> None:
    """The client sees them; what the pipeline can't explain it refuses, and says why it can't."""
    table, place = Table(World(versioned=True)), f"{SERVED}t/"

    def overwrites(partition: str) -> JobDirectory:
        return table.write(f"eu/t/{partition}", **{**PARTITION, "place": "sales/"})

    table.write("dt=1/", "dt=2/", place=place)
    if above == "was undone before":
        table.undo(overwrites("dt=1/"))
    wrong = table.write("dt=2/", "dt=3/", **{**REPLACE, "place": place})
    if above == "appended":
        table.write("eu/t/dt=1/", place="sales/")
    elif above == "overwrote what comes back":
        overwrites("dt=1/")
    elif "overwrote" in above:
        later = overwrites("dt=3/")
        if "undone" in above:
            table.undo(later)
    narrow(table.world)
    before = table.visible()
    if code:
        with pytest.raises((JobRefusedError, JobFailedError)) as refused:
            table.undo(wrong)
        assert refused.value.code == code
        assert ("s3://lake/sales/, or above" in refused.value.message) == (code == "FILES_CHANGED")
        assert table.visible() == before
    else:
        table.undo(wrong)
        assert table.visible() == table.replayed()


# Jobs elsewhere


@pytest.mark.parametrize("place", OUTSIDE)
@pytest.mark.parametrize("state", ["unknown", "OPEN", "SEALED", "ABORTING"])
def test_i4_a_job_elsewhere_ends_with_what_is_served(place: str, state: str) -> None:
    """Also one that was there before the deployment was narrowed; and nothing else changes."""
    world, directory = Swept(), job_directory(prefix=place)
    if state == "OPEN":
        announced(world, directory)
    elif state == "SEALED":
        sealed(world, directory)
    else:
        world.ask(directory)
    if state == "ABORTING":
        world.lose_uploads(place)
        world.plan.crash_after("advance", where=lambda one: one.arguments["target"] == state)
        world.dies(directory)
    before, uploads = set(world.all_keys()), world.open_uploads()
    narrow(world)
    if state == "unknown":
        world.run(directory)
    world.later(DAY)
    assert world.sweep_and_settle().failed == 0
    failure = world.failure(directory)
    assert world.record(directory).state is JobState.ABORTED
    if state == "ABORTING":
        assert failure.code == "UPLOAD_GONE"
    else:
        assert failure.code == "OUTSIDE_PREFIXES"
        assert f"serves {SERVED} alone" in failure.message
        assert "parameter prefixes" in failure.message
    of_clients = {key for key in world.all_keys() if not key.startswith(PIPELINE)}
    assert of_clients - {directory.result} == {key for key in before if key in of_clients}
    assert world.open_uploads() == uploads, "it has no right to abort them"
    world.later(40 * DAY)
    assert world.sweep_and_settle().failed == 0
    assert world.all_keys(directory.pipeline_prefix) == []


@pytest.mark.parametrize("place", OUTSIDE)
@pytest.mark.parametrize("state", ["COMMITTING", "PUBLISHING", "ROLLING_BACK"])
def test_i2_a_decided_job_elsewhere_waits_and_loses_nothing(place: str, state: str) -> None:
    world, directory = Swept(), job_directory(prefix=place)
    if state == "ROLLING_BACK":
        world.lose_after_decision(place)
    world.ask(directory, "t0", "t1")
    verb = "decide" if state == "COMMITTING" else "advance"
    world.plan.crash_after(verb, where=lambda one: one.arguments.get("target", state) == state)
    world.dies(directory)
    assert world.record(directory).state == state
    before, uploads, wide = world.visible(place), world.open_uploads(), world.ports
    narrow(world)
    with pytest.raises(NeedsOperatorError, match=f"s3://lake/{place} is outside") as told:
        world.run(directory, "execution-2")
    assert told.value.code == "OUTSIDE_PREFIXES"
    assert (world.visible(place), world.open_uploads()) == (before, uploads)
    world.ports = wide
    world.run(directory, "execution-3")
    lost = state == "ROLLING_BACK"
    assert world.result(directory).outcome == ("ROLLED_BACK" if lost else "COMMITTED")
    assert len(world.visible(place)) == (0 if lost else 2)


def test_i12_a_job_above_that_is_not_served_keeps_none_inside_from_its_uploads() -> None:
    """It would be refused, so it owns nothing; where it is served, it does."""
    for prefixes, code in (((SERVED,), ""), (("sales/",), "JOB_ID_TAKEN")):
        world, inner = World(), job_directory(prefix=SERVED)
        world.open(job_directory(prefix="sales/"))
        world.ports = replace(world.ports, prefixes=prefixes)
        world.commit(inner)
        assert world.ended(inner)[1] == code
