"""The jobs whose every call is a crash point, and what is true when each has ended."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from s3commit.core.model.destination import Conflict, Scope
from s3commit.core.model.locks import key_digest
from s3commit.core.model.outcome import Outcome
from s3commit.core.ports.bundle import Ports
from tests.core.world import BUCKET, JOB, OTHER_JOB, World, job_directory
from tests.fakes.execution import run_execution
from tests.fakes.faults import FaultPlan

KEY = "2026-11-21"
BEFORE = {"sales/old.csv": b"old", "sales/dt=1/old.csv": b"old 1", "sales/dt=2/old.csv": b"old 2"}
OTHERS_FILE = f"sales/part-t0-{OTHER_JOB}.parquet"


@dataclass(frozen=True)
class Scenario:
    """A job on a bucket without versions: no step looks at them, and the simulation has both.

    ``visible`` is the data at the destination when the job has ended, by key.
    """

    prepare: Callable[[World], None]
    outcome: Outcome
    visible: Mapping[str, bytes]
    code: str = ""

    @property
    def name(self) -> str:
        return self.prepare.__name__

    def begin(self, world: World) -> World:
        """The world with the job, and a stranger's upload beside it."""
        world.store.create_upload(BUCKET, "sales2/theirs", metadata={}, content_type="x")
        self.prepare(world)
        return world


def part(task: str, directory: str = "") -> str:
    return f"{directory}part-{task}-{JOB}.parquet"


def parts(*tasks: str) -> dict[str, bytes]:
    return {f"sales/{part(task)}": f"{task} a0".encode() for task in tasks}


def committing(world: World) -> None:
    """A job of three tasks, one of them with two finished attempts and one attempt killed."""
    directory = job_directory()
    counted = [world.attempt(directory, f"t{number}") for number in range(3)]
    world.attempt(directory, "t0", "loser")
    world.store.create_upload(
        BUCKET, f"sales/part-t9-{directory.job_id}.x", metadata={}, content_type=""
    )
    world.request(directory, *counted)


def aborting(world: World) -> None:
    """A job whose driver gave up."""
    directory = job_directory()
    world.attempt(directory, "t0")
    world.request_abort(directory)


def refused(world: World) -> None:
    """A job that counts a manifest whose upload is gone before the decision."""
    directory = job_directory()
    counted = [world.attempt(directory, f"t{number}") for number in range(2)]
    world.lose_uploads("sales/", slice(1))
    world.request(directory, *counted)


def rolling_back(world: World) -> None:
    """A job that loses an upload after its decision."""
    world.ask(job_directory(), "t0", "t1", "t2")
    lose_upload(world)


def lose_upload(world: World, name: str = part("t1")) -> None:
    """An upload is lost after the decision."""

    def lose() -> None:
        world.lose_uploads(f"sales/{name}")

    # Twice: the first completion may be the very crash point, and then it does not happen.
    world.plan.run_before("complete_upload", lose).run_before("complete_upload", lose, nth=2)


def fill(world: World) -> None:
    for key, body in BEFORE.items():
        world.store.put(BUCKET, key, body)


def replacing_directory(world: World) -> None:
    """A job in whose place nothing of before remains."""
    fill(world)
    world.ask(job_directory(), "t0", "t1", conflict=Conflict.REPLACE)


def replacing_partitions(world: World) -> None:
    """A job that replaces two partitions, one of them the root, of three."""
    fill(world)
    directory = job_directory()
    world.open(directory, conflict=Conflict.REPLACE, scope=Scope.PARTITION)
    files = {part("t0"): b"at the root", part("t0", "dt=1/"): b"new 1"}
    world.request(directory, world.attempt(directory, "t0", files=files))


def replacing_rolled_back(world: World) -> None:
    """A job that would replace, and loses an upload after its decision."""
    replacing_directory(world)
    lose_upload(world)


def failing_on_files(world: World) -> None:
    """A job that wants nobody's files in its way, and finds some."""
    fill(world)
    world.ask(job_directory(), conflict=Conflict.FAIL)


def keyed(world: World) -> None:
    """A job with an idempotency key."""
    world.ask(job_directory(), idempotency_key=KEY)


def keyed_again(world: World) -> None:
    """A job whose key another one was committed under."""
    other = job_directory(OTHER_JOB)
    world.ask(other, idempotency_key=KEY)
    run_execution(Ports(world.store, world.ledger, world.clock), other)
    keyed(world)


def undoing(world: World) -> None:
    """A job that undoes another, which had replaced a file, and frees its key."""
    world.store.put(BUCKET, "sales/old.csv", b"old")
    other, directory = job_directory(OTHER_JOB), job_directory()
    world.ask(other, conflict=Conflict.REPLACE, idempotency_key=KEY)
    run_execution(Ports(world.store, world.ledger, world.clock), other)
    world.open(directory, conflict=Conflict.REPLACE, undoes=OTHER_JOB)
    copies = {part("t0"): b"old"}
    counted = world.attempt(directory, "t0", files=copies, origin="sales/old.csv")
    world.request(directory, counted)


def undoing_rolled_back(world: World) -> None:
    """A job that would undo another, and loses what it brings back after its decision."""
    undoing(world)
    lose_upload(world, part("t0"))


def lose(world: World) -> None:
    """The table is empty, and nothing fails any more."""
    world.ledger.lose()
    world.plan = FaultPlan()
    world.ports = world.unplanned


SCENARIOS = [
    Scenario(committing, Outcome.COMMITTED, parts("t0", "t1", "t2")),
    Scenario(aborting, Outcome.ABORTED, {}, "ABORTED_BY_CLIENT"),
    Scenario(refused, Outcome.ABORTED, {}, "UPLOAD_GONE"),
    Scenario(rolling_back, Outcome.ROLLED_BACK, {}, "UPLOADS_LOST"),
]

POLICIES = [
    Scenario(replacing_directory, Outcome.COMMITTED, parts("t0", "t1")),
    Scenario(
        replacing_partitions,
        Outcome.COMMITTED,
        {
            f"sales/{part('t0')}": b"at the root",
            f"sales/{part('t0', 'dt=1/')}": b"new 1",
            "sales/dt=2/old.csv": b"old 2",
        },
    ),
    Scenario(replacing_rolled_back, Outcome.ROLLED_BACK, BEFORE, "UPLOADS_LOST"),
    Scenario(failing_on_files, Outcome.ABORTED, BEFORE, "DESTINATION_NOT_EMPTY"),
    Scenario(keyed, Outcome.COMMITTED, parts("t0")),
    Scenario(undoing, Outcome.COMMITTED, {f"sales/{part('t0')}": b"old"}),
    Scenario(undoing_rolled_back, Outcome.ROLLED_BACK, {OTHERS_FILE: b"t0 a0"}, "UPLOADS_LOST"),
    Scenario(keyed_again, Outcome.ABORTED, {OTHERS_FILE: b"t0 a0"}, "ALREADY_COMMITTED"),
]


def check_ended(world: World, scenario: Scenario) -> None:
    """What holds of an ended job, by I2, I4, I5, I6, I9, I10 and I11."""
    directory = job_directory()
    assert world.ended(directory) == (scenario.outcome, scenario.code)
    assert world.visible() == scenario.visible
    marker = world.store.head(BUCKET, directory.success)
    if scenario.outcome is Outcome.COMMITTED:
        assert world.json(directory.success)["jobId"] == directory.job_id
        assert world.store.head(BUCKET, directory.commits) is not None
    else:
        assert marker is None or world.json(directory.success)["jobId"] != directory.job_id
        assert world.store.head(BUCKET, directory.commits) is None
    if scenario.prepare in {keyed, keyed_again}:
        winner = JOB if scenario.prepare is keyed else OTHER_JOB
        for note in (directory.once(key_digest(KEY)), directory.key_note(key_digest(KEY))):
            assert world.json(note)["jobId"] == winner
    if scenario.prepare in {undoing, undoing_rolled_back}:
        is_free = scenario.prepare is undoing
        note = world.json(directory.key_note(key_digest(KEY)))
        assert note.get("undoneBy") == (JOB if is_free else None)
        assert (world.ledger.key_holder(directory.destination, key_digest(KEY)) is None) == is_free
    assert world.open_uploads("sales/") == []
    assert world.open_uploads("sales2/") == ["sales2/theirs"]
    assert not [key for key in world.all_keys(directory.tasks) if key.endswith(".pendingset")]
    assert world.ledger.holders == set()
