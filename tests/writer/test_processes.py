"""Jobs and tasks in other processes: they travel there, and what they counted travels back."""

import multiprocessing
import os
import pickle
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

import pytest

from s3commit.core.model.errors import PreconditionError
from s3commit.writer.start import open_job
from tests.fakes.store import MemoryObjectStore
from tests.lake import Lake
from tests.writer.support import BUCKET, open_on, open_uploads
from tests.writer.workers import die_in_task, write_part_of_job, write_task

SPAWN = multiprocessing.get_context("spawn")  # nothing is inherited but the environment
TASKS = 7


@pytest.fixture(scope="module")
def pool(moto_endpoint: str) -> Iterator[ProcessPoolExecutor]:
    """Two workers that serve all tests; they connect as their environment says."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", moto_endpoint)
        with ProcessPoolExecutor(2, mp_context=SPAWN) as pool:
            list(pool.map(abs, range(4)))  # starts them
            yield pool


def test_i1_i2_a_job_travels_to_processes_and_its_attempts_come_back(
    lake: Lake, pool: ProcessPoolExecutor
) -> None:
    with open_job(f"s3://{lake.bucket}/t/") as job:
        counted = list(pool.map(write_part_of_job, [job] * TASKS, range(TASKS)))
        assert lake.visible() == []
        result = job.commit(counted)
    assert [attempt is None for attempt in counted] == [number % 3 == 0 for number in range(TASKS)]
    assert (result.files, result.rows) == (6, 6)
    bodies = {key: lake.body(key).decode() for key in lake.visible()}
    assert all(key.split("/")[1] == f"dt={body[2]}" for key, body in bodies.items())
    assert {body.rsplit(" ", 1)[1] for body in bodies.values()}.isdisjoint({str(os.getpid())})


def test_i3_two_copies_of_a_task_are_one_try(lake: Lake, pool: ProcessPoolExecutor) -> None:
    job = open_job(f"s3://{lake.bucket}/t/")
    task = job.task("0")
    counted = pool.submit(write_task, task, b"first").result(60)
    with pytest.raises(PreconditionError, match="it was not changed"):
        pool.submit(write_task, task, b"second").result(60)
    job.commit([counted])
    (key,) = lake.visible()
    assert lake.body(key) == b"first"
    assert lake.open_uploads() == []


def test_i3_i4_a_process_that_dies_leaves_nothing_and_its_task_is_tried_again(lake: Lake) -> None:
    with open_job(f"s3://{lake.bucket}/t/") as job:
        process = SPAWN.Process(target=die_in_task, args=(job.task("0"),))
        process.start()
        process.join(60)
        assert process.exitcode == 7
        assert len(lake.open_uploads()) == 2
        with job.task("0") as again, again.open("whole.txt") as file:
            file.write(b"whole")
        job.commit([again.counted])
    (key,) = lake.visible()
    assert lake.body(key) == b"whole"
    assert lake.open_uploads() == []


# --- what travels


def test_a_task_that_has_begun_stays_where_it_is() -> None:
    store = MemoryObjectStore(BUCKET)
    job = open_on(store)
    begun, ended = job.task("0"), job.task("1")
    begun.open("a")
    ended.finish()
    for task in (begun, ended):
        with pytest.raises(TypeError, match="send it before it opens one, or send its"):
            pickle.dumps(task)
    begun.abort()
    assert open_uploads(store) == []


def test_a_forked_process_makes_connections_of_its_own(lake: Lake) -> None:
    """Two processes that share a connection read each other's responses."""
    job = open_job(f"s3://{lake.bucket}/t/")
    task = job.task("0")
    ours = (job._connected(), task._store)
    child = os.fork()
    if not child:
        theirs = (job._connected(), task._store)
        os._exit(int(theirs[0] is ours[0] or theirs[1] is ours[1]))  # no test ends here
    assert os.waitpid(child, 0)[1] == 0
    assert (job._connected(), task._store) == ours
