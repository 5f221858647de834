"""The jobs whose documents are kept: what their clients do, up to the request."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from s3commit.core.commit.ingest_pendingsets import judge_arrival, note_arrivals
from s3commit.core.formats.documents import encode_request
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.errors import OutcomeUnknownError
from s3commit.core.model.job import AbortRequest, CountedAttempt
from s3commit.writer.job import Job, open_job
from tests.core.world import BUCKET, JOB, OTHER_JOB
from tests.fakes.faults import Crash
from tests.golden.documents.kept import TABLE, Kept
from tests.writer.support import ScriptedEnvironment

KEY = "load of 2026-11-21"

Files = Mapping[str, bytes]

NEW = {"dt=1/größe.csv": b"new 1\n", "dt=2/b.csv": b"new 2\n"}
ONE = {"a.csv": b"new at the root\n"}


# What a client does. A body says what becomes of its file if the job is committed: "new" ones are
# seen then, "stays" ones as before, and neither "goes" ones nor "lost" ones are.


def begin(world: Kept, job_id: str = JOB, **said: Any) -> Job:
    """Open a job."""
    uri = f"s3://{BUCKET}/{TABLE}"
    environment = ScriptedEnvironment()
    return open_job(uri, job_id=job_id, store=world.store, environment=environment, **said)


def write(job: Job, task: str, files: Files, attempt: str = "a0", **said: Any) -> CountedAttempt:
    """A task, from start to end."""
    with job.task(task, attempt, **said) as writing:
        for path, body in files.items():
            with writing.open(path, rows=1, content_type="text/csv") as file:
                file.write(body)
    assert writing.counted is not None
    return writing.counted


def ask(job: Job, *attempts: CountedAttempt) -> list[JobDirectory]:
    """Ask for the commit, and do not wait for it."""
    with suppress(OutcomeUnknownError):
        job.commit(attempts, timeout=0)
    return [job.directory]


def hear(world: Kept) -> None:
    """The events of all manifests that are there."""
    keys = [key for key in world.all_keys() if key.endswith(".pendingset")]
    note_arrivals(world.ports, [judge_arrival(world.ports, BUCKET, key) for key in keys])


def fill(world: Kept, **bodies: bytes) -> None:
    """What lies at the destination, by partition."""
    for name, body in bodies.items():
        world.store.put(BUCKET, f"{TABLE}dt={name[1:]}/old.csv", body, content_type="text/csv")


def lose_last_upload(world: Kept) -> None:
    """Somebody aborts an upload right after the decision."""

    def lose() -> None:
        *_, victim = world.store.list_uploads(BUCKET, TABLE)
        world.store.abort_upload(BUCKET, victim.key, victim.upload_id)

    world.plan.run_after("decide", lose)


# The jobs.


def writing(world: Kept) -> list[JobDirectory]:
    """Its driver has not spoken yet."""
    fill(world, p1=b"stays")
    job = begin(world, idempotency_key=KEY, conditions={"minFiles": 1})
    write(job, "t0", NEW, task_count=2)
    write(job, "t1", ONE, task_count=2)
    hear(world)
    return [job.directory]


def abandoned(world: Kept) -> list[JobDirectory]:
    """The sweep gives it up."""
    (directory,) = writing(world)
    request = AbortRequest(directory.job_id, "no sign of life", abandoned=True)
    world.store.put(BUCKET, directory.request, encode_request(request))
    return [directory]


def appending(world: Kept) -> list[JobDirectory]:
    """With conditions, and an attempt that does not count."""
    fill(world, p1=b"stays")
    bounds = {"minRows": 2, "maxRows": 9, "minFiles": 1}
    job = begin(world, conditions=bounds)
    write(job, "t0", {"dt=1/c.csv": b"lost"}, "loser")
    counted = write(job, "t0", NEW), write(job, "t1", ONE)
    hear(world)
    return ask(job, *counted)


def replacing(world: Kept) -> list[JobDirectory]:
    """All of the destination."""
    fill(world, p1=b"goes", p2=b"goes", p3=b"goes")
    job = begin(world, conflict="replace")
    return ask(job, write(job, "t0", NEW))


def replacing_partitions(world: Kept) -> list[JobDirectory]:
    """Two of three, under a key, with a condition."""
    fill(world, p1=b"goes", p2=b"goes", p3=b"stays")
    said: Any = {"partition_by": ["dt"], "idempotency_key": KEY, "conditions": {"maxRows": 3}}
    job = begin(world, conflict="replace", scope="partition", **said)
    return ask(job, write(job, "t0", NEW))


def beside_nobody(world: Kept) -> list[JobDirectory]:
    """It wants nothing in its way, and nothing is."""
    job = begin(world, conflict="fail")
    return ask(job, write(job, "t0", NEW))


def in_the_way(world: Kept) -> list[JobDirectory]:
    """It wants nothing in its way, and something is."""
    fill(world, p1=b"stays")
    return beside_nobody(world)


def conditioned(world: Kept) -> list[JobDirectory]:
    """It does not meet its condition."""
    fill(world, p1=b"stays")
    job = begin(world, conditions={"minRows": 100}, conflict="replace")
    return ask(job, write(job, "t0", NEW))


def given_up(world: Kept) -> list[JobDirectory]:
    """The driver asks for the abort; a task has died."""
    job = begin(world)
    write(job, "t0", NEW)
    job.task("t1", "dead").open("dt=1/c.csv").write(b"lost")
    job.abort("the driver gives up")
    return [job.directory]


def two_tasks(world: Kept) -> list[JobDirectory]:
    """It replaces what is there by the files of two tasks."""
    fill(world, p1=b"goes")
    job = begin(world, conflict="replace")
    counted = write(job, "t0", NEW), write(job, "t1", ONE)
    hear(world)
    return ask(job, *counted)


def without_files(world: Kept) -> list[JobDirectory]:
    """It replaces what is there by nothing."""
    fill(world, p1=b"goes")
    return ask(begin(world, conflict="replace"))


def waiting(world: Kept) -> list[JobDirectory]:
    """Two jobs replace one table; the other one holds it, and has died right after its decision."""
    other = begin(world, OTHER_JOB, conflict="replace")
    (first,) = ask(other, write(other, "t0", {"first.csv": b"goes"}))
    world.plan.crash_after("decide")
    with suppress(Crash):
        world.run(first, "execution-0")
    return [first, *replacing(world)]


def key_taken(world: Kept) -> list[JobDirectory]:
    """Another job has been committed under the key."""
    other = begin(world, OTHER_JOB, idempotency_key=KEY)
    (first,) = ask(other, write(other, "t0", {"first.csv": b"stays"}))
    world.run(first, "execution-0")
    job = begin(world, idempotency_key=KEY)
    return [first, *ask(job, write(job, "t0", NEW))]
