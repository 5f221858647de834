"""Open uploads below a destination: whose they are, and which may be aborted (I5)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from s3commit.cli.rescue.jobs import find_jobs, write_ids
from s3commit.cli.session import Session
from s3commit.cli.text import epoch_of
from s3commit.core.formats.layout import owner_of, write_of
from s3commit.core.model.errors import S3CommitError, UploadGoneError
from s3commit.core.model.job import Destination
from s3commit.core.ownership.open_uploads import Ownership, UploadOwners
from s3commit.core.ports.ledger import Ledger
from s3commit.core.ports.objects import OpenUpload


@dataclass(frozen=True, slots=True)
class Leftover:
    """An open upload. ``done`` is what was done with it: aborted, kept, or failed and why."""

    upload: OpenUpload
    owner: Ownership
    job_id: str | None
    seconds: int
    bytes: int | None = None
    done: str | None = None

    def may_go(self, older_than: int) -> bool:
        """Whether it may be aborted: its job has ended, or is unknown and it is old enough."""
        return self.owner is Ownership.ENDED or (
            self.owner is Ownership.UNKNOWN and self.seconds > older_than
        )


def find_leftovers(
    session: Session, destination: Destination, ledger: Ledger | None
) -> list[Leftover]:
    """Every open upload below the destination, the oldest first.

    Requests: the listings of the uploads, of the job directories and of ``_commits/``; for each job
    of S3A's that was left behind a read of one manifest, which has its files' id; for each job a
    read of the ledger; for one that is not found there, unless it is under way here, three for
    each directory above its files.
    """
    ask = ledger.jobs_with_id if ledger else lambda _job_id: []
    owners = UploadOwners(session.ports(session.store, ledger), destination.bucket, ask)
    left_by_s3a = {
        write
        for job in find_jobs(session, destination, None)[0]
        for write in write_ids(session, job)
    }
    now = session.environment.epoch()
    found = []
    for upload in session.store.list_uploads(destination.bucket, destination.prefix):
        owner, job_id = owners.of(upload), owner_of(upload.key)
        write = write_of(upload.key)
        if write in left_by_s3a:  # of its driver, or until `s3commit rescue` ends it
            owner, job_id = Ownership.UNDER_WAY, write
        if owner is Ownership.FOREIGN:
            job_id = None
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
            parts = session.store.upload_parts(destination.bucket, upload.key, upload.upload_id)
        except UploadGoneError:
            return None
        return replace(leftover, bytes=parts.bytes)

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
