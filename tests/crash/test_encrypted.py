"""What others have encrypted, so that a HEAD or GET is refused, keeps no job from its end (I12)."""

import pytest

from s3commit.core.formats.layout import META_JOB
from s3commit.core.model.destination import Conflict
from s3commit.core.model.outcome import Outcome
from s3commit.core.model.states import ENDED, JobState
from tests.core.world import BUCKET, JOB, World, job_directory
from tests.crash.scenarios import BEFORE, fill
from tests.fakes.bucket import CUSTOMER, FOREIGN

DIRECTORY = job_directory()
OTHERS = b"a stranger's"


@pytest.mark.parametrize("key_of", [CUSTOMER, FOREIGN])
@pytest.mark.parametrize(
    "key", [DIRECTORY.result, DIRECTORY.commits, DIRECTORY.success, "sales/old.parquet"]
)
def test_i12_what_others_encrypted_before_keeps_a_job_from_no_end(key: str, key_of: str) -> None:
    world = World()
    world.ask(DIRECTORY, conflict=Conflict.REPLACE)
    world.store.put(BUCKET, key, OTHERS)
    world.store.encrypt(BUCKET, key, key_of)
    world.run(DIRECTORY)
    check(world)


def check(world: World) -> None:
    """The job has ended, whole, and holds nothing."""
    record = world.record(DIRECTORY)
    assert record.state in ENDED
    assert world.ledger.holders == set()
    assert world.open_uploads("sales/") == []
    versions = world.store.bucket(BUCKET).objects.items()
    own = [key for key, found in versions if found[-1].metadata.get(META_JOB) == JOB]
    assert record.state is JobState.COMMITTED or own == []


@pytest.mark.parametrize("key_of", [CUSTOMER, FOREIGN])
@pytest.mark.parametrize("conflict", [Conflict.APPEND, Conflict.REPLACE])
@pytest.mark.parametrize("also", ["", "gone", "wrong length"])
def test_i2_i12_uploads_under_others_keys_end(key_of: str, conflict: Conflict, also: str) -> None:
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
    check(world)
    is_whole = key_of == CUSTOMER and not also
    assert world.result(DIRECTORY).outcome is (
        Outcome.COMMITTED if is_whole else Outcome.ROLLED_BACK
    )
    visible = set(world.store.bucket(BUCKET).objects)
    assert all((key in visible) is (not is_whole or conflict is Conflict.APPEND) for key in BEFORE)
