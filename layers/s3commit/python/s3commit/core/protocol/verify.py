"""VerifyManifests: is every counted file really there to be completed? Then the plan."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from s3commit.core.errors import InvalidInputError, JobRefusedError
from s3commit.core.layout import JobDirectory
from s3commit.core.manifest import digest
from s3commit.core.model import (
    CommitRequest,
    Conflict,
    CountedAttempt,
    JobRecord,
    Names,
    PlanFacts,
    Scope,
    add_nulls,
)
from s3commit.core.plan import cut_units, encode_plan
from s3commit.core.protocol.counting import (
    Site,
    commit_request,
    counted_attempts,
    refuse_ours,
    sites_of,
)
from s3commit.core.protocol.identity import Whose, described, in_doubt, is_ours, whose
from s3commit.core.protocol.partitions import write_partitions
from s3commit.core.protocol.pipeline import (
    Pipeline,
    own_record,
    read_manifest,
    read_spec_of,
)
from s3commit.core.protocol.places import verified_locations
from s3commit.core.protocol.seal import read_request
from s3commit.core.states import JobState
from s3commit.core.ticket import Ticket


@dataclass(frozen=True, slots=True)
class _Verified:
    """What remains of a manifest after it was judged: no more than the plan needs."""

    attempt: CountedAttempt
    parts: list[int]
    keys: list[bytes]
    uploads: list[bytes]
    bytes: int
    rows: int | None
    task_count: int
    nulls: dict[str, int | None]
    partitions: frozenset[str]


def verify_manifests(pipeline: Pipeline, ticket: Ticket) -> Ticket:
    """Judge every counted manifest, see that its uploads are open, and write the plan.

    Reads from S3 what no event brought. Memory: about 150 bytes a file. Repeating it writes the
    same plan. Raises `JobRefusedError` if anything is amiss; nothing was completed then.
    """
    place = ticket.place
    record = own_record(pipeline, ticket, JobState.SEALED)
    spec = read_spec_of(pipeline, place, record)
    request = commit_request(pipeline, place, spec)
    locations = verified_locations(pipeline, place, spec)
    sites = sites_of(pipeline, place, locations)
    counted = counted_attempts(pipeline, request, sites)
    if not spec.sha256:
        refuse_ours(place, request, counted)
    verified = _verify_all(pipeline, sites, counted, record, spec.conditions.columns)
    if request.attempts is None and not request.partial:
        _refuse_missing_tasks(verified)
    _refuse_shared_keys(verified)
    for prefix, site in sites.items():
        there = [one for one in verified if one.attempt.location == prefix]
        _refuse_missing_uploads(pipeline, site.place, there, record.names)
    facts, body = _plan(verified)
    facts = replace(facts, locations=locations)
    if record.conflict is not Conflict.APPEND and record.scope is Scope.PARTITION:
        written = set().union(*(one.partitions for one in verified))
        facts = replace(facts, partitions=write_partitions(pipeline, place, written))
    pipeline.store.put(place.bucket, place.plan(facts.sha256), body)
    record = pipeline.ledger.note(
        record.job_id, generation=record.generation, now=pipeline.clock.now(), plan=facts
    )
    return ticket.after(record)


def plan_again(pipeline: Pipeline, place: JobDirectory, record: JobRecord) -> bool:
    """Put the decided plan again, which somebody has deleted or changed; False as `remade_plan`."""
    body = remade_plan(pipeline, place, record)
    if body is None:
        return False
    pipeline.store.put(place.bucket, place.plan(digest(body)), body)
    return True


def remade_plan(pipeline: Pipeline, place: JobDirectory, record: JobRecord) -> bytes | None:
    """The decided plan once more, of request and manifests.

    They make the same bytes again, and the digest in the ledger proves it (docs/adr/0016). None if
    they are not what they were either.
    """
    decided = record.plan
    try:
        request = read_request(pipeline, place)
        if decided is None or not isinstance(request, CommitRequest):
            return None
        sites = sites_of(pipeline, place, decided.locations)
        counted = counted_attempts(pipeline, request, sites)
        facts, body = _plan(_verify_all(pipeline, sites, counted, record, ()))
    except (InvalidInputError, JobRefusedError):
        return None
    return body if facts.sha256 == decided.sha256 else None


def _refuse_missing_tasks(verified: list[_Verified]) -> None:
    """Where every manifest counts nobody has said that these are all: they must say it."""
    tasks = len({one.attempt.task_id for one in verified})
    said = max((one.task_count for one in verified), default=0)
    if tasks < said:
        raise JobRefusedError(
            f"the job has {said} tasks by its manifests, and manifests of {tasks}; the request"
            " neither counts attempts nor says that it is partial",
            code="TASKS_MISSING",
        )


def _verify_all(
    pipeline: Pipeline,
    sites: Mapping[str, Site],
    counted: Iterable[CountedAttempt],
    record: JobRecord,
    columns: tuple[str, ...],
) -> list[_Verified]:
    """In the order of the plan."""

    def verify(attempt: CountedAttempt) -> _Verified:
        return _verify(pipeline, sites[attempt.location], attempt, record, columns=columns)

    verified = pipeline.parallel(verify, counted)
    return sorted(verified, key=lambda one: (one.attempt.location, one.attempt.manifest))


def _verify(
    pipeline: Pipeline,
    site: Site,
    attempt: CountedAttempt,
    record: JobRecord,
    *,
    columns: tuple[str, ...],
) -> _Verified:
    pending = read_manifest(
        pipeline, site.place, attempt.manifest, attempt.sha256, names=record.names
    )
    site.neighbours.refuse(pending.files)
    told = (attempt.files, attempt.bytes)
    if told not in {(len(pending.files), pending.bytes), (-1, -1)}:
        raise JobRefusedError(
            f"manifest {attempt.manifest} has {len(pending.files)} files of {pending.bytes} bytes,"
            f" the request says {attempt.files} of {attempt.bytes}",
            code="COUNTS_DIFFER",
        )
    return _Verified(
        attempt=attempt,
        parts=[len(file.etags) for file in pending.files],
        keys=[_short(file.key) for file in pending.files],
        uploads=[_short(file.key, file.upload_id) for file in pending.files],
        bytes=pending.bytes,
        rows=pending.rows,
        task_count=pending.task_count or 0,
        # The ledger keeps them: no more than the job's conditions ask for.
        nulls={column: pending.nulls.get(column) for column in columns},
        partitions=frozenset(site.partition(file.key) for file in pending.files),
    )


def _short(*texts: str) -> bytes:
    """A digest in place of a long key: a million of them fit into a worker's memory."""
    return hashlib.blake2b("\0".join(texts).encode(), digest_size=16).digest()


def _refuse_shared_keys(verified: list[_Verified]) -> None:
    seen: set[bytes] = set()
    for one in verified:
        for key in one.keys:
            if key in seen:
                raise JobRefusedError(
                    f"a file of {one.attempt.manifest} is written by another task too",
                    code="DUPLICATE_KEY",
                )
            seen.add(key)


def _refuse_missing_uploads(
    pipeline: Pipeline, place: JobDirectory, verified: list[_Verified], names: Names
) -> None:
    """One listing for all; a file that it lacks is looked at by itself before it is refused."""
    missing = {upload for one in verified for upload in one.uploads}
    if missing:
        for upload in pipeline.store.list_uploads(place.bucket, place.destination.prefix):
            counted = _short(upload.key, upload.upload_id)
            if upload.composite and counted in missing:
                raise JobRefusedError(
                    f"the upload of {upload.key!r} has checksums of its parts, which a manifest"
                    " does not carry and S3 wants again at its completion",
                    code="UNSUPPORTED_CHECKSUM",
                )
            missing.discard(counted)
    doubted = (one for one in verified if not missing.isdisjoint(one.uploads))
    for _done in pipeline.parallel(
        lambda one: _look_closer(pipeline, place, one, missing, names), doubted
    ):
        pass


def _look_closer(
    pipeline: Pipeline, place: JobDirectory, one: _Verified, missing: set[bytes], names: Names
) -> None:
    pending = read_manifest(pipeline, place, one.attempt.manifest, one.attempt.sha256, names=names)
    for file in pending.files:
        if _short(file.key, file.upload_id) not in missing:
            continue
        if pipeline.store.upload_is_open(file.bucket, file.key, file.upload_id):
            continue
        # A ledger that was lost after the decision brings a half-completed job here again.
        facts = pipeline.store.head(file.bucket, file.key)
        if whose(file, facts) is Whose.UNKNOWN:  # an abort would give its data up
            raise in_doubt(place.job_id, described(file))
        if not is_ours(file, facts):
            raise JobRefusedError(
                f"the upload of {file.key!r} is gone: aborted by someone, or by a lifecycle rule",
                code="UPLOAD_GONE",
            )


def _plan(verified: list[_Verified]) -> tuple[PlanFacts, bytes]:
    def manifests() -> Iterator[tuple[str, str, list[int], str]]:
        for one in verified:
            yield one.attempt.manifest, one.attempt.sha256, one.parts, one.attempt.location

    total = sum(len(one.parts) for one in verified)
    units = list(cut_units(manifests(), total_files=total))
    body = encode_plan(units)
    rows = [one.rows for one in verified]
    facts = PlanFacts(
        sha256=digest(body),
        units=len(units),
        files=total,
        bytes=sum(one.bytes for one in verified),
        rows=None if None in rows else sum(count for count in rows if count is not None),
        nulls=add_nulls(one.nulls for one in verified if one.parts),
    )
    return facts, body
