"""The ledger's records made again from S3 alone, after the table was lost (I8).

Three passes. The first makes the records of jobs that have ended, or that nobody has requested.
The second makes those of jobs that were requested, and gives back to each one that was decided
before the loss what it locked (I6): only then does the third start an execution for each of them,
so that none can be decided beside one whose lock is not back yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby, islice
from operator import itemgetter
from typing import Protocol, TypeVar

from s3commit.core.commit.ingest_pendingsets import Arrival, judge_arrival, note_arrivals
from s3commit.core.formats.layout import (
    MAGIC_PREFIX,
    PENDINGSET_SUFFIX,
    JobDirectory,
    parse_directory,
)
from s3commit.core.job.claims import release_locks
from s3commit.core.job.decision_record import read_decision
from s3commit.core.job.documents import read_spec
from s3commit.core.model.errors import AccessError, InvalidInputError, NotFoundError
from s3commit.core.model.job import Destination
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import ENDED, UNDER_COMMIT, JobState
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.objects import ListedObject
from s3commit.core.recovery.lost_record import record_from_s3
from s3commit.core.recovery.restored_locks import hold_again

T = TypeVar("T")

NOTED_AT_ONCE = 1_000  # manifests
# What a document of one job can bring about, and no other job has to wait for (I12).
_OF_ONE_JOB = (InvalidInputError, NotFoundError, AccessError)

_UNDER_WAY = frozenset({JobState.COMMITTING, JobState.PUBLISHING, JobState.ROLLING_BACK})
# Where a ledger may have a job of which the decision record says that. It comes after the ledger.
_NOT_BEFORE = {
    JobState.COMMITTING: _UNDER_WAY | ENDED,
    JobState.PUBLISHING: frozenset({JobState.PUBLISHING, JobState.COMMITTED}),
    JobState.COMMITTED: frozenset({JobState.COMMITTED}),
    JobState.ROLLED_BACK: frozenset({JobState.ROLLED_BACK}),
}


class JobExecutions(Protocol):
    """The executions that work on jobs."""

    def is_running(self, directory: JobDirectory, record: JobRecord) -> bool:
        """Say whether an execution works on the job: the record's, or its first one."""
        ...

    def start(self, directory: JobDirectory, record: JobRecord) -> bool:
        """Start one that continues the job; False if that was done before.

        Raises `InvalidInputError` if no state machine is known.
        """
        ...


@dataclass(frozen=True, slots=True)
class Rebuilder:
    """What a rebuild works on."""

    ports: Ports
    executions: JobExecutions


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """One job directory, and what became of it: ``state`` is None if it was left out, and why.

    ``made`` is False for a job that the ledger has. ``attempts`` counts the manifests that were
    noted, ``locks`` the nodes that it holds again. ``record`` is that of a job on which somebody
    has to work; ``started``: an execution was started for it; ``running``: one was at work already.
    ``failed``: a person has to look at it.
    """

    directory: JobDirectory
    state: JobState | None
    made: bool = False
    attempts: int = 0
    locks: int = 0
    record: JobRecord | None = None
    started: bool = False
    running: bool = False
    failed: bool = False
    why: str = ""

    @property
    def goes_on(self) -> bool:
        """Whether somebody has to work on the job."""
        return self.record is not None

    @property
    def is_left(self) -> bool:
        """Whether something is left to be done."""
        return self.failed or (self.goes_on and not (self.started or self.running))


def rebuild(
    hands: Rebuilder, destination: Destination, *, dry_run: bool = False
) -> Iterator[Rebuilt]:
    """Make the record of each job below the destination that the ledger does not have.

    Jobs are found at any depth, by their directories; one whose directory has been cleared away
    needs no record. A record that is there stays as it is, so repeating this does no harm, nor does
    doing it while jobs run. Whatever waits for an execution gets one, last. A prefix that is empty
    means the whole bucket.

    Requests: the listing of everything below the destination, and once more of each destination
    where a job was requested and has not ended; as many for a job as its first event would have
    taken, and two for each of its locks. Memory: a few hundred bytes for each job that was asked
    for and has not ended.
    """
    requested: list[JobDirectory] = []
    waiting: list[Rebuilt] = []
    for directory, keys in _directories(hands, destination):
        one = _of_one_job(directory, partial(_first_pass, hands, directory, keys, dry_run))
        if one is None:
            requested.append(directory)
        elif one.record is not None:
            waiting.append(one)
        else:
            yield one
    for directory in requested:
        one = _of_one_job(directory, partial(_second_pass, hands, directory, dry_run))
        if one.record is not None:
            waiting.append(one)
        else:
            yield one
    for one in waiting:
        yield _start(hands, one, dry_run)


def _directories(
    hands: Rebuilder, destination: Destination
) -> Iterator[tuple[JobDirectory, Iterator[str]]]:
    """Each job directory with the keys in it, which have to be read before the next one's."""
    objects = hands.ports.store.list(destination.bucket, destination.prefix)
    inside = in_directories(destination.bucket, (one for one in objects if MAGIC_PREFIX in one.key))
    for directory, group in groupby(inside, key=itemgetter(0)):
        yield directory, (listed.key for _, listed in group)


def in_directories(
    bucket: str, objects: Iterable[ListedObject]
) -> Iterator[tuple[JobDirectory, ListedObject]]:
    """Those of the objects that lie in job directories, each with its directory."""
    for listed in objects:
        try:
            yield parse_directory(bucket, listed.key), listed
        except InvalidInputError:
            continue  # no job's of ours


def _of_one_job(directory: JobDirectory, step: Callable[[], T]) -> T | Rebuilt:
    """What becomes of the job by ``step``; its failure keeps no other job waiting (I12)."""
    try:
        return step()
    except _OF_ONE_JOB as error:
        return Rebuilt(directory, None, failed=True, why=error.message)


def _first_pass(
    hands: Rebuilder, directory: JobDirectory, keys: Iterator[str], dry_run: bool
) -> Rebuilt | None:
    """What becomes of a directory; None if the second pass is to see to it."""
    record = hands.ports.ledger.job(directory.ref)
    if record is not None and not _gave_way(hands, directory, record, dry_run):
        return _in_ledger(hands, directory, record, keys, dry_run)
    try:
        made = _from_s3(hands, directory)
    except InvalidInputError as error:
        return _left_out(directory, error)
    if made.state not in ENDED and _is_requested(hands, directory, made):
        return None
    opened = made if dry_run else hands.ports.ledger.open_job(made)
    attempts = 0 if dry_run or made.state in ENDED else _note_attempts(hands, directory, keys)
    return Rebuilt(directory, opened.state, made=True, attempts=attempts)


def _second_pass(hands: Rebuilder, directory: JobDirectory, dry_run: bool) -> Rebuilt:
    """Make the record of a job that was requested, under the locks of one that was decided."""
    made = _from_s3(hands, directory)
    if made.state in UNDER_COMMIT:
        made = hold_again(hands.ports, made, dry_run=dry_run)
    record = made if dry_run else hands.ports.ledger.open_job(made)
    if record.state in ENDED:
        if not dry_run:
            release_locks(hands.ports, made)  # somebody else was faster
        return Rebuilt(directory, record.state, made=record == made)
    keys = (one.key for one in hands.ports.store.list(directory.bucket, directory.prefix))
    attempts = 0 if dry_run else _note_attempts(hands, directory, keys)
    return Rebuilt(directory, record.state, True, attempts, len(made.locks), record)


def _gave_way(hands: Rebuilder, directory: JobDirectory, record: JobRecord, dry_run: bool) -> bool:
    """Whether the record was opened after the job's decision without knowing of it, and is gone.

    A step that had the job decided by the ledger of before may put the decision record after a
    manifest's event has opened the job in the empty table.
    """
    if record.state is not JobState.OPEN:
        return False
    decided = read_decision(hands.ports, directory)
    if decided is None or record.created_at <= (decided.decided_at or ""):
        return False
    return dry_run or hands.ports.ledger.forget(record.ref, generation=record.generation)


def _from_s3(hands: Rebuilder, directory: JobDirectory) -> JobRecord:
    return record_from_s3(hands.ports, directory, read_spec(hands.ports, directory))


def _in_ledger(
    hands: Rebuilder, directory: JobDirectory, record: JobRecord, keys: Iterator[str], dry_run: bool
) -> Rebuilt:
    """A job that the ledger has."""
    if record.state in ENDED:
        return Rebuilt(directory, record.state)
    if _is_further(hands, directory, record):
        why = (
            f"the ledger has it as {record.state}, and {directory.decision} says that it was"
            " further: the table was restored to a moment of before; make it again in an empty one"
        )
        return Rebuilt(directory, None, failed=True, why=why)
    attempts = 0 if dry_run else _note_attempts(hands, directory, keys)
    found = Rebuilt(directory, record.state, attempts=attempts)
    if not _is_requested(hands, directory, record):
        return found
    running = hands.executions.is_running(directory, record)
    return replace(found, record=record, running=running)


def _is_further(hands: Rebuilder, directory: JobDirectory, record: JobRecord) -> bool:
    """Whether the decision record proves that the ledger's record is older than the job.

    An execution that went on from it would refuse the job for the manifests that were tidied up.
    """
    decided = read_decision(hands.ports, directory)
    if decided is None or record.state in _NOT_BEFORE[decided.state]:
        return False
    now = hands.ports.ledger.job(directory.ref)
    return now is not None and now.state is record.state  # else it has ended since it was read


def _start(hands: Rebuilder, found: Rebuilt, dry_run: bool) -> Rebuilt:
    if dry_run or found.running or found.record is None:
        return found
    try:
        hands.executions.start(found.directory, found.record)
    except InvalidInputError as error:
        return replace(found, why=error.message)
    return replace(found, started=True)


def _left_out(directory: JobDirectory, error: InvalidInputError) -> Rebuilt:
    # A copied table's job must not take the id from the one it was copied from.
    return Rebuilt(directory, None, failed=error.code != "WRONG_JOB", why=error.message)


def _is_requested(hands: Rebuilder, directory: JobDirectory, record: JobRecord) -> bool:
    if record.state is not JobState.OPEN:
        return True
    return hands.ports.store.head(directory.bucket, directory.request) is not None


def _note_attempts(hands: Rebuilder, directory: JobDirectory, keys: Iterable[str]) -> int:
    """Note what has arrived; a manifest that is not acceptable is for the request to be refused."""

    def judge(key: str) -> Arrival | None:
        try:
            return judge_arrival(hands.ports, directory.bucket, key)
        except InvalidInputError:
            return None

    manifests = (key for key in keys if key.endswith(PENDINGSET_SUFFIX))
    noted = 0
    while some := list(islice(manifests, NOTED_AT_ONCE)):
        arrivals = hands.ports.parallel(judge, some)
        noted += note_arrivals(hands.ports, (one for one in arrivals if one is not None))
    return noted
