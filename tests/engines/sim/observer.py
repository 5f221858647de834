"""The invariants, looked at each time that something changes (docs/proof.md says them in words).

It knows what each upload was, from the moment that it was started, and judges by that and by the
bytes in the bucket; of the code under test it trusts nothing but the formats.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

from s3commit.core.model.states import JobState
from s3commit.core.ports.objects import ListedObject
from tests.engines.sim.deletions import check_deleted
from tests.engines.sim.documents import check_own_object, decision_of
from tests.engines.sim.keeping import may_speak
from tests.engines.sim.model import KEEPERS, UNDOING, File, Job
from tests.engines.sim.scheduler import Process, Scheduler, fail
from tests.fakes.bucket import Bucket, Version

Perform = Callable[[], Any]


class Observer:
    """Stands beside the store and the ledger; raises `Violation`."""

    def __init__(self, scheduler: Scheduler, bucket: Bucket) -> None:
        self.jobs: dict[str, Job] = {}
        self.files: dict[str, File] = {}
        self.manifests: dict[str, list[str]] = {}  # by digest: the uploads of each one ever put
        self.scheduler = scheduler
        self.bucket = bucket
        self._owner: dict[int, tuple[Version, File]] = {}

    # What is to be seen.

    def visible(self, key: str) -> tuple[Version, File | None] | None:
        """The object at ``key`` with the upload that made it (None: no job's)."""
        version = self.bucket.current(key)
        if version is None:
            return None
        owner = self._owner.get(id(version))
        return version, owner[1] if owner else None

    def visible_files(self, job: Job) -> list[File]:
        """The files of the job that readers see."""
        found = (self.visible(key) for key in sorted(self.bucket.objects))
        return [one[1] for one in found if one and one[1] and one[1].job == job.name]

    def missing(self, job: Job) -> list[str]:
        """The keys of the plan at which its very file is not visible.

        Once the ledger was lost another job may have been decided beside it, and replaced them.
        """
        gone = [key for key, file in job.planned.items() if not self.shows(key, file)]
        gone = [key for key in gone if not self.excuses(key)]
        if not gone or not job.reset:
            return gone
        others = [other for other in self.jobs.values() if other is not job]
        return [key for key in gone if not any(key in other.replaced for other in others)]

    def shows(self, key: str, file: File) -> bool:
        """Whether this very file is visible."""
        seen = self.visible(key)
        return seen is not None and seen[1] is file and seen[0].body == file.body

    @property
    def known_uploads(self) -> set[str]:
        """The uploads that tasks have begun."""
        return set(self.files)

    def is_below(self, key: str) -> bool:
        """Whether an adversary may put there."""
        return False

    def excuses(self, key: str) -> bool:
        """Whether an adversary may have put, or replaced, what was there; see `Escalation`."""
        return False

    @property
    def everyone(self) -> list[Job]:
        """Those too that the adversary has made."""
        return list(self.jobs.values())

    def note_request(self, key: str) -> None:
        """Whose request was put, if its is the key; the last one before it is sealed counts."""
        for job in self.everyone:
            if job.directory.request == key and job.sealed_at is None:
                job.requested = self.scheduler.seconds

    def job_at(self, directory: str) -> Job | None:
        """The job whose own directory this is."""
        return next((job for job in self.jobs.values() if job.directory.prefix == directory), None)

    def job_of(self, process: Process, key: str) -> Job | None:
        """The job for which a process acts; a sweep does for the one that it finds."""
        if process.role not in KEEPERS:
            return self.jobs.get(process.job)
        seen = self.visible(key)
        if seen is not None and seen[1] is not None:
            return self.jobs[seen[1].job]
        return self.job_in(key)

    def job_in(self, key: str) -> Job | None:
        """The job in one of whose directories the key lies, or in the pipeline's own for it."""
        found = (
            job
            for job in self.jobs.values()
            if key.startswith((job.directory.prefix, job.directory.pipeline_prefix))
        )
        return next(found, None)

    # S3.

    def note_manifest(self, key: str) -> None:
        """A task has put its manifest."""
        body = self.body(key)
        uploads = [commit["uploadId"] for commit in json.loads(body)["commits"]]
        self.manifests[hashlib.sha256(body).hexdigest()] = uploads

    def create_upload(self, process: Process, perform: Perform, args: Sequence[Any]) -> str:
        """A task's upload is known from here on, even if its answer is lost."""
        upload_id: str = perform()
        if process.role == "task":
            task, attempt = process.about
            copy = self.jobs[process.job].copies.get(args[1])
            body = copy.body if copy else body_of(process.job, task, attempt, args[1])
            origin = copy.origin if copy else ""
            self.files[upload_id] = File(
                process.job, task, attempt, args[1], upload_id, body, self.scheduler.steps, origin
            )
        return upload_id

    def complete_upload(self, process: Process, perform: Perform, args: Sequence[Any]) -> Any:
        key, upload_id = args[1], args[2]
        before = self.visible(key)
        was_open = upload_id in self.bucket.uploads
        excused = self.excuses(key)
        facts = perform()
        if not was_open:
            return facts  # a repetition, answered with what the first one made
        version = self.bucket.objects[key][-1]
        file = self.files.get(upload_id)
        if file is None:
            check_own_object(self, process, key, None)
            return facts
        self._owner[id(version)] = (version, file)
        job = self.jobs[file.job]
        if process.job != file.job:
            fail("I5", f"{process.name} completed {key} of job {file.job}")
        if process.since <= job.lost_step:
            return facts  # let in by a ledger that was lost since: what follows finds the file
        if not job.decided:
            fail("I1", f"{key} is visible, and job {job.name} is {job.record_state}")
        if decision_of(self, job).get("plan", {}).get("sha256") != job.plan:
            fail("I8", f"{key} is visible, and no decision record of job {job.name} says so")
        if job.planned.get(key) is not file:
            fail("I3", f"{key} of attempt {file.task}.{file.attempt} is visible, and not counted")
        if job.ended:
            fail("I2", f"{key} became visible after job {job.name} had ended {job.record_state}")
        if before is not None and before[1] is not file and not excused:
            fail("I5", f"{key} covers an object that was there")
        return facts

    def abort_upload(self, process: Process, perform: Perform, args: Sequence[Any]) -> Any:
        key, upload_id = args[1], args[2]
        was_open = upload_id in self.bucket.uploads
        result = perform()
        if not was_open or process.role == "saboteur":
            return result
        file = self.files.get(upload_id)
        if process.role in KEEPERS:  # what they find, an execution aborts that they start
            fail("sweep", f"{process.name} aborted {key}")
        if file is None or file.job != process.job:
            if file is None and self.is_own_key(process, key):
                return result
            job = self.jobs[file.job] if file else None
            if job and job.outer == process.job and self._is_outers(job):
                return result
            fail("I5", f"{process.name} aborted a foreign upload of {key}")
        job = self.jobs[file.job]
        if process.role == "task" or process.since <= job.lost_step:
            return result
        if job.record_state not in UNDOING | {JobState.COMMITTED}:
            fail("I2", f"an upload of job {job.name} was aborted while it was {job.record_state}")
        return result

    def put(self, process: Process, perform: Perform, args: Sequence[Any]) -> Any:
        key = args[1]
        before = self.bucket.current(key)
        result = perform()
        process.effects["put"] += 1
        if process.role in KEEPERS:
            job = self.job_of(process, key)
            signs, taken = (self.signs(job), self._is_taken(job)) if job else ([], False)
            may_speak(process, job, key, before, self.body(key), signs, taken=taken)
        elif process.role not in {"driver", "task", "foreign", "saboteur"}:
            check_own_object(self, process, key, before)
        return result

    def _is_taken(self, job: Job) -> bool:
        """Whether another job is committed with its key."""
        key = job.spec.idempotency_key
        others = (one for one in self.jobs.values() if one is not job and one.prefix == job.prefix)
        return key is not None and any(
            one.spec.idempotency_key == key
            and JobState.COMMITTED in {one.record_state, one.lost_as}
            for one in others
        )

    def _is_outers(self, job: Job) -> bool:
        """Whether what carries the job's id belongs to a job further up, which has ended."""
        if not job.nested:
            return False
        outer = self.jobs[job.outer]
        return outer.over or outer.record_state in UNDOING

    def signs(self, job: Job) -> list[str]:
        """When something was put into the job's directory."""
        return [
            version.modified
            for key in self.bucket.objects
            if key.startswith(job.directory.prefix)
            and (version := self.bucket.current(key)) is not None
        ]

    def delete(self, process: Process, perform: Perform, args: Sequence[Any]) -> Any:
        key = args[1]
        before = self.visible(key)
        result = perform()
        if before is not None and self.bucket.current(key) is not before[0]:
            self.deleted(process, key, before)
        return result

    def delete_seen(self, process: Process, perform: Perform, args: Sequence[Any]) -> Any:
        objects: Sequence[ListedObject] = args[1]
        before = {one.key: self.visible(one.key) for one in objects}
        result = perform()
        for key, seen in before.items():
            if seen is not None and self.bucket.current(key) is not seen[0]:
                self.deleted(process, key, seen)
        return result

    def deleted(self, process: Process, key: str, seen: tuple[Version, File | None]) -> None:
        """What was visible at the key is so no more."""
        check_deleted(self, process, key, seen)

    def is_own_key(self, process: Process, key: str) -> bool:
        """Whether the key is of one of the job's own documents and working objects."""
        job = self.job_of(process, key)
        if job is None:
            return False
        directory = job.directory
        own = (directory.prefix, directory.pipeline_prefix, directory.commits, directory.success)
        freed = job.victim.key_notes if job.victim else ()
        return key.startswith((*own, *job.key_notes, *freed))

    def check_closed(self, job: Job, since: int) -> None:
        """No upload is open that was there before step ``since``; a zombie may start more."""
        if job.nested:
            return  # what carries its id is aborted when the job further up has ended
        for upload_id in sorted(self.bucket.uploads):
            file = self.files.get(upload_id)
            if file is None or file.job != job.name or file.since >= since:
                continue
            fail("I4", f"job {job.name} is {job.record_state}, and {file.key} is still open")

    def body(self, key: str) -> bytes:
        """The bytes of one of the job's documents."""
        version = self.bucket.current(key)
        if version is None or version.body is None:
            fail("I2", f"{key} is missing")
        return version.body


def body_of(job: str, task: str, attempt: str, key: str) -> bytes:
    """The bytes that an attempt writes: no other attempt's, and no other file's."""
    return f"{job} {task} {attempt} {key}".encode()
