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
from s3commit.core.model.errors import AccessError, JobFailedError, S3CommitError
from s3commit.core.model.limits import FUNCTION_CLOCKS, LONGEST_CALL
from s3commit.core.model.moments import seconds
from s3commit.core.model.outcome import LISTS_LOST, Failure, Outcome
from s3commit.core.model.states import ENDED, JobState
from s3commit.core.ports.objects import StoredObject
from s3commit.writer.requests import require_committed
from tests.core.policy_world import DATA, DT1, DT2, fill, new, start
from tests.core.world import BUCKET, JOB, World
from tests.fakes.execution import run_execution
from tests.fakes.faults import Crash

NEW = new(DT1, DT2)
Vanish = Callable[[World, JobDirectory], None]


def delete(world: World, prefix: str, but: str = "nothing") -> None:
    for key in [one.key for one in world.store.list(BUCKET, prefix)]:
        if not key.endswith(but):
            world.store.delete(BUCKET, key)


def pages(world: World, job: JobDirectory) -> None:
    delete(world, job.pipeline_prefix, but="_decision.json")


def replace_list(world: World, job: JobDirectory) -> None:
    delete(world, job.replaced)


def pipeline_directory(world: World, job: JobDirectory) -> None:
    delete(world, job.pipeline_prefix)


def all_of_the_pipeline(world: World, _job: JobDirectory) -> None:
    delete(world, PIPELINE)


def decision(world: World, job: JobDirectory) -> None:
    delete(world, job.decision)


def manifests(world: World, job: JobDirectory) -> None:
    delete(world, job.tasks)


def job_directory_too(world: World, job: JobDirectory) -> None:
    delete(world, PIPELINE)
    delete(world, job.prefix)


def commit_manifest(world: World, job: JobDirectory) -> None:
    delete(world, job.commits)


def uploads(world: World, _job: JobDirectory) -> None:
    world.lose_uploads("")


def emptied(world: World, _job: JobDirectory) -> None:
    delete(world, "")


def made_anew(world: World, _job: JobDirectory) -> None:
    delete(world, "")
    world.lose_uploads("")


def key_of_kms(world: World, _job: JobDirectory) -> None:
    """What is there can't be read any more; the deployment has another key since."""
    lost = {one.key: one.etag for one in world.store.list(BUCKET, "")}
    get = world.store.get

    def refuse(bucket: str, key: str, *, max_bytes: int) -> StoredObject:
        found = get(bucket, key, max_bytes=max_bytes)
        if lost.get(key) == found.facts.etag:
            raise AccessError(f"{key}: KMS.DisabledException")
        return found

    world.store.get = refuse  # type: ignore[method-assign]


VANISH: list[Vanish] = [
    *(pages, replace_list, pipeline_directory, all_of_the_pipeline, decision, manifests),
    *(job_directory_too, commit_manifest, uploads, emptied, made_anew, key_of_kms),
]


def requested(_world: World, strike: Callable[[], None]) -> None:
    strike()


def before_the_decision(world: World, strike: Callable[[], None]) -> None:
    world.plan.run_before("decide", strike)


def committing(world: World, strike: Callable[[], None]) -> None:
    world.plan.run_after("decide", strike)


def half_committed(world: World, strike: Callable[[], None]) -> None:
    world.plan.run_after("complete_upload", strike).crash_after("complete_upload")


def publishing(world: World, strike: Callable[[], None]) -> None:
    world.plan.run_after("advance", strike, nth=2).crash_after("advance", nth=2)


def rolling_back(world: World, strike: Callable[[], None]) -> None:
    world.lose_after_decision("sales/", slice(1))
    world.plan.run_after("advance", strike, nth=2).crash_after("advance", nth=2)


MOMENTS = [requested, before_the_decision, committing, half_committed, publishing, rolling_back]


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
@pytest.mark.parametrize("moment", MOMENTS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("vanish", VANISH, ids=lambda one: one.__name__)
def test_i2_whatever_vanishes_the_job_ends_and_its_end_is_true(
    vanish: Vanish, moment: Callable[..., None], conflict: Conflict
) -> None:
    world = World()
    fill(world, DATA)
    job = start(world, conflict, Scope.DIRECTORY, [DT1, DT2])
    moment(world, lambda: vanish(world, job))
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
    elif conflict is Conflict.REPLACE and vanish not in {emptied, made_anew}:
        assert set(DATA) <= left
    if record.state is not JobState.COMMITTED and not by_person:
        assert visible == set()
    assert world.ledger.holders == set()
    # Without its _job.json a job that was never opened owns no upload: the lifecycle rule acts.
    if moment is not requested or vanish not in {job_directory_too, emptied}:
        assert world.open_uploads("sales/") == []
    by_itself = {pages, pipeline_directory, all_of_the_pipeline, decision, manifests, uploads}
    if conflict is Conflict.APPEND and vanish in by_itself:
        assert not by_person, "the manifests, or the uploads, say all"


def test_of_an_overwrite_without_its_list_all_is_undone_before_it_is_published() -> None:
    world = World()
    fill(world, DATA)
    job = start(world, Conflict.REPLACE, Scope.DIRECTORY, [DT1, DT2])
    committing(world, lambda: replace_list(world, job))
    assert run_to_an_end(world, job)
    assert world.record(job).state is JobState.ROLLED_BACK
    assert set(world.visible()) == set(DATA)


def strangers_object(world: World, _job: JobDirectory) -> None:
    world.store.put(BUCKET, f"sales/dt=3/x-{JOB}.parquet", b"x")


def one_file(world: World, _job: JobDirectory) -> None:
    world.store.delete(BUCKET, min(NEW))


@pytest.mark.parametrize("more", [replace_list, strangers_object, one_file])
def test_i10_a_job_that_has_deleted_what_it_replaces_is_never_undone(more: Vanish) -> None:
    """Whoever may put or delete one object below the table decides nothing by it (I12)."""
    world = World()
    fill(world, DATA)
    job = start(world, Conflict.REPLACE, Scope.DIRECTORY, [DT1, DT2])

    def strike() -> None:
        replace_list(world, job)
        more(world, job)

    world.plan.run_after("delete_seen", strike).crash_after("delete_seen")
    assert run_to_an_end(world, job)
    assert world.ended(job) == (Outcome.COMMITTED, LISTS_LOST)
    assert set(world.visible()) >= NEW - ({min(NEW)} if more is one_file else set())
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
    committing(world, lambda: job_directory_too(world, job))
    assert run_to_an_end(world, job)
    failure = world.record(job).failure
    message = failure.message if failure else ""
    assert len(message) <= LONGEST_LINE
    assert message.endswith(f", and {30 - message.count('x-' + JOB)} more")


def test_a_call_that_knew_the_plan_is_waited_for() -> None:
    """A call may be late with a completion, and a listing may lack its upload."""
    world = World()
    job = start(world, Conflict.APPEND, Scope.DIRECTORY, [DT1, DT2])
    committing(world, lambda: job_directory_too(world, job))
    began = world.clock.now()
    assert run_to_an_end(world, job)
    ended = world.record(job).finished_at
    assert ended
    assert seconds(began, ended) >= LONGEST_CALL + FUNCTION_CLOCKS


@pytest.mark.parametrize("moment", [committing, publishing, rolling_back])
def test_i12_a_job_that_has_its_lists_is_never_given_up(moment: Callable[..., None]) -> None:
    """Whoever asks for it, and also when the job is committed: its files stay."""
    world = World()
    job = start(world, Conflict.APPEND, Scope.DIRECTORY, [DT1, DT2])
    moment(world, lambda: None)
    if moment is committing:
        world.plan.crash_after("decide")
    execute(world, job, 0, lists_lost=False)
    for number in (1, 2):
        execute(world, job, number, lists_lost=True)
    is_undone = moment is rolling_back
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
        pages(world, job)
        body = encode_request(CommitRequest(job.job_id, (other, other)))
        world.store.put(BUCKET, job.request, body)

    committing(world, forge)
    for number in range(2):
        execute(world, job, number, lists_lost=False)
    assert world.record(job).state is JobState.COMMITTING
    assert set(world.visible()) <= NEW
    execute(world, job, 2, lists_lost=True)
    assert world.ended(job) == (Outcome.ROLLED_BACK, LISTS_LOST)
