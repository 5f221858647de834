"""Judging every counted manifest, and the plan that they make."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from s3commit.core.formats.layout import JobDirectory, partition_of
from s3commit.core.formats.manifest import digest
from s3commit.core.formats.plan import cut_units, encode_plan
from s3commit.core.formats.strict_json import TOO_LARGE
from s3commit.core.job.listings import PAGE
from s3commit.core.job.manifests import each_manifest, read_manifest
from s3commit.core.job.partitions import MAX_NAMES
from s3commit.core.model.errors import JobRefusedError
from s3commit.core.model.job import CountedAttempt
from s3commit.core.model.limits import MAX_JOB_FILES
from s3commit.core.model.pending import PendingSet
from s3commit.core.model.record import PlanFacts
from s3commit.core.ports.bundle import Ports

SAMPLED = 256 // 16


@dataclass(frozen=True, slots=True)
class Verified:
    """What remains of a manifest after it was judged: no more than the plan needs.

    ``sample`` has some of the keys themselves, one in sixteen by their digests.
    """

    attempt: CountedAttempt
    parts: list[int]
    keys: list[bytes]
    sample: list[str]
    uploads: list[bytes]
    bytes: int
    rows: int | None


def verify_all(
    ports: Ports,
    directory: JobDirectory,
    counted: Iterable[CountedAttempt],
) -> tuple[list[Verified], set[str]]:
    """In the order of the plan, and the partitions that are written.

    Raises `JobRefusedError` (``TOO_LARGE``) for more than fits into memory.
    """

    def verify(attempt: CountedAttempt, max_bytes: int) -> tuple[Verified, frozenset[str]]:
        pending = _read(ports, directory, attempt, max_bytes)
        partitions = frozenset(partition_of(directory.relative(one.key)) for one in pending.files)
        return _verified(attempt, pending), partitions

    verified: list[Verified] = []
    written: set[str] = set()
    files = names = 0
    for one, partitions in each_manifest(ports, verify, counted):
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
    verified.sort(key=lambda one: one.attempt.manifest)
    return verified, written


def _read(
    ports: Ports, directory: JobDirectory, attempt: CountedAttempt, max_bytes: int
) -> PendingSet:
    pending = read_manifest(ports, directory, attempt, max_bytes)
    if (attempt.files, attempt.bytes) != (len(pending.files), pending.bytes):
        raise JobRefusedError(
            f"manifest {attempt.manifest} has {len(pending.files)} files of {pending.bytes} bytes,"
            f" the request says {attempt.files} of {attempt.bytes}",
            code="COUNTS_DIFFER",
        )
    return pending


def _verified(attempt: CountedAttempt, pending: PendingSet) -> Verified:
    keys = [short_digest(file.key) for file in pending.files]
    return Verified(
        attempt=attempt,
        parts=[len(file.etags) for file in pending.files],
        keys=keys,
        sample=[
            file.key for file, key in zip(pending.files, keys, strict=True) if key[0] < SAMPLED
        ],
        uploads=[short_digest(file.key, file.upload_id) for file in pending.files],
        bytes=pending.bytes,
        rows=pending.rows,
    )


def short_digest(*texts: str) -> bytes:
    """A digest in place of a long key: a million of them fit into a worker's memory."""
    return hashlib.blake2b("\0".join(texts).encode(), digest_size=16).digest()


def cuts_between(verified: list[Verified]) -> list[str]:
    """Keys in order that cut the listing of these uploads into ranges of three quarters of a page.

    However the keys are chosen, there are no more cuts than their number calls for.
    """
    sample = sorted(key for one in verified for key in one.sample)
    ranges = 1 + sum(len(one.keys) for one in verified) * 4 // (3 * PAGE)
    return sorted({sample[len(sample) * number // ranges] for number in range(1, ranges) if sample})


def make_plan(verified: list[Verified]) -> tuple[PlanFacts, bytes]:
    """The plan of judged manifests, in their order: its digest and counts, and its bytes."""
    manifests = [(one.attempt.manifest, one.attempt.sha256, one.parts) for one in verified]
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
    )
    return facts, body
