"""Open uploads below a destination: whose they are, and which may be aborted (I5)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from s3commit.cli.human import epoch_of
from s3commit.cli.session import Session
from s3commit.core.errors import InvalidInputError, S3CommitError, UploadGoneError
from s3commit.core.layout import (
    COMMITS,
    MAGIC_PREFIX,
    belongs_to_job,
    parse_directory,
)
from s3commit.core.model import Destination
from s3commit.core.ports import Ledger, OpenUpload
from s3commit.core.states import ENDED

# What a writer takes as a job id unless it is told otherwise.
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)


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
        self._destination = destination
        self._ledger = ledger
        self._ended = dict(_jobs_in_s3(session, destination))
        self._asked: dict[str, Owner] = {}
        self._odd = [job_id for job_id in self._ended if not _UUID.fullmatch(job_id)]

    def owner(self, key: str) -> tuple[Owner, str | None]:
        """Whose the upload at ``key`` is; if several jobs could have made it, a live one did."""
        found = [*_UUID.findall(key.rsplit("/", 1)[-1].split(".", 1)[0])]
        found += [job_id for job_id in self._odd if belongs_to_job(key, job_id)]
        if not found:
            return Owner.FOREIGN, None
        owners = [(self._of(job_id), job_id) for job_id in found]
        rank = [Owner.UNDER_WAY, Owner.ENDED, Owner.UNKNOWN]
        return min(owners, key=lambda owner: rank.index(owner[0]))

    def _of(self, job_id: str) -> Owner:
        if self._ended.get(job_id):
            return Owner.ENDED
        if job_id not in self._asked:
            self._asked[job_id] = self._ask(job_id)
        return self._asked[job_id]

    def _ask(self, job_id: str) -> Owner:
        record = self._ledger.job(job_id) if self._ledger else None
        if record is not None:
            here = record.destination.bucket == self._destination.bucket
            return Owner.ENDED if here and record.state in ENDED else Owner.UNDER_WAY
        return Owner.UNDER_WAY if job_id in self._ended else Owner.UNKNOWN


def find_leftovers(
    session: Session, destination: Destination, ledger: Ledger | None
) -> list[Leftover]:
    """Every open upload below the destination, the oldest first.

    Requests: the listings of the uploads, of the job directories and of ``_commits/``, and with a
    ledger a read for each job that S3 does not show as ended.
    """
    jobs = _Jobs(session, destination, ledger)
    now = session.environment.epoch()
    found = []
    for upload in session.store.list_uploads(destination.bucket, destination.prefix):
        owner, job_id = jobs.owner(upload.key)
        seconds = max(0, int(now - epoch_of(upload.initiated)))
        found.append(Leftover(upload, owner, job_id, seconds))
    return sorted(found, key=lambda leftover: (-leftover.seconds, leftover.upload.key))


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
    return sorted(found, key=lambda leftover: (-leftover.seconds, leftover.upload.key))


def _jobs_in_s3(session: Session, destination: Destination) -> Iterator[tuple[str, bool]]:
    """The jobs of which S3 has a trace at the destination, and whether they have ended."""
    bucket, prefix = destination.bucket, destination.prefix
    for found in session.store.list(bucket, prefix + COMMITS):
        yield found.key.rsplit("/", 1)[-1].removesuffix(".jsonl"), True
    ended: dict[str, bool] = {}
    for found in session.store.list(bucket, prefix + MAGIC_PREFIX):
        try:
            place = parse_directory(bucket, found.key)
        except InvalidInputError:
            continue  # the name of no job of ours
        ended[place.job_id] = ended.get(place.job_id, False) or found.key == place.result
    # A directory tells more than _commits/: without its result the job is being published.
    yield from ended.items()
