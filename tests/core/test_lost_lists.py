"""Whatever vanishes of a job, at whatever moment: it ends, and its end is true.

By itself, or by `s3commit abort --lists-lost`, which is an execution that only a person can start.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest

from s3commit.core.documents.request_json import CommitRequest, encode_request
from s3commit.core.documents.result_json import JobResult
from s3commit.core.formats.layout import PIPELINE, JobDirectory
from s3commit.core.formats.strict_json import LONGEST_LINE
from s3commit.core.model.destination import Conflict, Scope
from s3commit.core.model.errors import JobFailedError, S3CommitError
from s3commit.core.model.limits import FUNCTION_CLOCKS, LONGEST_CALL
from s3commit.core.model.moments import seconds
from s3commit.core.model.outcome import LISTS_LOST, Failure, Outcome
from s3commit.core.model.states import ENDED, JobState
from s3commit.writer.requests import require_committed
from tests.core.policy_world import DATA, DT1, DT2, fill, new, start
from tests.core.world import BUCKET, JOB, World
from tests.fakes.bucket import FOREIGN
from tests.fakes.execution import run_execution
from tests.fakes.faults import Crash

NEW = new(DT1, DT2)
Vanish = Callable[[World, JobDirectory], object]


def delete(world: World, *prefixes: str, but: str = "nothing") -> None:
    for key in [one.key for one in world.store.list(BUCKET, "")]:
        if key.startswith(prefixes) and not key.endswith(but):
            world.store.delete(BUCKET, key)


def key_of_kms(world: World, _job: JobDirectory) -> None:
    """What is there can't be read any more; the deployment has another key since."""
    for one in list(world.store.list(BUCKET, "")):
        world.store.encrypt(BUCKET, one.key, FOREIGN)


def dies_after(world: World, verb: str, strike: Callable[[], object], nth: int = 1) -> None:
    world.plan.run_after(verb, strike, nth=nth).crash_after(verb, nth=nth)


def made_anew(world: World, _job: JobDirectory) -> None:
    delete(world, "")
    world.lose_uploads("")


def rolling_back(world: World, strike: Callable[[], object]) -> None:
    world.lose_after_decision("sales/", slice(1))
    dies_after(world, "advance", strike, nth=2)


VANISH: dict[str, Vanish] = {
    "pages": lambda world, job: delete(world, job.pipeline_prefix, but="_decision.json"),
    "replace list": lambda world, job: delete(world, job.replaced),
    "pipeline directory": lambda world, job: delete(world, job.pipeline_prefix),
    "all of the pipeline": lambda world, _: delete(world, PIPELINE),
    "decision": lambda world, job: delete(world, job.decision),
    "manifests": lambda world, job: delete(world, job.tasks),
    "job directory too": lambda world, job: delete(world, PIPELINE, job.prefix),
    "commit manifest": lambda world, job: delete(world, job.commits),
    "uploads": lambda world, _: world.lose_uploads(""),
    "emptied": lambda world, _: delete(world, ""),
    "made anew": made_anew,
    "key of KMS": key_of_kms,
}
MOMENTS: dict[str, Callable[[World, Callable[[], object]], object]] = {
    "requested": lambda _, strike: strike(),
    "before the decision": lambda world, strike: world.plan.run_before("decide", strike),
    "committing": lambda world, strike: world.plan.run_after("decide", strike),
    "half committed": lambda world, strike: dies_after(world, "complete_upload", strike),
    "publishing": lambda world, strike: dies_after(world, "advance", strike, nth=2),
    "rolling back": rolling_back,
}


def execute(world: World, job: JobDirectory, number: int, *, lists_lost: bool) -> None:
    """An execution, whatever becomes of it; the fault befalls the first one."""
    ports = world.unplanned if number else world.ports
    with suppress(S3CommitError, Crash):
        run_execution(
            ports,
            job,
            execution=f"execution-{number}",
            gives_up="ann: all is gone" if lists_lost else "",
            lists_lost=lists_lost,
        )


def run_to_an_end(world: World, job: JobDirectory) -> bool:
    """The job's execution, then the sweep's, at last a person's; whether it took the person."""
    for number, lists_lost in enumerate([False, False, True]):
        execute(world, job, number, lists_lost=lists_lost)
        if world.record(job).state in ENDED:
            return lists_lost
    raise AssertionError(f"it can't end: {world.record(job)}")


@pytest.mark.parametrize("conflict", [Conflict.APPEND, Conflict.REPLACE])
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("vanish", VANISH)
def test_i2_whatever_vanishes_the_job_ends_and_its_end_is_true(
    vanish: str, moment: str, conflict: Conflict
) -> None:
    world = World()
    fill(world, DATA)
    job = start(world, conflict, Scope.DIRECTORY, [DT1, DT2])
    MOMENTS[moment](world, lambda: VANISH[vanish](world, job))
    by_person = run_to_an_end(world, job)
    record, left = world.record(job), {one.key for one in world.store.list(BUCKET, "sales/")}
    visible = left & NEW
    assert by_person == (record.failure is not None and record.failure.code == LISTS_LOST)
    if by_person and record.failure is not None:
        said = f"{len(visible)} of its 2 files are visible, by their names"
        assert said in record.failure.message
        assert all(key in record.failure.message for key in visible)
    if record.state is JobState.COMMITTED:
        assert by_person or visible == NEW
    elif conflict is Conflict.REPLACE and vanish not in {"emptied", "made anew"}:
        assert set(DATA) <= left
    if record.state is not JobState.COMMITTED and not by_person:
        assert visible == set()
    assert world.ledger.holders == set()
    # Without its _job.json a job that was never opened owns no upload: the lifecycle rule acts.
    if moment != "requested" or vanish not in {"job directory too", "emptied"}:
        assert world.open_uploads("sales/") == []
    by_itself = {"pages", "pipeline directory", "all of the pipeline", "decision", "manifests"}
    if conflict is Conflict.APPEND and vanish in {*by_itself, "uploads"}:
        assert not by_person, "the manifests, or the uploads, say all"


def test_of_an_overwrite_without_its_list_all_is_undone_before_it_is_published() -> None:
    world = World()
    fill(world, DATA)
    job = start(world, Conflict.REPLACE, Scope.DIRECTORY, [DT1, DT2])
    MOMENTS["committing"](world, lambda: VANISH["replace list"](world, job))
    assert run_to_an_end(world, job)
    assert world.record(job).state is JobState.ROLLED_BACK
    assert set(world.visible()) == set(DATA)


@pytest.mark.parametrize("more", ["nothing", "a stranger's object", "one file"])
def test_i10_a_job_that_has_deleted_what_it_replaces_is_never_undone(more: str) -> None:
    """Whoever may put or delete one object below the table decides nothing by it (I12)."""
    world = World()
    fill(world, DATA)
    job = start(world, Conflict.REPLACE, Scope.DIRECTORY, [DT1, DT2])

    def strike() -> None:
        delete(world, job.replaced)
        if more == "one file":
            world.store.delete(BUCKET, min(NEW))
        elif more != "nothing":
            world.store.put(BUCKET, f"sales/dt=3/x-{JOB}.parquet", b"x")

    world.plan.run_after("delete_seen", strike).crash_after("delete_seen")
    assert run_to_an_end(world, job)
    assert world.ended(job) == (Outcome.COMMITTED, LISTS_LOST)
    assert set(world.visible()) >= NEW - ({min(NEW)} if more == "one file" else set())
    assert world.result(job).replaced == 0


def test_a_result_says_that_no_file_is_visible_only_where_that_is_true() -> None:
    failure = Failure(LISTS_LOST, "1 of its 2 files are visible, by their names: a")
    result = JobResult(JOB, Outcome.ROLLED_BACK, failure, 0, 0, None, None, "")
    for code, is_said in ((LISTS_LOST, False), ("UPLOADS_LOST", True)):
        with pytest.raises(JobFailedError) as caught:
            require_committed(replace(result, error=replace(failure, code=code)))
        assert ("none of its files are visible" in caught.value.message) == is_said


def test_the_message_names_as_many_files_as_it_has_room_for() -> None:
    world = World()
    job = start(world, Conflict.APPEND, Scope.DIRECTORY, [DT1, DT2])
    for number in range(30):
        world.store.put(BUCKET, f"sales/{'x' * 500}{number}/x-{JOB}.parquet", b"x")
    MOMENTS["committing"](world, lambda: VANISH["job directory too"](world, job))
    assert run_to_an_end(world, job)
    failure = world.record(job).failure
    message = failure.message if failure else ""
    assert len(message) <= LONGEST_LINE
    assert message.endswith(f", and {30 - message.count('x-' + JOB)} more")


def test_a_call_that_knew_the_plan_is_waited_for() -> None:
    """A call may be late with a completion, and a listing may lack its upload."""
    world = World()
    job = start(world, Conflict.APPEND, Scope.DIRECTORY, [DT1, DT2])
    MOMENTS["committing"](world, lambda: VANISH["job directory too"](world, job))
    began = world.clock.now()
    assert run_to_an_end(world, job)
    ended = world.record(job).finished_at
    assert ended
    assert seconds(began, ended) >= LONGEST_CALL + FUNCTION_CLOCKS


@pytest.mark.parametrize("moment", ["committing", "publishing", "rolling back"])
def test_i12_a_job_that_has_its_lists_is_never_given_up(moment: str) -> None:
    """Whoever asks for it, and also when the job is committed: its files stay."""
    world = World()
    job = start(world, Conflict.APPEND, Scope.DIRECTORY, [DT1, DT2])
    MOMENTS[moment](world, lambda: None)
    if moment == "committing":
        world.plan.crash_after("decide")
    execute(world, job, 0, lists_lost=False)
    for number in (1, 2):
        execute(world, job, number, lists_lost=True)
    is_undone = moment == "rolling back"
    outcome = Outcome.ROLLED_BACK if is_undone else Outcome.COMMITTED
    assert world.result(job).outcome is outcome
    assert set(world.visible()) == (set() if is_undone else NEW)
    assert world.record(job).failure is None or world.failure(job).code != LISTS_LOST


def test_i12_a_client_that_changes_its_documents_changes_no_plan() -> None:
    """Nor can it give up a job: the pages are lost, and its request and manifests say otherwise."""
    world = World()
    job = start(world, Conflict.APPEND, Scope.DIRECTORY, [DT1, DT2])
    other = world.attempt(job, "t9", files={f"x-{JOB}": b"1"})

    def forge() -> None:
        VANISH["pages"](world, job)
        body = encode_request(CommitRequest(job.job_id, (other, other)))
        world.store.put(BUCKET, job.request, body)

    MOMENTS["committing"](world, forge)
    for number in range(2):
        execute(world, job, number, lists_lost=False)
    assert world.record(job).state is JobState.COMMITTING
    assert set(world.visible()) <= NEW
    execute(world, job, 2, lists_lost=True)
    assert world.ended(job) == (Outcome.ROLLED_BACK, LISTS_LOST)
