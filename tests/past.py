"""Committed jobs as they have left S3."""

import itertools
from typing import Any

from s3commit.core.documents.commit_manifest import CommitHeader, CommittedFile, commit_lines
from s3commit.core.formats.layout import JobDirectory, parse_destination
from s3commit.core.model.record import ReplacedFacts
from s3commit.core.ports.objects import ObjectStore

_NUMBERS = itertools.count(1)


def past_job(
    store: ObjectStore, uri: str, files: dict[str, bytes], *, removes: int = 0, **header: Any
) -> JobDirectory:
    """A job with these files, whose names get its id, and a commit manifest that says so."""
    number = next(_NUMBERS)
    directory = JobDirectory(parse_destination(uri), f"00000000-0000-4000-8000-{number:012}")
    listed = [CommittedFile(f"{key}-{directory.job_id}", len(files[key])) for key in files]
    for file, body in zip(listed, files.values(), strict=True):
        store.put(directory.bucket, file.key, body)
    said = CommitHeader(
        *(directory.job_id, directory.destination.uri, f"2026-11-26T00:00:00.{number:06}Z"),
        *(len(files), sum(map(len, files.values())), len(files)),
        replaced=ReplacedFacts("5" * 64, removes, removes) if removes else None,
        **header,
    )
    store.put(directory.bucket, directory.commits, b"".join(commit_lines(said, listed)))
    return directory
