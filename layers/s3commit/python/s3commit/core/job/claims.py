"""The jobs that claim what a job claims, as the ledger has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from s3commit.core.model.errors import JobRefusedError
from s3commit.core.model.limits import MAX_CLAIMS_READ, RECORDS_AT_ONCE
from s3commit.core.model.locks import Claim, Claimed, ClaimQuery, claim_queries, claimed
from s3commit.core.model.record import JobRecord
from s3commit.core.ports.bundle import ParallelMap, Ports
from s3commit.core.ports.ledger import Ledger

BUSY = "DESTINATION_BUSY"


@dataclass(frozen=True, slots=True)
class Rival:
    """Another job, and a claim of it that can't stand beside one of the job's own.

    ``record`` is None if the ledger does not know it.
    """

    claim: Claim
    ref: str
    record: JobRecord | None


def claimants(
    ledger: Ledger, parallel: ParallelMap, record: JobRecord, *, asked: str = ""
) -> list[Claimed]:
    """The highest claim of each job that claims what can't stand beside the record's own.

    Those first that are not known to wait; with ``asked`` without jobs that wait and have asked
    after that moment, however many they are. Raises `JobRefusedError` (``DESTINATION_BUSY``) if
    there are more than `MAX_CLAIMS_READ` claims.
    """
    own = claimed(record)

    def read(query: ClaimQuery) -> list[Claimed]:
        claims = ledger.claims(query.claim, below=query.below, asked=asked)
        found = list(islice(claims, MAX_CLAIMS_READ + 1))
        if len(found) > MAX_CLAIMS_READ:
            raise JobRefusedError(
                "so many jobs are at work at the destination and below it that the job can't look"
                f" at all of them: {MAX_CLAIMS_READ} claims at most; write again later",
                code=BUSY,
            )
        return found

    found: dict[str, Claimed] = {}
    for some in parallel(read, claim_queries(record)):
        for one in some:
            if one.ref != record.ref and any(one.claim.meets(claim) for claim in own):
                found[one.ref] = min(one, found.get(one.ref, one))
    return sorted(found.values(), key=lambda one: (one.waits, one.ref))


def with_records(
    ledger: Ledger, parallel: ParallelMap, found: Iterable[Claimed]
) -> Iterator[list[Rival]]:
    """The claimants with their records, some at a time: who has seen enough reads no more."""

    def read(one: Claimed) -> Rival:
        return Rival(one.claim, one.ref, ledger.job(one.ref))

    left = iter(found)
    while group := list(islice(left, RECORDS_AT_ONCE)):
        yield list(parallel(read, group))


def release_locks(ports: Ports, record: JobRecord) -> None:
    """Give back whatever the job may claim; repeatable."""

    def drop(claim: Claim) -> None:
        ports.ledger.drop_claim(record.ref, claim)

    for _ in ports.parallel(drop, claimed(record)):
        pass
