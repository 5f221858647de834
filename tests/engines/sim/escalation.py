"""I12: the pipeline does for an adversary what its right gives, and no more.

Jobs whose directory lies below the adversary's prefix are as its own: it can write each of their
documents, whoever began them (`Observer.intruders`). What is done for them is judged here, at the
call; what is done for all others is judged as ever, save that the adversary may put and overwrite
below its prefix.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any

from s3commit.core.documents.job_json import JobSpec
from s3commit.core.formats.layout import (
    MAGIC_PREFIX,
    PIPELINE,
    JobDirectory,
    is_data,
    is_inner_marker,
    owner_of,
)
from s3commit.core.model.destination import Conflict, Destination
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import JobState
from tests.engines.sim.adversary import directory_of
from tests.engines.sim.clients import BUCKET
from tests.engines.sim.decisions import Decisions
from tests.engines.sim.forgeries import NEVER
from tests.engines.sim.model import ENDED, KEEPERS, UNDOING, Job
from tests.engines.sim.observer import Observer
from tests.engines.sim.scheduler import Process, Scheduler, fail
from tests.fakes.bucket import Bucket, Version

Perform = Callable[[], Any]
_OTHERS = frozenset({"saboteur", "foreign", "ttl"})
_PUBLIC = frozenset({JobState.PUBLISHING, JobState.COMMITTED})


class Escalation(Observer):
    """The observer of a run with an adversary below ``prefix``."""

    def __init__(self, scheduler: Scheduler, bucket: Bucket, prefix: str) -> None:
        super().__init__(scheduler, bucket)
        self.prefix = prefix
        self.intruders: dict[str, Job] = {}  # by directory
        self.published: set[str] = set()  # lives of intruders that readers were promised
        self._uploads: set[str] = set()  # of the adversary, and of intruders
        self._versions: dict[int, tuple[Version, str]] = {}  # with the intruder that made it, or ""
        self._removed: set[str] = set()  # keys, by replaces that were asked for
        self._specs: dict[str, list[bytes]] = {}  # each _job.json that was ever put there, by key

    # Who is who.

    def intruder(self, directory: JobDirectory) -> Job:
        """The job at a directory below the prefix."""
        if directory.prefix not in self.intruders:
            spec = JobSpec(directory.job_id, directory.destination)
            name = f"Z{len(self.intruders)}"
            self.intruders[directory.prefix] = Job(name, directory, spec, intruder=True)
        return self.intruders[directory.prefix]

    def intruder_of(self, key: str) -> Job:
        """The job in whose directory a key below the prefix lies, or would lie."""
        directory = directory_of(key) or JobDirectory(Destination(BUCKET, self.prefix), NEVER)
        return self.intruder(directory)

    def job_at(self, directory: str) -> Job | None:
        """See `Observer.job_at`; any directory below the prefix may be a job's."""
        found = super().job_at(directory)
        if found is None and self.is_below(directory):
            return self.intruder_of(directory)
        return found

    def job_in(self, key: str) -> Job | None:
        return self.intruder_of(key) if self.is_below(key) else super().job_in(key)

    def is_below(self, key: str) -> bool:
        """Whether the adversary may put there."""
        return key.startswith(self.prefix)

    def _acts_for(self, process: Process) -> Job | None:
        """The intruder for which a process acts: the adversary's own acts for none."""
        return next((job for job in self.intruders.values() if job.name == process.job), None)

    def _is_theirs(self, key: str) -> bool:
        """Whether what is visible at the key was made by the adversary, or for an intruder."""
        version = self.bucket.current(key)
        return version is not None and id(version) in self._versions

    @property
    def everyone(self) -> list[Job]:
        return [*self.jobs.values(), *self.intruders.values()]

    @property
    def known_uploads(self) -> set[str]:
        """See `Observer.known_uploads`: those of the adversary, too."""
        return super().known_uploads | self._uploads

    def excuses(self, key: str) -> bool:
        of_theirs = {job.directory.job_id for job in self.intruders.values()}
        return self.is_below(key) and (
            self._is_theirs(key) or key in self._removed or owner_of(key) in of_theirs
        )

    # S3.

    def create_upload(self, process: Process, perform: Perform, args: Sequence[Any]) -> str:
        if process.role != "adversary" and self._acts_for(process) is None:
            return super().create_upload(process, perform, args)
        upload_id: str = perform()
        self._uploads.add(upload_id)
        self._expect_below(process, "began an upload of", args[1])
        return upload_id

    def complete_upload(self, process: Process, perform: Perform, args: Sequence[Any]) -> Any:
        key, upload_id = args[1], args[2]
        job = self._acts_for(process)
        if upload_id not in self._uploads:
            if job is not None and self.bucket.is_open(key, upload_id):
                fail("I12", f"{process.name} completes a foreign upload of {key}")
            return super().complete_upload(process, perform, args)
        was_open = self.bucket.is_open(key, upload_id)
        facts = perform()
        if was_open:
            if process.role != "adversary" and job is None:
                fail("I12", f"{process.name} completed the adversary's upload of {key}")
            self._expect_below(process, "completed", key)
            self._note(key, _life(job))
            # One that counts no file has only its commit manifest to complete, and claims nothing.
            # One that appends locks nothing.
            appends = job is not None and job.spec.conflict is Conflict.APPEND
            if job is not None and key != job.directory.commits and not appends:
                self._expect_alone(process, key)
        return facts

    def abort_upload(self, process: Process, perform: Perform, args: Sequence[Any]) -> Any:
        key, upload_id = args[1], args[2]
        if upload_id in self._uploads:
            return perform()
        if not self.bucket.is_open(key, upload_id):
            return perform()
        if self._acts_for(process) is not None:
            file = self.files.get(upload_id)
            fail("I12", f"{process.name} aborts {key} of {file.job if file else 'a stranger'}")
        return super().abort_upload(process, perform, args)

    def put(self, process: Process, perform: Perform, args: Sequence[Any]) -> Any:
        key = args[1]
        job = self._acts_for(process)
        is_word = process.role in KEEPERS and self.is_below(key)
        if process.role != "adversary" and job is None and not is_word:
            return super().put(process, perform, args)
        result = perform()
        process.effects["put"] += 1
        own = (job.directory.pipeline_prefix, job.directory.key_note("")[:-5]) if job else ()
        if process.role == "adversary" or not key.startswith(own):
            self._expect_below(process, "put", key)
        if job is not None and process.role == "pipeline" and key == job.directory.result:
            self._check_told(process, job)
        if process.role not in KEEPERS:
            self._note(key, _life(job))
        return result

    def deleted(self, process: Process, key: str, seen: tuple[Version, Any]) -> None:
        """See `Observer.deleted`: judged as ever where no intruder has a part in it."""
        if process.role in _OTHERS:
            return
        job = self._acts_for(process)
        version, file = seen
        who = self._versions.get(id(version))
        if who is not None and self.is_below(key):
            self._removed.add(key)
        if job is not None:
            process.effects["deleted"] += 1
            self._check_intruder(process, job, key, who)
        elif who is not None:
            process.effects["deleted"] += 1
            self._check_theirs(process, key, who[1])
        elif process.role in KEEPERS and self.is_below(key) and file is None:
            process.effects["deleted"] += 1
            if not _is_document(key):
                fail("I12", f"{process.name} deleted {key}, a stranger's")
        else:
            super().deleted(process, key, seen)

    # What is allowed.

    def _expect_below(self, process: Process, what: str, key: str) -> None:
        if not self.is_below(key):
            fail("I12", f"{process.name} {what} {key}, outside {self.prefix}")

    def _expect_alone(self, process: Process, key: str) -> None:
        """I6, of an intruder and others."""
        for other in self.jobs.values():
            if not other.reset and other.under_way and other.claims(key):
                fail("I6", f"{process.name} writes {key} while {other.name} is under way")

    def _check_intruder(
        self, process: Process, job: Job, key: str, who: tuple[Version, str] | None
    ) -> None:
        """A step or a handler of an intruder has deleted what was visible at the key."""
        if key.startswith(job.directory.pipeline_prefix):
            return
        self._expect_below(process, "deleted", key)
        if key.startswith(job.directory.prefix) or (who is not None and not who[1]):
            return
        if who is not None and who[1] == _life(job) and who[1] not in self.published:
            return  # a roll back of what it has completed
        destination = job.directory.destination.prefix
        replaces = job.decided and job.record_state in _PUBLIC and self._asks_to_replace(job)
        relative = key[len(destination) :]
        is_its = is_data(key[len(self.prefix) :]) or is_inner_marker(relative)
        if not (replaces and key.startswith(destination) and is_its):
            fail(
                "I12", f"{process.name} ({job.record_state}) deleted {key}, a put right is no more"
            )
        self._removed.add(key)
        for other in self.jobs.values():
            if not other.reset and other.under_way and key in other.planned:
                fail("I6", f"{process.name} replaces {key} while {other.name} is under way")

    def _asks_to_replace(self, job: Job) -> bool:
        """Whether any ``_job.json`` of the directory's has ever asked for it."""
        return any(b'"replace"' in body for body in self._specs.get(job.directory.job, ()))

    def _check_theirs(self, process: Process, key: str, name: str) -> None:
        """A sweep, or a job of others, has deleted what an intruder has made."""
        maker = next((job for job in self.intruders.values() if _life(job) == name), None)
        if not name or _is_document(key):
            return
        if process.role not in KEEPERS:
            job = self.jobs[process.job]
            if job.replaced.get(key) is None or job.record_state not in _PUBLIC:
                fail("I5", f"{process.name} deleted {key}, which no replace list names")
        elif name in self.published or maker is None or maker.record_state not in UNDOING:
            fail("I12", f"{process.name} deleted {key}, which stands")

    def _check_told(self, process: Process, job: Job) -> None:
        """Finding 6: what a job at another place has written is not in this one's result."""
        said = json.loads(self.body(job.directory.result))
        job.result = said["outcome"]
        message = (said["error"] or {}).get("message", "")
        job.failure = (said["error"] or {}).get("code", "")
        for other in self.jobs.values():
            job_id = other.directory.job_id
            at_this_place = JobDirectory(job.directory.destination, job_id).prefix
            if at_this_place in self.intruders:  # its counts are what the adversary has put here
                continue
            if job_id in message and "rows and that one" in message:
                fail("I12", f"{process.name} tells of job {other.name}: {message}")

    # What it keeps.

    def _note(self, key: str, who: str) -> None:
        version = self.bucket.objects[key][-1]
        self._versions[id(version)] = (version, who)
        self._removed.discard(key)
        for file in self.files.values():
            if file.key == key:
                self.jobs[file.job].sabotaged.add("put over")
        if key.endswith("/_job.json"):
            self._specs.setdefault(key, []).append(version.body or b"")


def _is_document(key: str) -> bool:
    """Whether it is one of those that the pipeline retires."""
    return key.startswith(PIPELINE) or MAGIC_PREFIX in key


def _life(job: Job | None) -> str:
    """Of an intruder; empty for the adversary itself."""
    return f"{job.name}/{job.life}" if job else ""


class EscalatedDecisions(Decisions):
    """The moves of the ledger, those of intruders among them."""

    def __init__(self, scheduler: Scheduler, observer: Escalation) -> None:
        super().__init__(scheduler, observer)
        self._watch = observer

    def moved(self, process: Process, record: JobRecord, *, opened: bool) -> None:
        job = self._watch.job_at(JobDirectory.of(record).prefix)
        if job is None or not job.intruder:
            super().moved(process, record, opened=opened)
            return
        before, job.record_state = job.record_state, record.state
        if record.state is before:
            return
        if before in ENDED:
            # A healed table may be behind: the decision record is what the pipeline wrote.
            job.life, job.decided = job.life + 1, opened and record.decided_at is not None
        if record.state is JobState.COMMITTING:
            job.decided = True
            for begin in self.at_decision.get(job.name, ()):
                begin()
        if record.state is JobState.PUBLISHING and not job.decided:
            fail("I12", f"job {job.name} is PUBLISHING, was {before}, and nobody has decided it")
        if record.state is JobState.COMMITTED:
            self._watch.published.add(_life(job))
