"""The undo of a committed job: what it removes and brings back (docs/adr/0038).

An undo is a job that replaces: the files that it removes are those of the job that it undoes, and
its own are copies of what that one had replaced. So it has the locks, the decision and the crash
behaviour of any job that replaces. The work follows from ``_commits/``, a listing, and the list of
what the job replaced, which the pipeline keeps below ``_s3commit/``.

A job is undone if another one that undoes it is committed, and is not undone itself.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from os.path import commonprefix
from typing import Final, NoReturn

from s3commit.core.documents.commit_manifest import (
    MAX_WHOLE_BYTES,
    CommitHeader,
    CommittedFile,
    not_committed,
    read_commit_header,
    read_commit_manifest,
)
from s3commit.core.documents.job_json import JobSpec
from s3commit.core.documents.pages import in_groups
from s3commit.core.documents.plan import planned_files
from s3commit.core.documents.replace_list import replaced_files
from s3commit.core.formats.layout import (
    JobDirectory,
    directories_above,
    is_data,
    owner_of,
    partition_of,
)
from s3commit.core.jobs.healing import JOB_ENDED
from s3commit.core.jobs.past_commits import (
    Commit,
    Reach,
    commits_around,
    copies_of,
    files_of,
    is_later,
    is_surely_later,
    jobs_reaching,
    makers_of,
    reach_of,
    undone_jobs,
)
from s3commit.core.jobs.replaced import Appends
from s3commit.core.model.errors import (
    NOT_READABLE,
    AccessError,
    InvalidInputError,
    JobRefusedError,
    NeedsOperatorError,
    NotFoundError,
)
from s3commit.core.model.limits import S3_CLOCKS
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.objects import ListedObject

MANIFESTS_AT_ONCE: Final = 4
NOT_COMMITTED: Final = "NOT_COMMITTED"
NOTHING_TO_UNDO: Final = "NOTHING_TO_UNDO"


@dataclass(frozen=True, slots=True)
class Undo:
    """The work of an undo.

    ``removes`` are the files of the job that are there. ``replaced`` counts those that later jobs
    have removed. ``restores`` are the files that the job replaced, as they were. ``refused`` says
    why these can't come back.
    """

    header: CommitHeader
    removes: tuple[ListedObject, ...]
    replaced: int
    restores: tuple[CommittedFile, ...]
    refused: JobRefusedError | None = None


def judge_undo(ports: Ports, spec: JobSpec, record: JobRecord) -> Undo:
    """The work of a job that undoes another one; found under its locks.

    It brings back all that the other one replaced, or, if it says so, nothing. Raises
    `JobRefusedError` as `look_back`; ``NOT_COMMITTED`` for a job that is under way, and
    ``FILES_CHANGED`` if what the undo brings back is not what was replaced.
    """
    undone = JobDirectory(record.destination, record.undoes)
    known = ports.ledger.job(undone.ref)
    if known is not None and known.failure is not None and known.failure.code == JOB_ENDED:
        known = None  # the record is of an event long after the end: the job's list counts
    if known is not None and known.state is not JobState.COMMITTED:
        _refuse(NOT_COMMITTED, f"job {undone.job_id} is {known.state}: there is nothing to undo")
    appends = Appends(ports, record)
    found = look_back(ports, undone)
    under_way = appends.to_leave()  # a forged manifest may name their files
    for one in found.removes:
        nodes = under_way.get(owner_of(one.key) or "", ())
        if f"{undone.bucket}/{one.key}".startswith(nodes):
            _refuse(NOT_COMMITTED, f"a job that is under way has put {one.key!r}")
    if spec.leave_removed:
        if not found.removes:
            _refuse(NOTHING_TO_UNDO, f"later jobs have replaced all files of job {undone.job_id}")
    elif found.refused:
        raise found.refused
    brought = Counter(
        (file.origin, file.length) for file in planned_files(ports, JobDirectory.of(record), record)
    )
    asked = () if spec.leave_removed else found.restores
    if brought != Counter((file.first_key, file.length) for file in asked):
        _refuse("FILES_CHANGED", "the table has changed since the undo began: run it again")
    return found


def look_back(ports: Ports, directory: JobDirectory) -> Undo:
    """The work of an undo of the committed job. Changes nothing, and reads no ledger.

    Raises `JobRefusedError`: ``NOT_COMMITTED``; ``NOTHING_TO_UNDO`` if it is undone, or later jobs
    have replaced all of it and nothing could come back; ``FILES_CHANGED`` if a file is missing, or
    another one, and no job says why; the decoder's code for a manifest that can't be read.

    Requests: two listings of the places of its files and of those that it replaced; a GET for each
    commit since, two for one that has replaced partitions or brought files back; and a GET for each
    job of which it replaced files, at each directory above them.
    """
    header, files = _manifest(ports, directory)
    listed, refused = _listed(ports, directory, header)
    back = {one.key: one.length for one in listed}
    keys = [*(file.key for file in files), *back]
    root = directory.destination.prefix
    if not header.undoes:  # of an undo, files that it did not touch may have come and gone since
        root = partition_of(commonprefix(keys)) or root  # noqa: RUF071 - keys
    own, commits = commits_around(ports, directory, root)
    if own is None:
        _refuse(NOT_COMMITTED, f"the list of the files of job {directory.job_id} is missing")
    undone = undone_jobs(commits)
    for by in (one.directory for one in commits if one.undoes == directory):
        again = f"; job {undone[by].job_id} took that back: undo that one" if by in undone else ""
        _refuse(NOTHING_TO_UNDO, f"job {directory.job_id} was undone by job {by.job_id}{again}")
    places = set(chain.from_iterable(map(directories_above, keys)))
    copies = copies_of(ports, commits, files, places)
    removes, gone, by_hand = _present(ports, root, files, copies, directory, replaced=back)
    reaches = [
        (one, reach_of(ports, one, places))
        for one in commits
        if one.header.replaced is not None and (gone or listed or header.undoes)
    ]
    for file in gone:
        if next(jobs_reaching(reaches, file), None) is None:
            _refuse("FILES_CHANGED", f"{file.key!r} was deleted, and no job says that it did")
    restores = tuple(_restored(ports, directory, listed, undone))
    removed = {one.key for one in removes}
    still = [file for file in files if file.key in removed]
    standing = [
        (one, reach)
        for one, reach in reaches
        if one.directory not in undone and is_later(own, one, reach, still, listed)
    ]
    refused = refused or _overwritten(ports, own, standing, restores)
    refused = refused or _brought_back(by_hand, restores)
    if not removes and not restores and refused is None:
        _refuse(NOTHING_TO_UNDO, f"job {directory.job_id} has no files, or later jobs replaced all")
    return Undo(header, tuple(removes), len(gone), restores, refused)


def _refuse(code: str, message: str) -> NoReturn:
    raise JobRefusedError(message, code=code)


def _manifest(ports: Ports, directory: JobDirectory) -> tuple[CommitHeader, list[CommittedFile]]:
    try:
        return read_commit_manifest(ports.store, directory, max_bytes=MAX_WHOLE_BYTES)
    except InvalidInputError as error:
        _refuse(error.code, f"the list of the files of job {directory.job_id}: {error.message}")
    except NotFoundError:
        _refuse(NOT_COMMITTED, not_committed(directory))


def _listed(
    ports: Ports, directory: JobDirectory, header: CommitHeader
) -> tuple[list[ListedObject], JobRefusedError | None]:
    """The files that the job replaced, or why they are not known. The files alone come back."""
    if header.replaced is None or not header.replaced.files:
        return [], None
    try:
        files = list(replaced_files(ports, directory, header.replaced))
    except NeedsOperatorError:
        return [], JobRefusedError(
            f"job {directory.job_id} replaced {header.replaced.files} files, and the list of them"
            " has expired: it is kept for the deployment's retentionDays",
            code="LIST_GONE",
        )
    root = len(directory.destination.prefix)
    return [one for one in files if is_data(one.key[root:])], None


def _present(
    ports: Ports,
    root: str,
    files: list[CommittedFile],
    copies: Iterable[CommittedFile],
    directory: JobDirectory,
    *,
    replaced: Mapping[str, int],
) -> tuple[list[ListedObject], list[CommittedFile], set[str]]:
    """The files that are there, as themselves or as a copy; and those that are not.

    And the keys of the ``replaced`` files, given with their lengths, that are there again.
    """
    wanted = {file.key: file for file in files}
    wanted |= {one.key: one for one in copies}
    present: dict[str, ListedObject] = {}
    again = set[str]()
    for listed in ports.store.list(directory.bucket, root):
        if listed.key in wanted:
            present[listed.key] = listed
        elif replaced.get(listed.key) == listed.length:
            again.add(listed.key)
    for key, listed in present.items():
        was = wanted[key]
        if listed.length != was.length or was.etag not in {"", listed.etag}:
            facts = None
            with suppress(AccessError, InvalidInputError):  # under a key of another's
                facts = ports.store.head(directory.bucket, key)  # encrypted, its etag tells nothing
            if facts is None or not facts.matches(was.length, was.etag):
                _refuse("FILES_CHANGED", f"{key!r} is not what the job has put there")
    there = {wanted[key].first_key for key in present}
    return list(present.values()), [one for one in files if one.first_key not in there], again


def _brought_back(again: set[str], restores: Iterable[CommittedFile]) -> JobRefusedError | None:
    """Why a file that is there again can't come back: its rows would be there twice."""
    for file in restores:
        if file.key in again:
            return JobRefusedError(
                f"{file.key[:200]!r}, which the job replaced, is there again: delete it, or restore"
                " all files by hand and add --leave-removed",
                code="FILES_CHANGED",
            )
    return None


def _restored(
    ports: Ports,
    directory: JobDirectory,
    listed: list[ListedObject],
    undone: dict[JobDirectory, JobDirectory],
) -> Iterator[CommittedFile]:
    """The files that come back: all that the job replaced but those of jobs that are undone."""
    keys = {one.key for one in listed}

    def known_to(job: JobDirectory) -> list[CommittedFile]:
        return files_of(ports, job, lambda file: file.key in keys)

    makers = {job for key in keys for job in makers_of(directory.bucket, key)}
    known: dict[str, CommittedFile] = {}
    for some in in_groups(makers, MANIFESTS_AT_ONCE):
        for files in ports.parallel(known_to, some):
            known |= {file.key: file for file in files}
    for one in listed:
        was = known.get(one.key) or CommittedFile(one.key, one.length)
        if not undone.keys() & makers_of(directory.bucket, was.first_key):
            yield replace(was, length=one.length, etag=one.etag)


def _overwritten(
    ports: Ports,
    own: Commit,
    standing: list[tuple[Commit, Reach]],
    restores: Iterable[CommittedFile],
) -> JobRefusedError | None:
    """Why what the job replaced can't come back beside what later jobs have done there."""
    others = chain.from_iterable(jobs_reaching(standing, file) for file in restores)
    if own.undoes:  # what it undid may have come back in part, by an undo of what replaced it
        others = chain(others, (one for one, _ in standing if one.undoes and _replaces(ports, one)))
    found = list(dict.fromkeys(one.directory.job_id for one in others))
    if not found:
        return None
    later = {one.directory.job_id for one, _ in standing if is_surely_later(own, one)}
    if surely := [one for one in found if one in later]:
        why = f"job {surely[0]} has since replaced or undone data there: undo that one first"
    else:
        why = (
            f"job {found[0]} has replaced or undone data there within {S3_CLOCKS} s, and S3's"
            " clocks can't tell whether before or after: nothing was changed, write the data again"
        )
    return JobRefusedError(why, code="REPLACED_SINCE")


def _replaces(ports: Ports, undo: Commit) -> bool:
    """True if the job that it undoes had replaced files, or its manifest can't be read."""
    with suppress(*NOT_READABLE):
        replaced = undo.undoes and read_commit_header(ports.store, undo.undoes).replaced
        return bool(replaced and replaced.files)
    return True
