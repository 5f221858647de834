"""What a sweep may touch: judged at the very call, by what the simulation knows."""

import json

from s3commit.core.model.limits import S3_CLOCKS
from s3commit.core.sweep.sweep import Sweep
from tests.engines.sim.model import Job
from tests.engines.sim.scheduler import Process, fail, moment
from tests.fakes.bucket import Version


def may_speak(
    process: Process,
    job: Job | None,
    key: str,
    before: Version | None,
    body: bytes,
    signs: list[str],
    *,
    taken: bool,
) -> None:
    """A sweep puts one word, the abort of a job of ours that shows no sign of life (ADR 14).

    Sooner, if its key is ``taken``.
    """
    sweep: Sweep = process.about
    if job is None or key != job.directory.request or process.role != "sweep":
        fail("I7", f"{process.name} wrote {key}")
    if before is not None or json.loads(body)["action"] != "abort":
        fail("I2", f"{process.name} spoke over the driver of job {job.name}")
    # What was put as it began may have an earlier time: S3's are whole seconds of another clock.
    began = moment(process.begun - S3_CLOCKS - 1)
    since = sweep.ago(sweep.limits.stuck if taken else sweep.limits.abandoned)
    alive = [sign for sign in signs if since <= sign < began]
    job.given_up = True
    if alive:
        fail("sweep", f"{process.name} gave up job {job.name}, alive at {max(alive)} ({since})")


def may_retire(process: Process, job: Job, key: str, result: Version) -> None:
    """The documents of a job stay as long as the retention says after its end."""
    if process.role != "sweep":
        fail("I7", f"{process.name} deleted {key}")
    sweep: Sweep = process.about
    if not job.over or result.modified >= sweep.ago(sweep.limits.retention):
        fail("sweep", f"{process.name} retired {key} of job {job.name}, {job.record_state}")
