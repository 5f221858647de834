"""The ledger's records made again from S3 alone, after the table was lost (I8)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from s3commit.core.errors import InvalidInputError, NotFoundError
from s3commit.core.fsck.ports import Fsck
from s3commit.core.layout import MAGIC_PREFIX, PENDINGSET_SUFFIX, JobDirectory, parse_directory
from s3commit.core.model import Destination, JobRecord
from s3commit.core.protocol.ingest import Arrival, judge_arrival, note_arrivals
from s3commit.core.protocol.pipeline import read_spec
from s3commit.core.protocol.places import is_location
from s3commit.core.protocol.remembered import remembered
from s3commit.core.states import ENDED, JobState


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """One job directory, and what became of it: ``state`` is None if it was left out, and why.

    ``made`` is False for a job that the ledger has. ``attempts`` counts the manifests that were
    noted. ``goes_on``: somebody has to work on the job; ``started``: an execution was started for
    it; ``running``: one was at work already. ``failed``: a person has to look at it.
    """

    place: JobDirectory
    state: JobState | None
    made: bool = False
    attempts: int = 0
    goes_on: bool = False
    started: bool = False
    running: bool = False
    failed: bool = False
    why: str = ""

    @property
    def is_left(self) -> bool:
        """Whether something is left to be done."""
        return self.failed or (self.goes_on and not (self.started or self.running))


def rebuild(fsck: Fsck, destination: Destination, *, dry_run: bool = False) -> Iterator[Rebuilt]:
    """Make the record of each job below the destination that the ledger does not have.

    Jobs are found at any depth, by their directories; one whose directory has been cleared away
    needs no record. A record that is there stays as it is, so repeating this does no harm, nor does
    doing it while jobs run. Whatever waits for an execution gets one. Requests: the listing of
    everything below the destination, and as many for a job as its first event would have taken.
    """
    for place, manifests in _directories(fsck, destination):
        try:
            yield _rebuild(fsck, place, manifests, dry_run)
        except (InvalidInputError, NotFoundError) as error:
            yield Rebuilt(place, None, failed=True, why=error.message)


def _directories(fsck: Fsck, destination: Destination) -> Iterator[tuple[JobDirectory, list[str]]]:
    """Each job directory with the keys of its manifests; a directory's keys come together."""
    place: JobDirectory | None = None
    manifests: list[str] = []
    for listed in fsck.pipeline.store.list(destination.bucket, destination.prefix):
        if MAGIC_PREFIX not in listed.key:
            continue
        try:
            here = parse_directory(destination.bucket, listed.key)
        except InvalidInputError:
            continue
        if here != place:
            if place is not None:
                yield place, manifests
            place, manifests = here, []
        if listed.key.endswith(PENDINGSET_SUFFIX):
            manifests.append(listed.key)
    if place is not None:
        yield place, manifests


def _rebuild(fsck: Fsck, place: JobDirectory, manifests: list[str], dry_run: bool) -> Rebuilt:
    record = fsck.pipeline.ledger.job(place.job_id)
    made = record is None
    if record is None:
        try:
            spec = read_spec(fsck.pipeline, place)
        except InvalidInputError as error:
            return _left_out(fsck, place, error)
        record = remembered(fsck.pipeline, place, spec)
        if not dry_run:
            record = fsck.pipeline.ledger.open_job(record)
    if record.destination != place.destination:
        return Rebuilt(place, None, why=f"the ledger has the id at {record.destination.uri}")
    if record.state in ENDED:
        return Rebuilt(place, record.state, made)
    attempts = 0 if dry_run else _note_attempts(fsck, place, manifests)
    found = Rebuilt(place, record.state, made, attempts)
    if not _is_asked_for(fsck, place, record):
        return found
    found = replace(found, goes_on=True, running=not made and fsck.hands.is_running(place, record))
    if dry_run or found.running:
        return found
    try:
        fsck.hands.start(place, record)
    except InvalidInputError as error:
        return replace(found, why=error.message)
    return replace(found, started=True)


def _left_out(fsck: Fsck, place: JobDirectory, error: InvalidInputError) -> Rebuilt:
    if is_location(fsck.pipeline, place):
        return Rebuilt(place, None, why="it is a location of a job that lies elsewhere")
    # A copied table's job must not take the id from the one it was copied from.
    return Rebuilt(place, None, failed=error.code != "WRONG_JOB", why=error.message)


def _is_asked_for(fsck: Fsck, place: JobDirectory, record: JobRecord) -> bool:
    if record.state is not JobState.OPEN:
        return True
    return fsck.pipeline.store.head(place.bucket, place.request) is not None


def _note_attempts(fsck: Fsck, place: JobDirectory, manifests: list[str]) -> int:
    """Note what has arrived; a manifest that is not acceptable is for the request to be refused."""

    def judge(key: str) -> Arrival | None:
        try:
            return judge_arrival(fsck.pipeline, place.bucket, key)
        except InvalidInputError:
            return None

    arrivals = [one for one in fsck.pipeline.parallel(judge, manifests) if one is not None]
    return note_arrivals(fsck.pipeline, arrivals)
