"""What an undo of a committed job removes, and what it brings back (docs/adr/0038).

An undo is a job that replaces: the files that it removes are those of the job that it undoes, and
its own are copies of what that one had replaced. So it has the locks, the decision and the crash
behaviour of any job that replaces. What there is to do follows from ``_commits/``, a listing, and
the list of what the job replaced, which the pipeline keeps below ``_s3commit/``.

A job is undone if another one that undoes it is committed, and is not undone itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from os.path import commonprefix
from typing import Final, NoReturn

from s3commit.core.formats.documents import CommitHeader, CommittedFile
from s3commit.core.formats.layout import (
    SUCCESS,
    JobDirectory,
    owner_of,
    partition_of,
)
from s3commit.core.job.documents import read_commit_header, read_commit_manifest
from s3commit.core.job.history import (
    MAX_UNDO_BYTES,
    Commit,
    Reach,
    later_commits,
    reaches_of,
    undone_jobs,
)
from s3commit.core.job.replaced import Appends, replaced_files
from s3commit.core.model.errors import (
    NOT_READABLE,
    AccessError,
    InvalidInputError,
    JobRefusedError,
    NeedsOperatorError,
    NotFoundError,
)
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.objects import ListedObject

NOT_COMMITTED: Final = "NOT_COMMITTED"
NOTHING_TO_UNDO: Final = "NOTHING_TO_UNDO"
FILES_CHANGED: Final = "FILES_CHANGED"
REPLACED_SINCE: Final = "REPLACED_SINCE"
LIST_GONE: Final = "LIST_GONE"


@dataclass(frozen=True, slots=True)
class Undo:
    """What there is to do.

    ``removes`` are the files of the job that are there. ``replaced`` counts those that later jobs
    have removed. ``restores`` are the files that the job replaced, as they were. ``refused`` says
    why these can't come back.
    """

    header: CommitHeader
    removes: tuple[ListedObject, ...]
    replaced: int
    restores: tuple[CommittedFile, ...]
    refused: JobRefusedError | None = None

    @property
    def bytes(self) -> int:
        """The bytes that come back."""
        return sum(file.length for file in self.restores)


def files_to_undo(ports: Ports, directory: JobDirectory, record: JobRecord) -> list[ListedObject]:
    """The files that a job which undoes another removes; asked under its locks.

    It brings back all that the other one replaced, or nothing. Raises `JobRefusedError` as
    `look_back`; ``NOT_COMMITTED`` for a job that is under way, and ``FILES_CHANGED`` if what the
    undo brings back is not what was replaced.
    """
    undone = JobDirectory(record.destination, record.undoes)
    known = ports.ledger.job(undone.ref)
    if known is not None and known.state is not JobState.COMMITTED:
        _refuse(NOT_COMMITTED, f"job {undone.job_id} is {known.state}: there is nothing to undo")
    appends = Appends(ports, record)
    found, plan = look_back(ports, undone), record.planned
    under_way = appends.to_leave()
    for one in found.removes:
        nodes = under_way.get(owner_of(one.key) or "", ())
        if f"{record.destination.bucket}/{one.key}".startswith(nodes):
            _refuse(NOT_COMMITTED, f"a job that is under way has put {one.key!r}")
    if plan.files:
        if found.refused:
            raise found.refused
        if (plan.files, plan.bytes) != (len(found.restores), found.bytes):
            _refuse(FILES_CHANGED, "the table has changed since the undo began: run it again")
    elif not found.removes:
        _refuse(NOTHING_TO_UNDO, f"later jobs have replaced all files of job {undone.job_id}")
    return list(found.removes)


def look_back(ports: Ports, directory: JobDirectory) -> Undo:
    """What an undo of the committed job has to do. Changes nothing, and asks no ledger.

    Raises `JobRefusedError`: ``NOT_COMMITTED``; ``NOTHING_TO_UNDO`` if it is undone, or later jobs
    have replaced all of it and nothing could come back; ``FILES_CHANGED`` if a file is gone, or
    another one, and no job says why; the decoder's code for a manifest that can't be read.

    Requests: two listings of where its files and those that it replaced lie; a GET for each commit
    since, two for one that has replaced partitions or brought files back; and a GET for each job of
    which it replaced files.
    """
    header, files = _manifest(ports, directory)
    listed, refused = _listed(ports, directory, header)
    keys = [*(file.key for file in files), *(one.key for one in listed)]
    root = partition_of(commonprefix(keys)) or directory.destination.prefix  # noqa: RUF071 - keys
    later = later_commits(ports, directory, root)
    if later is None:
        _refuse(NOT_COMMITTED, f"the list of the files of job {directory.job_id} is gone")
    undone = undone_jobs(later)
    for by in (one.directory for one in later if one.undoes == directory):
        again = f"; job {undone[by].job_id} took that back: undo that one" if by in undone else ""
        _refuse(NOTHING_TO_UNDO, f"job {directory.job_id} was undone by job {by.job_id}{again}")
    removes, gone = _present(ports, root, files, _copies(ports, later, directory), directory)
    earlier = {header.undoes, *(owner_of(one.key) for one in listed)}
    reaches = [
        (one, _reach(ports, one))
        for one in later
        if one.header.replaced is not None
        and (gone or listed)
        and one.directory.job_id not in earlier
    ]
    for file in gone:
        if next(_reaching(reaches, file), None) is None:
            _refuse(FILES_CHANGED, f"{file.key!r} was deleted, and no job says that it did")
    restores = tuple(_restored(ports, directory, listed, undone))
    standing = [(one, reach) for one, reach in reaches if one.directory not in undone]
    refused = refused or _overwritten(ports, header, standing, restores)
    if not removes and not restores and refused is None:
        _refuse(NOTHING_TO_UNDO, f"job {directory.job_id} has no files, or later jobs replaced all")
    return Undo(header, tuple(removes), len(gone), restores, refused)


def _refuse(code: str, message: str) -> NoReturn:
    raise JobRefusedError(f"{message}; nothing was changed", code=code)


def _manifest(ports: Ports, directory: JobDirectory) -> tuple[CommitHeader, list[CommittedFile]]:
    try:
        return read_commit_manifest(ports.store, directory, max_bytes=MAX_UNDO_BYTES)
    except InvalidInputError as error:
        _refuse(error.code, f"the list of the files of job {directory.job_id}: {error.message}")
    except NotFoundError:
        _refuse(
            NOT_COMMITTED,
            f"job {directory.job_id} is not committed at {directory.destination.uri}: there is no"
            f" s3://{directory.bucket}/{directory.commits}",
        )


def _listed(
    ports: Ports, directory: JobDirectory, header: CommitHeader
) -> tuple[list[ListedObject], JobRefusedError | None]:
    """The files that the job replaced, or why they are not known. Markers do not come back."""
    if header.replaced is None or not header.replaced.files:
        return [], None
    try:
        files = list(replaced_files(ports, directory, header.replaced))
    except NeedsOperatorError:
        return [], JobRefusedError(
            f"job {directory.job_id} replaced {header.replaced.files} files, and the list of them"
            " is gone: it is kept for the deployment's retentionDays",
            code=LIST_GONE,
        )
    return [one for one in files if not one.key.endswith(f"/{SUCCESS}")], None


def _reach(ports: Ports, one: Commit) -> Reach:
    """What it has removed; all at its destination, where its list is spoilt."""
    try:
        return one.reach(ports.store)
    except NOT_READABLE:
        return {None}


def _copies(
    ports: Ports, later: list[Commit], directory: JobDirectory
) -> dict[str, list[CommittedFile]]:
    """What undos since have brought back, by the key that the data had first.

    A list below may be forged, by who may put there: it counts for files there alone, or not at all
    where it can't be read.
    """
    copies: dict[str, list[CommittedFile]] = {}
    for one in later:
        if one.undoes is not None and one.header.files:
            is_below = one.directory.destination.prefix > directory.destination.prefix
            files = (
                _files_of(ports, one.directory) if is_below else _manifest(ports, one.directory)[1]
            )
            for file in files:
                if partition_of(file.key) == partition_of(file.first_key):
                    copies.setdefault(file.first_key, []).append(file)
    return copies


def _present(
    ports: Ports,
    root: str,
    files: list[CommittedFile],
    copies: dict[str, list[CommittedFile]],
    directory: JobDirectory,
) -> tuple[list[ListedObject], list[CommittedFile]]:
    """The files that are there, as themselves or as a copy; and those that are not."""

    def names(file: CommittedFile) -> Iterator[CommittedFile]:
        yield file
        yield from (one for one in copies.get(file.first_key, ()) if one.length == file.length)

    wanted = {one.key: one for file in files for one in names(file)}
    here = ports.store.list(directory.bucket, root)
    present = {listed.key: listed for listed in here if listed.key in wanted}
    removes, gone = [], []
    for file in files:
        key = next((one.key for one in names(file) if one.key in present), None)
        if key is None:
            gone.append(file)
            continue
        listed, was = present[key], wanted[key]
        if listed.length != was.length or was.etag not in {"", listed.etag}:
            facts = None
            with suppress(AccessError, InvalidInputError):  # under a key of another's
                facts = ports.store.head(directory.bucket, key)  # encrypted, its etag tells nothing
            if facts is None or not facts.matches(was.length, was.etag):
                _refuse(FILES_CHANGED, f"{key!r} is not what the job has put there")
        removes.append(listed)
    return removes, gone


def _restored(
    ports: Ports,
    directory: JobDirectory,
    listed: list[ListedObject],
    undone: dict[JobDirectory, JobDirectory],
) -> Iterator[CommittedFile]:
    """The files that come back: all that the job replaced but those of jobs that are undone."""
    place = directory.destination
    owners = {JobDirectory(place, name) for one in listed if (name := owner_of(one.key))}
    known: dict[str, CommittedFile] = {}
    for files in ports.parallel(partial(_files_of, ports), owners):
        known |= {file.key: file for file in files}
    for one in listed:
        was = known.get(one.key) or CommittedFile(one.key, one.length)
        owner = owner_of(was.first_key)
        if owner is None or JobDirectory(place, owner) not in undone:
            yield replace(was, length=one.length, etag=one.etag)


def _files_of(ports: Ports, job: JobDirectory) -> list[CommittedFile]:
    """What the job's manifest says of its files; nothing, where it can't be read."""
    with suppress(*NOT_READABLE):
        return _manifest(ports, job)[1]
    return []


def _reaching(reaches: Iterable[tuple[Commit, Reach]], file: CommittedFile) -> Iterator[Commit]:
    """The jobs that have removed what lay where the file lies, or the files of its job."""
    for one, reach in reaches:
        root = one.directory.destination.prefix
        relative = file.key[len(root) :]
        if file.key.startswith(root) and not reach.isdisjoint(reaches_of(file, relative)):
            yield one


def _overwritten(
    ports: Ports,
    header: CommitHeader,
    standing: list[tuple[Commit, Reach]],
    restores: Iterable[CommittedFile],
) -> JobRefusedError | None:
    """Why what the job replaced can't come back beside what later jobs have done there."""
    others = chain.from_iterable(_reaching(standing, file) for file in restores)
    if header.undoes:  # what it undid may have come back in part, by an undo of what replaced it
        others = chain(others, (one for one, _ in standing if one.undoes and _replaces(ports, one)))
    for other in others:
        return JobRefusedError(
            f"job {other.directory.job_id} has since replaced or undone data there: undo that one"
            " first; nothing was changed",
            code=REPLACED_SINCE,
        )
    return None


def _replaces(ports: Ports, undo: Commit) -> bool:
    """Whether the job that it undoes had replaced files, or its manifest does not tell."""
    with suppress(*NOT_READABLE):
        replaced = undo.undoes and read_commit_header(ports.store, undo.undoes).replaced
        return bool(replaced and replaced.files)
    return True
