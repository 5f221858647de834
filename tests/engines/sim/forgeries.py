"""What an adversary writes: every document of the protocol, true, stale, forged, or no document.

Each function gives the bytes of one kind, drawn by ``rng``; ``directory`` is where they are to lie.
"""

import random
from collections.abc import Sequence
from dataclasses import replace

from s3commit.core.documents.commit_manifest import CommitHeader, CommittedFile, commit_lines
from s3commit.core.documents.job_json import JOB_JSON, MAX_JOB_BYTES, Conditions, JobSpec
from s3commit.core.documents.pendingset import PendingFile, PendingSet, encode_pendingset
from s3commit.core.documents.request_json import (
    AbortRequest,
    CommitRequest,
    CountedAttempt,
    encode_request,
)
from s3commit.core.documents.result_json import MAX_RESULT_BYTES, RESULT_JSON, JobResult
from s3commit.core.documents.success_marker import MAX_SUCCESS_BYTES
from s3commit.core.formats.layout import JobDirectory, owner_of
from s3commit.core.formats.strict_json import dump
from s3commit.core.model.destination import Conflict, Destination, Scope
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.outcome import Failure, Outcome
from s3commit.core.model.record import ReplacedFacts
from s3commit.core.ports.objects import ListedObject

KEY = "daily"  # the idempotency key that the other jobs of a run have, too
NEVER = "00000000-0000-4000-8000-0000000000ff"  # an id that nobody has
LONG_AGO = "2026-11-01T00:00:00.000Z"
_LARGE = {size: b"x" * (size + 1) for size in (MAX_JOB_BYTES, MAX_RESULT_BYTES, MAX_SUCCESS_BYTES)}


def no_document(rng: random.Random, longest: int = MAX_JOB_BYTES) -> bytes:
    """Bytes that are none, as a directory marker's; cut off; of another version; too many."""
    return rng.choice(
        [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"version":99}', b"[" * 5000, _LARGE[longest]]
    )


def job_spec(rng: random.Random, directory: JobDirectory, ids: Sequence[str] = ()) -> JobSpec:
    """An acceptable job; now and then it undoes another one, by an id that is seen."""
    if ids and rng.random() < 0.25:
        undoes = rng.choice([one for one in ids if one != directory.job_id] or [NEVER])
        return JobSpec(
            directory.job_id, directory.destination, conflict=Conflict.REPLACE, undoes=undoes
        )
    return JobSpec(
        directory.job_id,
        directory.destination,
        conflict=rng.choice([Conflict.REPLACE, Conflict.REPLACE, Conflict.APPEND, Conflict.FAIL]),
        scope=rng.choice(list(Scope)),
        idempotency_key=KEY if rng.random() < 0.4 else None,
        conditions=Conditions(min_rows=10**9) if rng.random() < 0.1 else Conditions(),
    )


def job_document(rng: random.Random, spec: JobSpec, elsewhere: Sequence[str]) -> bytes:
    """The job's own, or of a job at a place ``elsewhere``."""
    kind = rng.random()
    if kind < 0.7:
        return JOB_JSON.encode(spec)
    if kind < 0.93 and elsewhere:
        other = Destination(spec.destination.bucket, rng.choice(elsewhere))
        return JOB_JSON.encode(replace(spec, destination=other))
    return no_document(rng)


def request(
    rng: random.Random, directory: JobDirectory, counted: Sequence[CountedAttempt]
) -> bytes:
    """Commit what counts, commit nothing, abort, abandoned; or no request."""
    kind = rng.random()
    if kind < 0.7:
        return encode_request(CommitRequest(directory.job_id, tuple(counted)))
    if kind < 0.75:
        return encode_request(CommitRequest(directory.job_id, ()))
    if kind < 0.9:
        abandoned = rng.random() < 0.3
        return encode_request(AbortRequest(directory.job_id, "given up", abandoned=abandoned))
    if kind < 0.95:
        return encode_request(AbortRequest(NEVER, "of another job"))
    return no_document(rng)


def manifest(
    rng: random.Random,
    directory: JobDirectory,
    files: Sequence[PendingFile],
    seen: Sequence[ListedObject],
    task: str,
) -> bytes:
    """Of ``files``; of what is visible, by its key, its etag and an upload id of nobody's."""
    named = list(files)
    if seen and rng.random() < 0.4:
        one = rng.choice(list(seen))
        theirs = ("upload-000001", (one.etag,), one.length)
        named.append(PendingFile(directory.bucket, one.key, *theirs, directory.job_id))
    if not named or rng.random() < 0.05:
        return no_document(rng)
    try:
        return encode_pendingset(PendingSet(directory.job_id, tuple(named), task, "a0"))
    except InvalidInputError:
        return no_document(rng)


def commit_manifest(
    rng: random.Random, directory: JobDirectory, seen: Sequence[ListedObject], ids: Sequence[str]
) -> bytes:
    """Of visible files with the job's id; says that they are copies, or that another is undone."""
    if rng.random() < 0.3:
        return no_document(rng)
    own = [one for one in seen if owner_of(one.key) == directory.job_id]
    keys = [one.key for one in seen if owner_of(one.key)] or [NEVER]
    files = [
        CommittedFile(one.key, one.length, one.etag if rng.random() < 0.7 else "",
                      origin=rng.choice(keys) if rng.random() < 0.5 else "")
        for one in own
    ]  # fmt: skip
    facts = ReplacedFacts("0" * 64, rng.choice([0, 1]), 1) if rng.random() < 0.6 else None
    header = CommitHeader(
        directory.job_id,
        directory.destination.uri,
        "2099-01-01T00:00:00.000Z",
        len(files),
        1,
        None,
        idempotency_key=KEY if rng.random() < 0.4 else None,
        replaced=facts,
        scope=rng.choice(list(Scope)),
        undoes=rng.choice([*ids, ""]),
    )
    return b"".join(commit_lines(header, files))


def result(rng: random.Random, directory: JobDirectory) -> bytes:
    """Says that the job has ended, as it did or did not."""
    if rng.random() < 0.15:
        return no_document(rng, MAX_RESULT_BYTES)
    outcome = rng.choice(list(Outcome))
    said = JobResult(
        job_id=rng.choice([directory.job_id, directory.job_id, directory.job_id, NEVER]),
        outcome=outcome,
        error=None if outcome is Outcome.COMMITTED else Failure("UPLOADS_LOST", "forged"),
        files=1,
        bytes=1,
        rows=1,
        replaced=0,
        decided_at=LONG_AGO if outcome is not Outcome.ABORTED else None,
        finished_at=LONG_AGO,
        execution=rng.choice(["", "forged"]),
    )
    return RESULT_JSON.encode(said)


def once_note(rng: random.Random, ids: Sequence[str]) -> bytes:
    """Says which job has the key."""
    if rng.random() < 0.15:
        return no_document(rng)
    return dump({"version": 1, "jobId": rng.choice(list(ids)), "files": 1, "rows": 9})


def marker(rng: random.Random, ids: Sequence[str]) -> bytes:
    """A ``_SUCCESS`` of some job's, or one that nobody can read."""
    if rng.random() < 0.6:
        return no_document(rng, MAX_SUCCESS_BYTES)
    return dump({"name": "forged", "jobId": rng.choice(list(ids)), "success": True})
