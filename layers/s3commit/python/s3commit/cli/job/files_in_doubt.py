"""Files of which nobody can tell whether they are a job's, for a person who settles it (ADR 17)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from s3commit.cli.job.snapshot import JobSnapshot
from s3commit.cli.session import Session
from s3commit.core.formats.layout import (
    PENDINGSET_SUFFIX,
    parse_directory,
)
from s3commit.core.model.job import CommitRequest, Names
from s3commit.core.model.pending import PendingFile
from s3commit.core.ownership.identity import is_in_doubt
from s3commit.core.ownership.named_uploads import files_named_at
from s3commit.core.ownership.other_jobs import OtherJobs


def files_in_doubt(session: Session, snapshot: JobSnapshot) -> list[PendingFile]:
    """All of the job's, in key order: what its execution would stop at, one by one.

    Reads every counted manifest, and asks for each file, and for each upload that may be gone.
    Names that carry the job's id leave no doubt.
    """
    if snapshot.names is not Names.EXACT:
        return []
    bucket, store = snapshot.directory.bucket, session.store
    other_jobs = [OtherJobs(store, directory) for directory in snapshot.directories]

    def look(file: PendingFile) -> PendingFile | None:
        doubted = is_in_doubt(store, file, store.head(bucket, file.key))
        return file if doubted and not any(one.own(file.key) for one in other_jobs) else None

    named = session.parallel(
        lambda key: files_named_at(store, parse_directory(bucket, key), key), _manifests(snapshot)
    )
    found = [file for file in session.parallel(look, chain(*named)) if file is not None]
    # Two attempts may name one file: that of one of them, as good as that of the other.
    by_key = {file.key: file for file in sorted(found, key=lambda one: one.attempt_id)}
    return [by_key[key] for key in sorted(by_key)]


def _manifests(snapshot: JobSnapshot) -> Iterator[str]:
    """The keys of the manifests that count; all that are there, where the request names none."""
    request = snapshot.request
    if isinstance(request, CommitRequest) and request.attempts is not None:
        for attempt in request.attempts:
            directory = (
                snapshot.directory.at(attempt.location) if attempt.location else snapshot.directory
            )
            yield directory.prefix + attempt.manifest
        return
    yield from (key for key in snapshot.manifests if key.endswith(PENDINGSET_SUFFIX))
