"""The commit manifest ``_commits/<job id>.jsonl``, written once all files are visible."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import islice

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.manifest import expected_etag
from s3commit.core.formats.published import (
    SUCCESS_FILES,
    CommitHeader,
    CommittedFile,
    commit_lines,
    header_of,
)
from s3commit.core.formats.ticket import Ticket
from s3commit.core.job.plan import planned_files
from s3commit.core.job.put_lines import put_lines
from s3commit.core.job.record import own_record
from s3commit.core.model.errors import JobRefusedError, NotFoundError
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports
from s3commit.core.recovery.visible_files import visible_files


def publish_manifest(ports: Ports, ticket: Ticket, record: JobRecord) -> list[str]:
    """Write ``_commits/<job_id>.jsonl`` and return the first keys. Raises `LostRaceError`.

    Whatever lies there, by an earlier try or by a stranger, is written over (I12).
    """
    directory = ticket.directory
    names: list[str] = []

    def noting(files: Iterable[CommittedFile]) -> Iterator[CommittedFile]:
        for file in files:
            if len(names) < SUCCESS_FILES:
                names.append(file.key)
            yield file

    def put(header: CommitHeader, files: Iterable[CommittedFile]) -> list[str]:
        names.clear()
        put_lines(ports, directory, directory.commits, commit_lines(header, noting(files)))
        return names

    header = header_of(record)
    try:
        return put(header, _committed(ports, directory, record))
    except (JobRefusedError, NotFoundError):
        own_record(ports, ticket, JobState.PUBLISHING)  # or another execution has tidied up
        # Somebody has deleted, or changed, a manifest or the plan: what is visible tells as well.
        files = visible_files(ports, directory, record)
        total = sum(file.length for file in files)
        return put(replace(header, files=len(files), bytes=total), files)


def first_keys(ports: Ports, directory: JobDirectory, record: JobRecord) -> list[str]:
    """The first keys, for the marker; none if plan or manifest are gone."""
    with suppress(JobRefusedError, NotFoundError):
        files = islice(planned_files(ports, directory, record), SUCCESS_FILES)
        return [file.key for file in files]
    return []


def _committed(ports: Ports, directory: JobDirectory, record: JobRecord) -> Iterator[CommittedFile]:
    for file in planned_files(ports, directory, record):
        yield CommittedFile(file.key, file.length, expected_etag(file), file.rows)
