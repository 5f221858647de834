"""What a run has left in S3 and in the ledger, for the simulation's judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from s3commit.aws.ledger_items import job_key
from s3commit.core.documents.request_json import AbortRequest, CommitRequest, decode_request
from s3commit.core.documents.result_json import JobResult, decode_result
from s3commit.core.formats.layout import SUCCESS, JobDirectory, directories_above, is_data
from s3commit.core.model.destination import Conflict
from s3commit.core.model.outcome import Outcome
from s3commit.core.model.states import JobState
from s3commit.local import ACCOUNT, REGION
from tests.engines.sim.clients import BUCKET
from tests.engines.sim.judge import judge_each
from tests.engines.sim.model import File, Job
from tests.engines.sim.observer import Observer
from tests.engines.sim.recovery import needs_help
from tests.engines.sim.scheduler import Scheduler, fail
from tests.fakes.bucket import Bucket, Upload, Version

if TYPE_CHECKING:
    from tests.engines.sim.world import World

Files = Mapping[tuple[str, bytes], File]  # by key and bytes: what each attempt writes


def s3(bucket: str) -> Any:
    """Moto's bucket of this process."""
    from moto.s3.models import s3_backends

    return s3_backends[ACCOUNT]["aws"].get_bucket(bucket)


def items(table: str) -> dict[tuple[str, str], Any]:
    """The attributes of the items of moto's table of this process, by pk and sk."""
    from moto.dynamodb.models import dynamodb_backends

    rows: Any = dynamodb_backends[ACCOUNT][REGION].get_table(table).items
    found = [item.attrs for row in list(rows.values()) for item in list(row.values())]
    return {(attrs["pk"].value, attrs["sk"].value): attrs for attrs in found}


def holders(table: str) -> set[str]:
    """The jobs, by their refs, that have a lock or are listed as under way."""
    found = items(table).items()
    locks = {attrs["ref"].value for (pk, _), attrs in found if pk.startswith("LOCKS#")}
    appends = {sk.rpartition("/")[2] for (pk, sk), _ in found if pk.startswith("APPENDS#")}
    return locks | appends


def state_of(table: str, directory: JobDirectory) -> JobState | None:
    """The ledger's word on a job."""
    found = items(table).get(job_key(directory.ref))
    return JobState(found["state"].value) if found else None


class _Observer(Observer):
    """Knows whose an object is by its key and bytes, which are one attempt's."""

    written: Files

    def visible(self, key: str) -> tuple[Version, File | None] | None:
        version = self.bucket.current(key)
        if version is None:
            return None
        return version, self.written.get((key, version.body or b""))


@dataclass
class Left:
    """As much of the simulation's `World` as its judge looks at, read from moto."""

    jobs: Sequence[Job]
    files: Files
    table: str
    foreign: dict[str, bytes]
    foreign_uploads: set[str]
    bucket: Bucket = field(default_factory=lambda: Bucket(versioned=False))
    put_at: dict[str, str] = field(default_factory=dict)  # by S3's clock, RFC 3339

    def __post_init__(self) -> None:
        there = s3(BUCKET)
        for key, stored in list(there.keys.items()):
            self.bucket.add(key, Version(None, bytes(stored.value), stored.etag))
            self.put_at[key] = stored.last_modified.isoformat(timespec="milliseconds")
        self.observer = _Observer(Scheduler(Random(0), max_steps=0), self.bucket)
        self.observer.written = self.files
        self.observer.jobs = {job.name: job for job in self.jobs}
        for upload_id, upload in list(there.multiparts.items()):
            key = upload.key_name
            self.bucket.uploads[upload_id] = Upload(key, "", {})
            for job in self.jobs:
                if job.directory.job_id in key:
                    file = File(job.name, "", "", key, upload_id, b"", 0)
                    self.observer.files[upload_id] = file
        self.ledger = SimpleNamespace(holders=holders(self.table))
        for job in self.jobs:
            self._read(job)

    def _read(self, job: Job) -> None:
        directory = job.directory
        job.record_state = state_of(self.table, directory)
        if result := self.result(job):
            job.result = result.outcome
            job.failure = result.error.code if result.error else ""
            job.message = result.error.message if result.error else ""
        asked = self.bucket.current(directory.request)
        request = decode_request(asked.body or b"", directory) if asked else None
        if asked:
            job.requested = datetime.fromisoformat(self.put_at[directory.request]).timestamp()
        job.appends = job.spec.conflict is Conflict.APPEND
        job.faltered = True  # as far as this judge knows: the adversary kills every execution
        job.given_up = isinstance(request, AbortRequest) and request.abandoned
        if isinstance(request, CommitRequest):
            counted = {(one.task_id, one.attempt_id) for one in request.attempts}
            mine = [file for file in self.files.values() if file.job == job.name]
            job.planned = {one.key: one for one in mine if (one.task, one.attempt) in counted}

    def result(self, job: Job) -> JobResult | None:
        """How the job has ended, if it has."""
        found = self.bucket.current(job.directory.result)
        return decode_result(found.body or b"", job.directory) if found else None

    @property
    def as_world(self) -> World:
        """For the simulation's functions."""
        return cast("World", self)

    def unfinished(self) -> list[Job]:
        """The jobs that the pipeline has still to end, or to tidy up."""
        return [job for job in self.jobs if needs_help(self.as_world, job)]

    def judge(self) -> None:
        """Raise `Violation` for what does not hold at the end."""
        for job in self.unfinished():
            fail("end", f"{job.name} is {job.record_state} at the end")
        expected = self._replayed()
        judge_each(self.as_world)
        found = {key: one[-1].body for key, one in self.bucket.objects.items() if is_data(key)}
        for key in sorted(expected.keys() | found.keys()):
            if expected.get(key) != found.get(key):
                fail("I2", f"{key} is not what the committed jobs make, one after the other")

    def _replayed(self) -> dict[str, bytes]:
        """The files that the committed jobs make, one after the other.

        An append takes its place when it ends, another job when it is decided.
        """
        table = {key: body for key, body in self.foreign.items() if is_data(key)}
        found = {job: result for job in self.jobs if (result := self.result(job))}
        ended = {job: one for job, one in found.items() if one.outcome is Outcome.COMMITTED}
        keys = [(job.prefix, key) for job in ended if (key := job.spec.idempotency_key)]
        if len(keys) > len(set(keys)):
            fail("I11", f"a key is committed twice: {sorted(keys)}")
        appends = [job for job in ended if job.spec.conflict is Conflict.APPEND]
        appends.sort(key=lambda job: ended[job].finished_at, reverse=True)
        for job in sorted(ended, key=lambda job: _place(job, ended[job])):
            asked = self.put_at[job.directory.request]
            beside = [other for other in appends if ended[other].finished_at > asked]
            _take(job, ended[job], table, beside)
        return table


def _place(job: Job, result: JobResult) -> str:
    appends = job.spec.conflict is Conflict.APPEND
    return result.finished_at if appends else result.decided_at or ""


def _take(job: Job, result: JobResult, table: dict[str, bytes], beside: list[Job]) -> None:
    """Do to ``table`` what the committed job has promised.

    Those of ``beside`` appended while it was under way: each may come after it, with all its files.
    """
    here = {key for key in table if job.claims(key) and is_data(job.relative(key))}
    here -= job.planned.keys()
    for other in beside:
        if job.spec.conflict is Conflict.APPEND or len(here) <= result.replaced:
            break
        here -= other.planned.keys()
    if job.spec.conflict is Conflict.FAIL and here:
        fail("I6", f"{job.name} found nothing, and {min(here)} was there")
    if job.spec.conflict is Conflict.REPLACE:
        if result.replaced != len(here):
            fail("I6", f"{job.name} replaced {result.replaced} files of {len(here)}")
        job.replaced = dict.fromkeys(sorted(here), "")
    for key in here if job.replaced else ():
        del table[key]
        # The marker of a table inside may go with its files.
        inside = (at for at in directories_above(key) if len(at) > len(job.prefix))
        job.replaced |= {at + SUCCESS: "" for at in inside if at.startswith(job.prefix)}
    least = job.spec.conditions.min_files or 0
    if result.files != len(job.planned) or result.files < least:
        fail("I2", f"{job.name} committed {result.files} of {len(job.planned)} files")
    table |= {key: file.body for key, file in job.planned.items()}
