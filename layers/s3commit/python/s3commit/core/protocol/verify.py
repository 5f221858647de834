"""VerifyManifests: is every counted file really there to be completed? Then the plan."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from s3commit.core.documents import refuse_two_attempts
from s3commit.core.errors import JobRefusedError
from s3commit.core.layout import (
    NOTE_SUFFIX,
    PENDINGSET_SUFFIX,
    JobDirectory,
    parse_manifest_key,
    partition_of,
)
from s3commit.core.locations import BAD_LOCATION
from s3commit.core.manifest import MAX_MANIFEST_BYTES, digest
from s3commit.core.model import (
    CommitRequest,
    Conflict,
    CountedAttempt,
    JobRecord,
    JobSpec,
    Names,
    PlanFacts,
    Scope,
    add_nulls,
)
from s3commit.core.plan import cut_units, encode_plan
from s3commit.core.ports import ListedObject
from s3commit.core.protocol.identity import Whose, described, in_doubt, is_ours, whose
from s3commit.core.protocol.neighbours import Neighbours
from s3commit.core.protocol.partitions import write_partitions
from s3commit.core.protocol.pipeline import (
    JOB_CHANGED,
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
    request = _request(pipeline, place, spec)
    locations = verified_locations(pipeline, place, spec)
    sites = {prefix: _Site(pipeline, place.at(prefix), name) for name, prefix in locations.items()}
    sites[""] = _Site(pipeline, place, "", outside=frozenset(locations))
    counted = _counted(pipeline, request, sites)
    if not spec.sha256:
        _refuse_ours(place, request, counted)
    columns = spec.conditions.columns
    verified = sorted(
        pipeline.parallel(
            lambda attempt: _verify(
                pipeline, sites[attempt.location], attempt, record, columns=columns
            ),
            counted,
        ),
        key=lambda one: (one.attempt.location, one.attempt.manifest),
    )
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


def _request(pipeline: Pipeline, place: JobDirectory, spec: JobSpec) -> CommitRequest:
    request = read_request(pipeline, place)
    if not isinstance(request, CommitRequest):
        raise JobRefusedError("the request has changed to an abort", code="REQUEST_CHANGED")
    if request.job_sha256 not in {"", spec.sha256}:
        raise JobRefusedError(
            "job.json is gone, or not the one that the request means", code=JOB_CHANGED
        )
    return request


def _refuse_ours(
    place: JobDirectory, request: CommitRequest, counted: Iterable[CountedAttempt]
) -> None:
    """S3A alone has no ``job.json``, and its manifests lie elsewhere; no request can name them.

    A job of ours whose ``job.json`` was deleted before anybody had read it would be committed
    without its conditions, its key and its policy.
    """
    ours = place.tasks[len(place.prefix) :]
    if request.attempts is not None or any(one.manifest.startswith(ours) for one in counted):
        raise JobRefusedError(
            "job.json is gone, so nobody knows the job's policy, conditions and key",
            code=JOB_CHANGED,
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


class _Site:
    """One place of the job: the destination, or the location of ``partition``.

    ``outside`` are the partitions that the destination must not have, since they lie elsewhere.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        place: JobDirectory,
        partition: str,
        outside: frozenset[str] = frozenset(),
    ) -> None:
        self.place = place
        self.neighbours = Neighbours(pipeline.store, place)
        self._partition = partition
        self._outside = outside

    def partition(self, key: str) -> str:
        """The partition of a file here. Raises `JobRefusedError` (``BAD_LOCATION``)."""
        if self._partition:
            return self._partition
        directory = partition_of(self.place.relative(key))
        found = next((name for name in self._outside if directory.startswith(name)), "")
        if found:
            raise JobRefusedError(
                f"{key[:200]!r} lies in partition {found!r}, which has a location of its own",
                code=BAD_LOCATION,
            )
        return directory


def _counted(
    pipeline: Pipeline, request: CommitRequest, sites: Mapping[str, _Site]
) -> Sequence[CountedAttempt]:
    if request.attempts is None:
        found = [
            replace(attempt, location=prefix)
            for prefix, site in sorted(sites.items())
            for attempt in _every_attempt(pipeline, site.place)
        ]
        refuse_two_attempts(found)
        return found
    for attempt in request.attempts:
        if attempt.location not in sites:
            raise JobRefusedError(
                f"the request counts a manifest at {attempt.location[:200]!r}, which is no"
                " location of the job",
                code=BAD_LOCATION,
            )
    return request.attempts


def _every_attempt(pipeline: Pipeline, place: JobDirectory) -> list[CountedAttempt]:
    """A request without attempts counts every manifest; two for one task are refused (I3).

    So are those of two attempts of one S3A application: the second began the job anew.
    """
    found: dict[str, CountedAttempt] = {}
    applications: set[str] = set()
    for listed in _every_manifest(pipeline, place):
        _, task_id, attempt_id = parse_manifest_key(place.bucket, listed.key)
        if task_id in found:
            raise JobRefusedError(f"task {task_id} has two manifests", code="TWO_ATTEMPTS")
        if listed.key.startswith(place.s3a):
            applications.add(attempt_id)
        if len(applications) > 1:
            raise JobRefusedError(
                f"{place.s3a} has manifests of two application attempts", code="TWO_ATTEMPTS"
            )
        stored = pipeline.store.get(place.bucket, listed.key, max_bytes=MAX_MANIFEST_BYTES)
        name = listed.key[len(place.prefix) :]
        found[task_id] = CountedAttempt(task_id, attempt_id, name, digest(stored.body), -1, -1)
    return list(found.values())


def _every_manifest(pipeline: Pipeline, place: JobDirectory) -> Iterator[ListedObject]:
    """Below ``tasks/`` each must be one, or a note; what S3A writes has other files as well."""
    for listed in pipeline.store.list(place.bucket, place.tasks):
        if not listed.key.endswith(NOTE_SUFFIX):
            yield listed
    for listed in pipeline.store.list(place.bucket, place.s3a):
        if listed.key.endswith(PENDINGSET_SUFFIX):
            yield listed


def _verify(
    pipeline: Pipeline,
    site: _Site,
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
    for one in verified:
        if not missing.isdisjoint(one.uploads):
            _look_closer(pipeline, place, one, missing, names)


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
