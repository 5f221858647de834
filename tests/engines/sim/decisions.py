"""The invariants as of each move of the ledger: the decision, the end, and the way there."""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from s3commit.core.formats.layout import JobDirectory, is_data, is_inner_marker, owner_of
from s3commit.core.model.destination import Conflict
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import JobState
from tests.engines.sim.model import DECIDED, ENDED, Job
from tests.engines.sim.observer import Observer
from tests.engines.sim.order import came_before
from tests.engines.sim.scheduler import Process, Scheduler, fail
from tests.engines.sim.undoing import check_undo, undos_of

_PUBLIC = (JobState.PUBLISHING, JobState.COMMITTED)
_AGAIN = {
    (JobState.COMMITTED, JobState.PUBLISHING),
    (JobState.ABORTED, JobState.OPEN),
    (JobState.ABORTED, JobState.ABORTING),
}


class Decisions:
    """Stands beside the ledger; raises `Violation`."""

    def __init__(self, scheduler: Scheduler, observer: Observer) -> None:
        self.at_decision: dict[str, list[Callable[[], object]]] = {}
        self._scheduler = scheduler
        self._seen = observer
        self._bucket = observer.bucket

    def looks(self) -> None:
        """The running process looks whose turn it is, for its job."""
        process = self._scheduler.current
        for job in self._seen.everyone:
            if process is not None and job.name == process.job:
                job.looked_at = self._scheduler.steps

    def moved(self, process: Process, record: JobRecord, *, opened: bool) -> None:
        """The ledger has ``record`` stored; ``opened``: it was made, or was found there."""
        job = self._seen.job_at(JobDirectory.of(record).prefix)
        if job is None:
            fail("I7", f"{process.name} has opened a job at {JobDirectory.of(record).prefix}")
        late = {
            JobState.OPEN,
            JobState.COMMITTING if job.record_state in _PUBLIC else JobState.OPEN,
        }
        if opened and job.reset and job.decided and record.state in late:
            return  # by a handler from before the loss: the healing takes its place
        before, job.record_state = job.record_state, record.state
        job.freed = record.state is JobState.ROLLING_BACK and not record.locks
        if job.freed and not job.appends:
            self._check_freed(job)
        if before is record.state:
            return
        # The last step of before a loss may put the result after somebody has looked for it; and
        # that a job was aborted the ledger alone says, until its result is there.
        again = bool(job.reset) and (before, record.state) in _AGAIN
        healed = opened or record.state is JobState.ABORTING
        healed |= bool(job.reset) and record.state in _PUBLIC
        if process.job != job.name and not healed:
            fail("I6", f"{process.name} moved job {job.name} to {record.state}")
        if before in ENDED and not again:
            fail("I8", f"job {job.name} was {before}, and is {record.state} again")
        if record.state in {JobState.ABORTING, JobState.ROLLING_BACK}:
            job.undoing_since = self._scheduler.steps
        if record.state is JobState.SEALED and job.sealed_at is None:
            job.sealed_at = self._scheduler.steps
        if record.state is JobState.COMMITTED and job.ended_at is None:
            job.ended_at = self._scheduler.steps
        if record.state is JobState.COMMITTING:
            job.decided_at = self._scheduler.steps
            job.appends = record.conflict is Conflict.APPEND
            job.decided, job.plan = True, record.plan.sha256 if record.plan else ""
            self._check_decision(job, record)
            for begin in self.at_decision.get(job.name, ()):
                begin()
        elif record.state in {JobState.PUBLISHING, JobState.COMMITTED}:
            if missing := self._seen.missing(job):
                fail("I2", f"job {job.name} is {record.state}, and {missing} are not visible")
            if record.state is JobState.COMMITTED:
                self._check_committed(job)
        elif record.state in {JobState.ABORTED, JobState.ROLLED_BACK}:
            self._check_undone(process, job, record)

    def _check_freed(self, job: Job) -> None:
        """It has no locks any more: so nothing of it is visible, and nothing will be."""
        if seen := self._seen.visible_files(job):
            fail("I6", f"job {job.name} has no locks, and {[f.key for f in seen]} are visible")
        for file in job.planned.values():
            if self._bucket.is_open(file.key, file.upload_id):
                fail("I6", f"job {job.name} has no locks, and its upload of {file.key} is open")

    def _check_committed(self, job: Job) -> None:
        if self._bucket.current(job.directory.commits) is None:
            fail("I9", f"job {job.name} is COMMITTED without a manifest in _commits/")
        if self._bucket.current(job.directory.success) is None:
            fail("I9", f"job {job.name} is COMMITTED without _SUCCESS")
        for key, etag in job.replaced.items():
            current = self._bucket.current(key)
            if current is not None and current.etag == etag:
                fail("I10", f"job {job.name} is COMMITTED, and {key} of before is still there")

    def _check_undone(self, process: Process, job: Job, record: JobRecord) -> None:
        # Uploads are looked for once more after the deletes.
        self._seen.check_closed(job, max(job.undoing_since or 0, process.deleted_at))
        if job.decided and record.state is JobState.ABORTED:
            fail("I2", f"job {job.name} was decided, and is ABORTED")
        if seen := self._seen.visible_files(job):
            keys = [file.key for file in seen]
            fail("I2", f"job {job.name} is {record.state}, and {keys} are visible")

    def _check_decision(self, job: Job, record: JobRecord) -> None:
        planned = self._planned(job, record)
        if sorted(self._counted(job)) != sorted(planned):
            fail("I2", f"the plan of job {job.name} is not what its request counts")
        for upload_id in planned:
            file = self._seen.files.get(upload_id)
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
        for other in self._seen.jobs.values():
            if other is not job and other.under_way and job.conflicts(other):
                fail("I6", f"job {job.name} is decided while job {other.name} is under way")
        self._check_once(job)
        self._check_policy(job, record)

    def _check_once(self, job: Job) -> None:
        key = job.spec.idempotency_key
        if key is None:
            return
        for other in self._seen.jobs.values():
            same = other.spec.idempotency_key == key and other.prefix == job.prefix
            is_freed = undos_of(self._seen.everyone, other)
            if other is not job and same and other.record_state in DECIDED and not is_freed:
                fail("I11", f"jobs {job.name} and {other.name} are both decided under one key")

    def _check_policy(self, job: Job, record: JobRecord) -> None:
        """What the policy promises, as of the decision."""
        found = {
            key: version.etag
            for key in sorted(self._bucket.objects)
            if job.claims(key) and is_data(job.relative(key)) and key not in job.planned
            if owner_of(key) != job.directory.job_id  # put there before, to look like its own
            if (version := self._bucket.current(key)) is not None
        }
        # Who has a right, and no lock; and who appends and had not ended when this job began.
        theirs = {key for key in found if self._seen.excuses(key) or self._may_stay(job, key)}
        if job.spec.conflict is Conflict.FAIL and set(found) - theirs:
            fail("I6", f"job {job.name} has conflict fail, is decided, and {list(found)} are there")
        if job.spec.conflict is Conflict.REPLACE:
            job.replaced = dict(self._list(job, record))
            if job.victim:
                check_undo(self._seen, job, job.victim)
                return
            strange = [
                key
                for key in sorted(set(job.replaced) - set(found))
                if not (job.claims(key) and (is_data(key) or is_inner_marker(job.relative(key))))
            ]
            if strange:
                fail("I5", f"job {job.name} is going to replace {strange}")
            if missed := sorted(set(found) - set(job.replaced) - theirs):
                fail("I6", f"job {job.name} is decided, and does not replace {missed}")

    def _may_stay(self, job: Job, key: str) -> bool:
        """Whether its name says that it is of a job that appends and had not ended before."""
        makers = (one for one in self._seen.jobs.values() if one.directory.job_id == owner_of(key))
        return any(maker.appends and not came_before(maker, job) for maker in makers)

    def _counted(self, job: Job) -> list[str]:
        request = json.loads(self._seen.body(job.directory.request))
        if request["action"] != "commit":
            fail("I2", f"job {job.name} is decided, and its request says {request['action']}")
        digests = [attempt["sha256"] for attempt in request["attempts"]]
        return [upload for digest in digests for upload in self._seen.manifests[digest]]

    def _planned(self, job: Job, record: JobRecord) -> list[str]:
        sha256 = record.plan.sha256 if record.plan else ""
        return [line["uploadId"] for line in self._lines(job.directory, sha256)]

    def _list(self, job: Job, record: JobRecord) -> Iterable[tuple[str, str]]:
        if record.replaced is None:
            fail("I10", f"job {job.name} replaces, and is decided without a list")
        lines = self._lines(job.directory.of_replaced, record.replaced.sha256)
        return [(line["key"], line["etag"]) for line in lines]

    def _lines(self, directory: JobDirectory, sha256: str) -> Iterator[dict[str, Any]]:
        """The lines of one of the pipeline's lists."""
        for unit in json.loads(self._seen.body(directory.index(sha256))):
            lines = self._seen.body(directory.page(unit["page"])).splitlines()
            yield from map(json.loads, lines[unit["from"] : unit["to"]])
