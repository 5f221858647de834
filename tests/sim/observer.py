"""The invariants, looked at each time that something changes (docs/proof.md says them in words).

It knows what each upload was, from the moment that it was started, and judges by that and by the
bytes in the bucket; of the code under test it trusts nothing but the formats.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from s3commit.core.layout import META_ATTEMPT, META_TASK, is_data
from s3commit.core.model import Conflict, JobRecord
from s3commit.core.ports import ListedObject
from s3commit.core.states import JobState
from s3commit.testing.bucket import Bucket, Version
from tests.sim.model import DECIDED, UNDER_WAY, UNDOING, File, Job
from tests.sim.scheduler import Process, Scheduler, Violation

Perform = Callable[[], Any]


class Observer:
    """Stands beside the store and the ledger; raises `Violation`."""

    def __init__(self, scheduler: Scheduler, bucket: Bucket) -> None:
        self.jobs: dict[str, Job] = {}
        self.files: dict[str, File] = {}
        self.manifests: dict[str, list[str]] = {}  # by digest: the uploads of each one ever put
        self._noted: set[str] = set()
        self.at_decision: dict[str, list[Callable[[], object]]] = {}
        self._scheduler = scheduler
        self._bucket = bucket
        self._owner: dict[int, tuple[Version, File]] = {}

    # What is to be seen.

    def visible(self, key: str) -> tuple[Version, File | None] | None:
        """The object at ``key`` with the upload that made it (None: no job's)."""
        version = self._bucket.current(key)
        if version is None:
            return None
        owner = self._owner.get(id(version))
        return version, owner[1] if owner else None

    def visible_files(self, job: Job) -> list[File]:
        """The files of the job that readers see."""
        found = (self.visible(key) for key in sorted(self._bucket.objects))
        return [one[1] for one in found if one and one[1] and one[1].job == job.name]

    def missing(self, job: Job) -> list[str]:
        """The keys of the plan at which its very file is not visible."""
        return [key for key, file in job.planned.items() if not self._shows(key, file)]

    def _shows(self, key: str, file: File) -> bool:
        seen = self.visible(key)
        return seen is not None and seen[1] is file and seen[0].body == file.body

    def _job_of(self, process: Process) -> Job | None:
        return self.jobs.get(process.job)

    # S3.

    def note_manifest(self, key: str) -> None:
        """A task has put its manifest, or a note of an upload with an exact name."""
        body = self._body(key)
        said = json.loads(body)
        if "commits" not in said:  # a note of one upload
            self._noted.add(said["uploadId"])
            return
        uploads = [commit["uploadId"] for commit in said["commits"]]
        self.manifests[hashlib.sha256(body).hexdigest()] = uploads

    def is_named(self, upload_id: str) -> bool:
        """Whether a manifest or a note that was ever put names the upload."""
        return upload_id in self._noted or any(
            upload_id in uploads for uploads in self.manifests.values()
        )

    def create_upload(
        self, process: Process, perform: Perform, args: Sequence[Any], metadata: dict[str, str]
    ) -> str:
        """A task's upload is known from here on, even if its answer is lost."""
        upload_id: str = perform()
        if process.role == "task":
            task, attempt = metadata[META_TASK], metadata[META_ATTEMPT]
            body = body_of(process.job, task, attempt, args[1])
            self.files[upload_id] = File(
                process.job, task, attempt, args[1], upload_id, body, self._scheduler.steps
            )
        return upload_id

    def complete_upload(self, process: Process, perform: Perform, args: Sequence[Any]) -> Any:
        key, upload_id = args[1], args[2]
        before = self.visible(key)
        was_open = upload_id in self._bucket.uploads
        facts = perform()
        if not was_open:
            return facts  # a repetition, answered with what the first one made
        version = self._bucket.objects[key][-1]
        file = self.files.get(upload_id)
        if file is None:
            self._check_own_object(process, key, None)
            return facts
        self._owner[id(version)] = (version, file)
        job = self.jobs[file.job]
        if process.job != file.job:
            fail("I5", f"{process.name} completed {key} of job {file.job}")
        if not job.decided:
            fail("I1", f"{key} is visible, and job {job.name} is {job.record_state}")
        if job.planned.get(key) is not file:
            fail("I3", f"{key} of attempt {file.task}.{file.attempt} is visible, and not counted")
        if job.ended:
            fail("I2", f"{key} became visible after job {job.name} had ended {job.record_state}")
        if before is not None and before[1] is not file:
            if not (job.exact and self._bucket.versioned and job.spec.conflict == "replace"):
                fail("I5", f"{key} covers an object that was there")
            job.covered.setdefault(key, (before[0].body or b"", before[0].etag))
        return facts

    def abort_upload(self, process: Process, perform: Perform, args: Sequence[Any]) -> Any:
        key, upload_id = args[1], args[2]
        was_open = upload_id in self._bucket.uploads
        result = perform()
        if not was_open or process.role == "saboteur":
            return result
        file = self.files.get(upload_id)
        if file is None or file.job != process.job:
            if file is None and self._is_own_key(process, key):
                return result
            fail("I5", f"{process.name} aborted a foreign upload of {key}")
        job = self.jobs[file.job]
        if process.role == "task":
            return result
        if job.record_state in {None, JobState.OPEN, JobState.SEALED}:
            fail("I2", f"an upload of job {job.name} was aborted while it was {job.record_state}")
        if job.record_state in {JobState.COMMITTING, JobState.PUBLISHING}:
            fail("I2", f"an upload of job {job.name} was aborted while it was {job.record_state}")
        return result

    def put(self, process: Process, perform: Perform, args: Sequence[Any]) -> Any:
        key = args[1]
        before = self._bucket.current(key)
        result = perform()
        if process.role not in {"driver", "task", "foreign", "saboteur"}:
            self._check_own_object(process, key, before)
        return result

    def delete(self, process: Process, perform: Perform, args: Sequence[Any]) -> Any:
        key = args[1]
        before = self.visible(key)
        result = perform()
        if before is not None and self._bucket.current(key) is not before[0]:
            self._check_deleted(process, key, before)
        return result

    def delete_seen(self, process: Process, perform: Perform, args: Sequence[Any]) -> Any:
        objects: Sequence[ListedObject] = args[1]
        before = {one.key: self.visible(one.key) for one in objects}
        result = perform()
        for key, seen in before.items():
            if seen is not None and self._bucket.current(key) is not seen[0]:
                self._check_deleted(process, key, seen)
        return result

    def _check_deleted(self, process: Process, key: str, seen: tuple[Version, File | None]) -> None:
        if process.role in {"saboteur", "foreign"}:
            return
        job = self._job_of(process)
        version, file = seen
        if job is None or not key.startswith(job.prefix):
            fail("I7", f"{process.name} deleted {key}, which lies outside")
        if key.startswith(job.place.scratch):
            if not job.ended:
                fail("I2", f"{key} was deleted, and job {job.name} is {job.record_state}")
            return
        if file is not None and file.job == job.name:
            if job.record_state not in UNDOING:
                fail("I2", f"own file {key} was deleted while the job was {job.record_state}")
            return
        if job.replaced.get(key) != version.etag:
            fail("I5", f"{process.name} deleted {key}, which no replace list names")
        if job.record_state not in {JobState.PUBLISHING, JobState.COMMITTED}:
            fail("I10", f"{key} of before was deleted while the job was {job.record_state}")
        missing = self.missing(job)
        if missing and job.record_state is not JobState.COMMITTED:
            fail("I10", f"{key} of before was deleted, and {missing} are not visible")

    def _is_own_key(self, process: Process, key: str) -> bool:
        job = self._job_of(process)
        if job is None:
            return False
        once = f"{job.prefix}_commits/once/"
        own = (job.place.prefix, job.place.commits, job.place.success, once)
        return key.startswith(own)

    def _check_own_object(self, process: Process, key: str, before: Version | None) -> None:
        job = self._job_of(process)
        if job is None or not self._is_own_key(process, key):
            fail("I7", f"{process.name} wrote {key}, which is not the job's")
        if key == job.place.success:
            self._check_marker(job)
        elif key == job.place.commits:
            self._check_commits(job)
        elif key == job.place.result:
            self._check_result(job, before, json.loads(self._body(key)))

    def _check_marker(self, job: Job) -> None:
        if job.record_state is not JobState.PUBLISHING:
            fail("I9", f"_SUCCESS of job {job.name} was put while it was {job.record_state}")
        if missing := self.missing(job):
            fail("I9", f"_SUCCESS of job {job.name} was put, and {missing} are not visible")
        if self._bucket.current(job.place.commits) is None:
            fail("I9", f"_SUCCESS of job {job.name} was put before its manifest in _commits/")

    def _check_commits(self, job: Job) -> None:
        if job.record_state is not JobState.PUBLISHING and not job.ended:
            fail("I9", f"_commits/ of job {job.name} was put while it was {job.record_state}")
        body = self._bucket.objects[job.place.commits][-1].body or b""
        lines = [json.loads(line) for line in body.splitlines()]
        named = sorted((line["key"], line["length"]) for line in lines[1:])
        if named != sorted((file.key, len(file.body)) for file in job.planned.values()):
            fail("I2", f"_commits/ of job {job.name} names {named}")

    def _check_result(self, job: Job, before: Version | None, said: dict[str, Any]) -> None:
        if before is not None:
            fail("I2", f"result.json of job {job.name} was put twice")
        job.result = said["outcome"]
        job.failure = (said["error"] or {}).get("code", "")
        job.message = (said["error"] or {}).get("message", "")
        if job.record_state is None or job.result != job.record_state.value:
            fail("I2", f"result.json says {job.result}, and job {job.name} is {job.record_state}")
        marker = self._bucket.current(job.place.success)
        if job.result == "COMMITTED" and marker is None:
            fail("I9", f"result.json says {job.result}, and there is no _SUCCESS")

    # The ledger.

    def moved(self, process: Process, record: JobRecord) -> None:
        """The ledger has stored ``record``."""
        job = next(one for one in self.jobs.values() if one.place.job_id == record.job_id)
        before, job.record_state = job.record_state, record.state
        if before is record.state:
            return
        if process.job != job.name and record.state is not JobState.ABORTING:
            fail("I6", f"{process.name} moved job {job.name} to {record.state}")
        if before in {JobState.COMMITTED, JobState.ABORTED, JobState.ROLLED_BACK}:
            fail("I8", f"job {job.name} was {before}, and is {record.state} again")
        if record.state in {JobState.ABORTING, JobState.ROLLING_BACK}:
            job.undoing_since = self._scheduler.steps
        if record.state is JobState.COMMITTING:
            job.decided = True
            self._check_decision(job, record)
            for begin in self.at_decision.get(job.name, ()):
                begin()
        elif record.state in {JobState.PUBLISHING, JobState.COMMITTED}:
            if missing := self.missing(job):
                fail("I2", f"job {job.name} is {record.state}, and {missing} are not visible")
            if record.state is JobState.COMMITTED:
                self._check_committed(job)
        elif record.state in {JobState.ABORTED, JobState.ROLLED_BACK}:
            self._check_undone(job, record)

    def _check_committed(self, job: Job) -> None:
        if self._bucket.current(job.place.commits) is None:
            fail("I9", f"job {job.name} is COMMITTED without a manifest in _commits/")
        if self._bucket.current(job.place.success) is None:
            fail("I9", f"job {job.name} is COMMITTED without _SUCCESS")
        for key, etag in job.replaced.items():
            current = self._bucket.current(key)
            if current is not None and current.etag == etag:
                fail("I10", f"job {job.name} is COMMITTED, and {key} of before is still there")

    def check_closed(self, job: Job, since: int) -> None:
        """No upload is open that was there before step ``since``; a zombie may start more."""
        for upload_id in sorted(self._bucket.uploads):
            file = self.files.get(upload_id)
            if file is None or file.job != job.name or file.since >= since or job.exact:
                continue  # with exact names the manifest may have come later
            fail("I4", f"job {job.name} is {job.record_state}, and {file.key} is still open")

    def _check_undone(self, job: Job, record: JobRecord) -> None:
        self.check_closed(job, job.undoing_since or 0)
        if job.decided and record.state is JobState.ABORTED:
            fail("I2", f"job {job.name} was decided, and is ABORTED")
        if seen := self.visible_files(job):
            keys = [file.key for file in seen]
            fail("I2", f"job {job.name} is {record.state}, and {keys} are visible")
        for key, (body, _) in job.covered.items():
            current = self._bucket.current(key)
            if current is None or current.body != body:
                fail("I5", f"job {job.name} is {record.state}; what {key} covered is not back")

    def _check_decision(self, job: Job, record: JobRecord) -> None:
        planned = self._planned(job, record)
        if sorted(self._counted(job, planned)) != sorted(planned):
            fail("I2", f"the plan of job {job.name} is not what its request counts")
        for upload_id in planned:
            file = self.files.get(upload_id)
            if file is None or file.job != job.name:
                fail("I7", f"job {job.name} counts upload {upload_id}, which is not its own")
            if file.key in job.planned:
                fail("I3", f"{file.key} is planned twice")
            job.planned[file.key] = file
        attempts = {(file.task, file.attempt) for file in job.planned.values()}
        if len(attempts) != len({task for task, _ in attempts}):
            fail("I3", f"two attempts of one task count in job {job.name}")
        conditions = job.spec.conditions
        if conditions.min_files is not None and len(planned) < conditions.min_files:
            fail("conditions", f"job {job.name} is decided with {len(planned)} files")
        for other in self.jobs.values():
            if other is not job and other.record_state in UNDER_WAY and job.conflicts(other):
                fail("I6", f"job {job.name} is decided while job {other.name} is under way")
        self._check_once(job)
        self._check_policy(job, record)

    def _check_once(self, job: Job) -> None:
        key = job.spec.idempotency_key
        if key is None:
            return
        for other in self.jobs.values():
            same = other.spec.idempotency_key == key and other.prefix == job.prefix
            if other is not job and same and other.record_state in DECIDED:
                fail("I11", f"jobs {job.name} and {other.name} are both decided under one key")

    def _check_policy(self, job: Job, record: JobRecord) -> None:
        """What the policy promises, as of the decision."""
        found = {
            key: version.etag
            for key in sorted(self._bucket.objects)
            if job.claims(key) and is_data(key[len(job.prefix) :]) and key not in job.planned
            if (version := self._bucket.current(key)) is not None
        }
        if job.spec.conflict is Conflict.FAIL and found:
            fail("I6", f"job {job.name} has conflict fail, is decided, and {list(found)} are there")
        if job.spec.conflict is Conflict.REPLACE:
            job.replaced = dict(self._list(job, record))
            strange = sorted(set(job.replaced) - set(found))
            strange = [key for key in strange if not (job.claims(key) and is_data(key))]
            if strange:
                fail("I5", f"job {job.name} is going to replace {strange}")
            if missed := sorted(set(found) - set(job.replaced)):
                fail("I6", f"job {job.name} is decided, and does not replace {missed}")

    def _body(self, key: str) -> bytes:
        version = self._bucket.current(key)
        if version is None or version.body is None:
            fail("I2", f"{key} is missing at the decision")
        return version.body

    def _counted(self, job: Job, planned: list[str]) -> list[str]:
        request = json.loads(self._body(job.place.request))
        if request["action"] != "commit":
            fail("I2", f"job {job.name} is decided, and its request says {request['action']}")
        if "attempts" not in request:
            return planned  # which of those that come late count is not for the request to say
        digests = [attempt["sha256"] for attempt in request["attempts"]]
        return [upload for digest in digests for upload in self.manifests[digest]]

    def _planned(self, job: Job, record: JobRecord) -> list[str]:
        plan = job.place.plan(record.plan.sha256 if record.plan else "")
        return [
            upload
            for unit in json.loads(self._body(plan))
            for part in unit["slices"]
            for upload in self.manifests[part["sha256"]][part["from"] : part["to"]]
        ]

    def _list(self, job: Job, record: JobRecord) -> Iterable[tuple[str, str]]:
        if record.replaced is None:
            fail("I10", f"job {job.name} replaces, and is decided without a list")
        index = json.loads(self._body(job.place.replaced(record.replaced.sha256)))
        for page in index["pages"]:
            for line in self._body(job.place.page(page)).splitlines():
                one = json.loads(line)
                yield one["key"], one["etag"]


def body_of(job: str, task: str, attempt: str, key: str) -> bytes:
    """The bytes that an attempt writes: no other attempt's, and no other file's."""
    return f"{job} {task} {attempt} {key}".encode()


def fail(invariant: str, seen: str) -> NoReturn:
    """Say which invariant does not hold."""
    raise Violation(invariant, seen)
