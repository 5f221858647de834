"""VerifyManifests: is every counted file really there to be completed? Then the plan."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from s3commit.core.errors import InvalidInputError, JobRefusedError
from s3commit.core.jsontext import TOO_LARGE
from s3commit.core.layout import JobDirectory
from s3commit.core.manifest import digest
from s3commit.core.model import (
    CommitRequest,
    Conflict,
    CountedAttempt,
    JobRecord,
    JobSpec,
    PendingSet,
    PlanFacts,
    Scope,
    add_nulls,
)
from s3commit.core.plan import cut_units, encode_plan
from s3commit.core.policy import MAX_JOB_FILES
from s3commit.core.protocol.counting import (
    Site,
    commit_request,
    counted_attempts,
    refuse_ours,
    sites_of,
)
from s3commit.core.protocol.identity import Whose, described, in_doubt, is_ours, whose
from s3commit.core.protocol.partitions import MAX_NAMES, write_partitions
from s3commit.core.protocol.pipeline import (
    Pipeline,
    each_manifest,
    own_record,
    read_manifest,
    read_spec_of,
)
from s3commit.core.protocol.places import verified_locations
from s3commit.core.protocol.seal import read_request
from s3commit.core.states import JobState
from s3commit.core.ticket import Ticket

REPLACE_NOT_ALLOWED = "REPLACE_NOT_ALLOWED"


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


def verify_manifests(pipeline: Pipeline, ticket: Ticket) -> Ticket:
    """Judge every counted manifest, see that its uploads are open, and write the plan.

    Reads from S3 what no event brought. Memory: about 250 bytes a file. Repeating it writes the
    same plan. Raises `JobRefusedError` if anything is amiss; nothing was completed then.
    """
    place = ticket.place
    record = own_record(pipeline, ticket, JobState.SEALED)
    spec = read_spec_of(pipeline, place, record)
    request = commit_request(pipeline, place, spec)
    locations = verified_locations(pipeline, place, spec)
    if record.conflict is Conflict.REPLACE:
        _refuse_to_replace(pipeline, (place, *map(place.at, locations.values())))
    sites = sites_of(pipeline, place, locations)
    counted = counted_attempts(pipeline, request, sites)
    if not spec.sha256:
        refuse_ours(place, request, counted)
    verified, written = _verify_all(pipeline, sites, counted, record, spec.conditions.columns)
    if request.attempts is None and not request.partial:
        _refuse_missing_tasks(verified)
    _refuse_shared_keys(verified)
    visible = 0
    for prefix, site in sites.items():
        there = [one for one in verified if one.attempt.location == prefix]
        visible += _refuse_missing_uploads(pipeline, site.place, there, spec)
    facts, body = _plan(verified)
    facts = replace(facts, locations=locations, visible_before=visible)
    if record.conflict is not Conflict.APPEND and record.scope is Scope.PARTITION:
        facts = replace(facts, partitions=write_partitions(pipeline, place, written))
    pipeline.store.put(place.bucket, place.plan(facts.sha256), body)
    record = pipeline.ledger.note(
        record.ref, generation=record.generation, now=pipeline.clock.now(), plan=facts
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
        verified, _ = _verify_all(pipeline, sites, counted, record, ())
        facts, body = _plan(verified)
    except (InvalidInputError, JobRefusedError):
        return None
    return body if facts.sha256 == decided.sha256 else None


def _refuse_to_replace(pipeline: Pipeline, places: Iterable[JobDirectory]) -> None:
    """A right to put a job is none to delete what others have put, unless the deployment says so.

    Judged here: the ledger knows the policy, both sides have agreed to each location, and no lock
    is held yet (I12).
    """
    for place in places:
        if not place.destination.prefix.startswith(pipeline.replace_below):
            raise JobRefusedError(
                f"conflict 'replace' is not allowed at {place.destination.uri}: write there without"
                " it, or have the deployment's replacePrefixes name it",
                code=REPLACE_NOT_ALLOWED,
            )


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
) -> tuple[list[_Verified], set[str]]:
    """In the order of the plan, and the partitions that are written.

    Raises `JobRefusedError` (``TOO_LARGE``) for more than fits into memory.
    """

    def verify(attempt: CountedAttempt, max_bytes: int) -> tuple[_Verified, frozenset[str]]:
        site = sites[attempt.location]
        pending = _read(pipeline, site, attempt, record, max_bytes)
        partitions = frozenset(site.partition(file.key) for file in pending.files)
        return _verified(attempt, pending, columns), partitions

    verified: list[_Verified] = []
    written: set[str] = set()
    files = names = 0
    for one, partitions in each_manifest(pipeline, verify, counted):
        verified.append(one)
        files += len(one.parts)
        names += sum(map(len, partitions - written))
        written |= partitions
        if files > MAX_JOB_FILES or names > MAX_NAMES:
            raise JobRefusedError(
                f"the job has more than {MAX_JOB_FILES} files, or partitions with names of more"
                f" than {MAX_NAMES} characters: use several jobs",
                code=TOO_LARGE,
            )
    verified.sort(key=lambda one: (one.attempt.location, one.attempt.manifest))
    return verified, written


def _read(
    pipeline: Pipeline, site: Site, attempt: CountedAttempt, record: JobRecord, max_bytes: int
) -> PendingSet:
    pending = read_manifest(
        pipeline,
        site.place,
        attempt.manifest,
        attempt.sha256,
        names=record.names,
        max_bytes=max_bytes,
    )
    site.neighbours.refuse(pending.files)
    told = (attempt.files, attempt.bytes)
    if told not in {(len(pending.files), pending.bytes), (-1, -1)}:
        raise JobRefusedError(
            f"manifest {attempt.manifest} has {len(pending.files)} files of {pending.bytes} bytes,"
            f" the request says {attempt.files} of {attempt.bytes}",
            code="COUNTS_DIFFER",
        )
    return pending


def _verified(attempt: CountedAttempt, pending: PendingSet, columns: tuple[str, ...]) -> _Verified:
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
    pipeline: Pipeline, place: JobDirectory, verified: list[_Verified], spec: JobSpec
) -> int:
    """One listing for all; a file that it lacks is looked at by itself before it is refused.

    Returns how many files are visible already.
    """
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

    def look_closer(one: _Verified, max_bytes: int) -> int:
        told = one.attempt
        pending = read_manifest(
            pipeline, place, told.manifest, told.sha256, names=spec.names, max_bytes=max_bytes
        )
        return _refuse_gone(pipeline, place, pending, missing, spec)

    return sum(each_manifest(pipeline, look_closer, doubted))


def _refuse_gone(
    pipeline: Pipeline, place: JobDirectory, pending: PendingSet, missing: set[bytes], spec: JobSpec
) -> int:
    visible = 0
    for file in pending.files:
        if _short(file.key, file.upload_id) not in missing:
            continue
        if pipeline.store.upload_is_open(file.bucket, file.key, file.upload_id):
            continue
        # An S3A driver may have died in its own commit. Of ours nothing is visible yet.
        facts = pipeline.store.head(file.bucket, file.key) if not spec.sha256 else None
        if whose(file, facts) is Whose.UNKNOWN:  # an abort would give its data up
            raise in_doubt(place.job_id, described(file))
        if not is_ours(file, facts):
            raise JobRefusedError(
                f"the upload of {file.key!r} is gone: aborted by someone, or by a lifecycle rule",
                code="UPLOAD_GONE",
            )
        visible += 1
    return visible


def _plan(verified: list[_Verified]) -> tuple[PlanFacts, bytes]:
    manifests = [
        (one.attempt.manifest, one.attempt.sha256, one.parts, one.attempt.location)
        for one in verified
    ]
    total = sum(len(one.parts) for one in verified)
    units = list(cut_units(manifests, total_files=total))
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
