"""The locks of jobs that were decided when the ledger was lost (I6).

That a job was decided S3 tells by its list in ``_commits/``, or by a file of it that is visible.
Of one of which nothing is visible nothing has happened: it may as well be decided anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from s3commit.core.errors import JobRefusedError, TransientError
from s3commit.core.layout import JobDirectory, is_data, owner_of
from s3commit.core.locks import COVERS, Claim, claims
from s3commit.core.model import Destination, JobRecord, Names, Scope
from s3commit.core.policy import LOCK_ROUNDS
from s3commit.core.protocol.acquire import release_locks
from s3commit.core.protocol.identity import is_ours
from s3commit.core.protocol.named_uploads import named_files
from s3commit.core.protocol.pipeline import Pipeline
from s3commit.core.protocol.places import known_locations, places_of
from s3commit.core.states import ENDED, JobState


class Seen:
    """Of which of the jobs a file is visible; lists each of their destinations once."""

    def __init__(self, pipeline: Pipeline, jobs: Iterable[JobDirectory]) -> None:
        self._pipeline = pipeline
        self._asked_for = frozenset(place.job_id for place in jobs)
        self._visible: dict[Destination, frozenset[str]] = {}

    def is_decided(self, record: JobRecord) -> bool:
        """Whether the job was decided before the ledger was lost and may have done something."""
        if record.state is JobState.PUBLISHING:
            return True
        place = JobDirectory(record.destination, record.job_id)
        places = places_of(self._pipeline, place, None)
        if record.names is Names.EXACT:
            return any(self._is_there(one) for one in places)
        return any(self._carries(one.destination, record.job_id) for one in places)

    def _is_there(self, place: JobDirectory) -> bool:
        store = self._pipeline.store
        return any(
            is_ours(file, store.head(file.bucket, file.key))
            for file in named_files(self._pipeline, place)
        )

    def _carries(self, destination: Destination, job_id: str) -> bool:
        # By the name alone: a lock too many is let go when the job ends.
        if destination not in self._visible:
            self._visible[destination] = frozenset(
                owner
                for listed in self._pipeline.store.list(destination.bucket, destination.prefix)
                if is_data(listed.key[len(destination.prefix) :])
                and (owner := owner_of(listed.key)) is not None
                and owner in self._asked_for
            )
        return job_id in self._visible[destination]


def hold_again(
    pipeline: Pipeline, place: JobDirectory, record: JobRecord, *, dry_run: bool
) -> tuple[str, ...]:
    """Put the job down as a holder of all that it may have locked; the nodes.

    Instead of partitions it gets the whole destination: which ones it wrote is not worth reading
    all its manifests for, and covers what it asks for when it goes on. Whoever else was decided is
    a holder beside it: they were let in together, and nobody can be put out. Who waited asks again.
    """
    try:
        wanted = claims(
            place,
            record.conflict,
            Scope.DIRECTORY,
            (),
            record.idempotency_key,
            locations=known_locations(pipeline, place, None),
            exact=record.names is Names.EXACT,
        )
    except JobRefusedError:
        return ()  # it was never decided
    if not dry_run:
        for claim in wanted:
            _hold(pipeline, record.job_id, claim)
    return tuple(claim.node for claim in wanted)


def _hold(pipeline: Pipeline, job_id: str, claim: Claim) -> None:
    for _ in range(LOCK_ROUNDS):
        lock = pipeline.ledger.lock(claim.node)
        held = lock.holders.get(job_id)
        if held is not None and claim.mode in COVERS[held]:
            return
        waiting = {other: one for other, one in lock.waiting.items() if other != job_id}
        holders = {**lock.holders, job_id: claim.mode}
        if pipeline.ledger.put_lock(replace(lock, holders=holders, waiting=waiting)):
            return
    raise TransientError(f"the lock of {claim.node} is being changed by too many jobs at once")


def release_if_ended(pipeline: Pipeline, record: JobRecord, nodes: tuple[str, ...]) -> None:
    """Let the nodes go if the record that stands has ended: somebody else was faster."""
    if nodes and record.state in ENDED:
        release_locks(pipeline, replace(record, locks=nodes))
