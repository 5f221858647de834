"""What others have encrypted, so that a HEAD or GET is refused, keeps no job from its end (I12)."""

import pytest

from s3commit.core.documents import commit_manifest
from s3commit.core.formats.layout import META_JOB
from s3commit.core.model.destination import Conflict
from s3commit.core.model.locks import key_digest
from s3commit.core.model.outcome import Outcome
from s3commit.core.model.states import ENDED, JobState
from tests.core.world import BUCKET, JOB, World, job_directory
from tests.crash.scenarios import BEFORE, KEY, POLICIES, SCENARIOS, Scenario, fill, parts
from tests.fakes.bucket import CUSTOMER, FOREIGN

DIRECTORY = job_directory()
UNSPEAKABLE = "sales/old\x01.csv"  # which a DeleteObjects request can't name
# All that a job reads, writes or deletes below its destination.
KEYS = [
    *(DIRECTORY.job, DIRECTORY.request, DIRECTORY.result, DIRECTORY.commits, DIRECTORY.success),
    *(DIRECTORY.manifest("t0", "a0"), DIRECTORY.once(key_digest(KEY))),
    *(*parts("t0", "t1"), *BEFORE, UNSPEAKABLE),
]
# The moments: before the call, the first one of its verb.
VERBS = [
    *("healing", "lock", "note", "decide", "complete_upload", "advance", "abort_upload", "head"),
    *("delete", "delete_seen", "release", "create_upload"),
]
OTHERS = b"a stranger's"
SAME = b"t0 a0"  # as long as the job's own files


@pytest.mark.parametrize("key_of", [CUSTOMER, FOREIGN])
@pytest.mark.parametrize("scenario", [*SCENARIOS, *POLICIES], ids=lambda one: one.name)
def test_i2_i12_what_others_have_encrypted_keeps_no_job_from_its_end(
    scenario: Scenario, key_of: str
) -> None:
    struck = 0
    for verb in VERBS:
        for key in KEYS:
            for body in (OTHERS, SAME):
                world = World()

                def put(world: World = world, key: str = key, body: bytes = body) -> None:
                    world.store.put(BUCKET, key, body)
                    world.store.encrypt(BUCKET, key, key_of)

                scenario.begin(world)
                world.store.put(BUCKET, UNSPEAKABLE, b"old")
                world.plan.run_before(verb, put)
                world.run(DIRECTORY)
                struck += any(call.verb == verb for call in world.plan.fired)
                check(world, f"{key} before {verb}")
    assert struck > 3 * len(KEYS)


@pytest.mark.parametrize("key_of", [CUSTOMER, FOREIGN])
def test_i12_a_long_commit_manifest_goes_over_one_that_others_have_encrypted(
    key_of: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes up in parts, and a HEAD would tell whose the one is that lies there."""
    monkeypatch.setattr(commit_manifest, "PUT_BYTES", 1)
    world = World()
    world.store._least_part = 1
    world.ask(DIRECTORY, "t0", "t1")

    def put() -> None:
        world.store.put(BUCKET, DIRECTORY.commits, OTHERS)
        world.store.encrypt(BUCKET, DIRECTORY.commits, key_of)

    world.plan.run_after("decide", put)
    world.run(DIRECTORY)
    check(world, DIRECTORY.commits)
    assert world.ended(DIRECTORY) == (Outcome.COMMITTED, "")


def check(world: World, where: str) -> None:
    """The job has ended, whole, and holds nothing."""
    record = world.record(DIRECTORY)
    assert record.state in ENDED, where
    assert world.ledger.holders == set(), where
    # An upload that was begun before the `_job.json` that is there now is nobody's.
    assert world.open_uploads("sales/") == [] or where.startswith(DIRECTORY.job), where
    versions = world.store.bucket(BUCKET).objects.items()
    own = [key for key, found in versions if found[-1].metadata.get(META_JOB) == JOB]
    assert record.state is JobState.COMMITTED or own == [], where


@pytest.mark.parametrize("key_of", [CUSTOMER, FOREIGN])
@pytest.mark.parametrize("conflict", [Conflict.APPEND, Conflict.REPLACE])
@pytest.mark.parametrize("also", ["", "gone", "wrong length"])
def test_i2_i12_uploads_under_a_key_of_others_are_completed_or_lost(
    key_of: str, conflict: Conflict, also: str
) -> None:
    """Who writes a file chooses how it is encrypted: the job is whole, whatever becomes of it."""
    world = World()
    fill(world)
    world.ask(DIRECTORY, "t0", "t1", conflict=conflict)
    world.store.encrypt(BUCKET, f"sales/part-t0-{JOB}.parquet", key_of)
    if also == "gone":
        world.lose_after_decision(f"sales/part-t1-{JOB}")
    if also == "wrong length":
        wrong = world.store.bucket(BUCKET).uploads
        spoil = [one for one in wrong.values() if "part-t1" in one.key]
        world.plan.run_after("decide", lambda: spoil[0].parts.update({1: b"longer"}))
    world.run(DIRECTORY)
    check(world, also)
    is_whole = key_of == CUSTOMER and not also
    assert world.result(DIRECTORY).outcome is (
        Outcome.COMMITTED if is_whole else Outcome.ROLLED_BACK
    )
    visible = set(world.store.bucket(BUCKET).objects)
    assert all((key in visible) is (not is_whole or conflict is Conflict.APPEND) for key in BEFORE)
