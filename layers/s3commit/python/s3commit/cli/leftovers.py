"""Open uploads below a destination: whose they are, and which may be aborted (I5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from s3commit.cli.human import epoch_of
from s3commit.cli.s3a_jobs import find_jobs, write_ids
from s3commit.cli.session import Session
from s3commit.core.formats.layout import (
    COMMITS,
    MAGIC_PREFIX,
    JobDirectory,
    is_of_other_writers,
    owner_of,
    parse_directory,
    write_of,
)
from s3commit.core.model.errors import InvalidInputError, S3CommitError, UploadGoneError
from s3commit.core.model.job import Destination
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import ENDED
from s3commit.core.ports.ledger import Ledger
from s3commit.core.ports.objects import OpenUpload


class Owner(StrEnum):
    """Whose an upload is, by the job id in its file name."""

    ENDED = "ended"  # of a job that has ended: it can never be completed
    UNDER_WAY = "under way"  # of a job that may still commit it
    UNKNOWN = "unknown"  # has an id of which there is no trace: of a job long gone, or none
    FOREIGN = "foreign"  # has no job id in its name: not ours


@dataclass(frozen=True, slots=True)
class Leftover:
    """An open upload. ``done`` is what was done with it: aborted, kept, or failed and why."""

    upload: OpenUpload
    owner: Owner
    job_id: str | None
    seconds: int
    bytes: int | None = None
    done: str | None = None

    def may_go(self, older_than: int) -> bool:
        """Whether it may be aborted: its job has ended, or is unknown and it is old enough."""
        return self.owner is Owner.ENDED or (
            self.owner is Owner.UNKNOWN and self.seconds > older_than
        )


class _Jobs:
    """Which jobs have ended, by their directories, ``_commits/`` and the ledger."""

    def __init__(self, session: Session, destination: Destination, ledger: Ledger | None) -> None:
        self._store = session.store
        self._bucket = destination.bucket
        self._ledger = ledger
        self._here = dict(_jobs_at(session, destination))
        self._records: dict[str, list[JobRecord]] = {}
        self._traced: dict[tuple[str, str], Owner | None] = {}

    def owner(self, key: str) -> tuple[Owner, str | None]:
        """Whose the upload at ``key`` is, and the id of the one job that can have made it."""
        job_id = owner_of(key)
        if job_id is None:
            write = write_of(key)  # of a job of S3A's that was left behind here, or of anybody
            is_left = write is not None and self._here.get(write) is Owner.UNDER_WAY
            return (Owner.UNDER_WAY, write) if is_left else (Owner.FOREIGN, None)
        found = self._of(key, job_id)
        if found is Owner.UNKNOWN and is_of_other_writers(key):
            return Owner.FOREIGN, None
        return found, job_id

    def _of(self, key: str, job_id: str) -> Owner:
        if job_id not in self._records:
            self._records[job_id] = self._ledger.jobs_with_id(job_id) if self._ledger else []
        records = [one for one in self._records[job_id] if self._lies_in(key, one)]
        if records:
            # Of an id in directories inside each other the outer one is the job's (I12).
            record = min(records, key=lambda one: len(one.destination.prefix))
            return Owner.ENDED if record.state in ENDED else Owner.UNDER_WAY
        here = self._here.get(job_id)
        if here is Owner.UNDER_WAY:
            return here
        # A copied directory must not speak for another one.
        traces = {here, *self._traces(key, job_id)}
        for owner in (Owner.UNDER_WAY, Owner.ENDED):
            if owner in traces:
                return owner
        return Owner.UNDER_WAY if self._records[job_id] else Owner.UNKNOWN

    def _lies_in(self, key: str, record: JobRecord) -> bool:
        locations = record.plan.locations.values() if record.plan else ()
        places = (record.destination.prefix, *locations)
        return record.destination.bucket == self._bucket and key.startswith(places)

    def _traces(self, key: str, job_id: str) -> Iterator[Owner | None]:
        """By the job directory in each directory above the file: a job writes below its own."""
        directories = key.split("/")[:-1]
        for depth in range(len(directories), 0, -1):
            where = ("/".join(directories[:depth]) + "/", job_id)
            if where not in self._traced:
                self._traced[where] = self._trace(*where)
            yield self._traced[where]

    def _trace(self, prefix: str, job_id: str) -> Owner | None:
        place = JobDirectory(Destination(self._bucket, prefix), job_id)
        if self._store.head(self._bucket, place.result) is not None:
            return Owner.ENDED
        if next(iter(self._store.list(self._bucket, place.prefix)), None) is not None:
            return Owner.UNDER_WAY
        committed = self._store.head(self._bucket, place.commits) is not None
        return Owner.ENDED if committed else None


def find_leftovers(
    session: Session, destination: Destination, ledger: Ledger | None
) -> list[Leftover]:
    """Every open upload below the destination, the oldest first.

    Requests: the listings of the uploads, of the job directories and of ``_commits/``; for each job
    of S3A's that was left behind a read of one manifest, which has its files' id; for each job a
    read of the ledger; for one that is not found there, unless it is under way here, three for
    each directory above its files.
    """
    jobs = _Jobs(session, destination, ledger)
    now = session.environment.epoch()
    found = []
    for upload in session.store.list_uploads(destination.bucket, destination.prefix):
        owner, job_id = jobs.owner(upload.key)
        seconds = max(0, int(now - epoch_of(upload.initiated)))
        found.append(Leftover(upload, owner, job_id, seconds))
    return _in_order(found)


def measure(
    session: Session, destination: Destination, found: Iterable[Leftover]
) -> list[Leftover]:
    """The leftovers with their bytes; without those that are gone by now."""

    def one(leftover: Leftover) -> Leftover | None:
        upload = leftover.upload
        try:
            count = session.peek.uploaded_bytes(destination.bucket, upload.key, upload.upload_id)
        except UploadGoneError:
            return None
        return replace(leftover, bytes=count)

    return _in_order(filter(None, session.parallel(one, found)))


def abort_leftovers(
    session: Session, destination: Destination, found: Iterable[Leftover], older_than: int
) -> list[Leftover]:
    """Abort those that may go; each comes back with what was done with it."""

    def one(leftover: Leftover) -> Leftover:
        if not leftover.may_go(older_than):
            return replace(leftover, done="kept")
        upload = leftover.upload
        try:
            session.store.abort_upload(destination.bucket, upload.key, upload.upload_id)
        except S3CommitError as error:
            return replace(leftover, done=f"failed: {error.message}")
        return replace(leftover, done="aborted")

    return _in_order(session.parallel(one, found))


def _in_order(found: Iterable[Leftover]) -> list[Leftover]:
    return sorted(found, key=lambda leftover: (leftover.upload.initiated, leftover.upload.key))


def _jobs_at(session: Session, destination: Destination) -> Iterator[tuple[str, Owner]]:
    """The jobs of which there is a trace at the destination itself."""
    bucket, prefix = destination.bucket, destination.prefix
    # First, since what is known of a job by its own id is stronger.
    for job in find_jobs(session, destination, None)[0]:
        for name in write_ids(session, job):
            yield name, Owner.UNDER_WAY  # of its driver, or until `s3commit rescue` ends it
    for found in session.store.list(bucket, prefix + COMMITS):
        yield found.key.rsplit("/", 1)[-1].removesuffix(".jsonl"), Owner.ENDED
    owners: dict[str, Owner] = {}
    for found in session.store.list(bucket, prefix + MAGIC_PREFIX):
        try:
            place = parse_directory(bucket, found.key)
        except InvalidInputError:
            continue  # the name of no job of ours
        if found.key == place.result:
            owners[place.job_id] = Owner.ENDED
        owners.setdefault(place.job_id, Owner.UNDER_WAY)
    # A directory tells more than _commits/: without its result the job is being published.
    yield from owners.items()
