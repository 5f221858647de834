"""The undo of a committed job: what it removes and brings back (docs/adr/0038).

An undo is a job that replaces: the files that it removes are those of the job that it undoes, and
its own are copies of what that one had replaced. So it has the locks, the decision and the crash
behaviour of any job that replaces. The work follows from ``_commits/``, a listing, and the list of
what the job replaced, which the pipeline keeps below ``_s3commit/``.

A job is undone if another one that undoes it is committed, and is not undone itself.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain, islice
from os.path import commonprefix
from typing import Final, NoReturn

from s3commit.core.documents.commit_manifest import (
    MAX_WHOLE_BYTES,
    CommitHeader,
    CommittedFile,
    not_committed,
    read_commit_header,
    stream_commit_manifest,
)
from s3commit.core.documents.replace_list import replaced_files
from s3commit.core.formats.layout import (
    JobDirectory,
    directories_above,
    is_data,
    owner_of,
    partition_of,
)
from s3commit.core.formats.strict_json import TOO_LARGE
from s3commit.core.jobs.listings import PAGE, list_objects
from s3commit.core.jobs.past_commits import Commit, Reach, undone_jobs
from s3commit.core.jobs.replaced import outermost
from s3commit.core.model.errors import (
    NOT_READABLE,
    AccessError,
    InvalidInputError,
    JobRefusedError,
    NeedsOperatorError,
    NotFoundError,
)
from s3commit.core.model.limits import MAX_JOB_FILES, S3_CLOCKS
from s3commit.core.model.moments import shifted
from s3commit.core.ports.bundle import S3Ports
from s3commit.core.ports.objects import ListedObject
from s3commit.core.undo.bound import Bound, PastBoundError
from s3commit.core.undo.later import (
    Listed,
    commits_around,
    copies_of,
    each_of,
    files_of,
    is_later,
    is_surely_later,
    named_above,
    places_of,
    reach_of,
    removed_by,
    undone_first,
)

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


def look_back(ports: S3Ports, directory: JobDirectory, bound: Bound) -> Undo:
    """The work of an undo of the committed job. Changes nothing, and reads no ledger.

    Raises `JobRefusedError`: ``NOT_COMMITTED``; ``NOTHING_TO_UNDO`` if it is undone, or later jobs
    have replaced all of it and nothing could come back; ``FILES_CHANGED`` if a file is missing, or
    another one, and no job says why; ``TOO_LARGE`` past the ``bound``; the decoder's code for a
    manifest that can't be read.

    Requests: two listings of the places of its files and of those that it replaced; a GET for each
    commit since, two for one that has replaced partitions or brought files back; a GET for each job
    of which it replaced files; and a HEAD for each file with another etag that is newer than the
    list of its job.
    """
    try:
        return _look_back(ports, directory, bound)
    except PastBoundError as error:
        refuse(
            TOO_LARGE,
            f"an undo of job {directory.job_id} {error}. If lists in _commits/"
            " are not the pipeline's, delete them (`s3commit log` names them); or write the data"
            " again with conflict 'replace'",
        )


def _look_back(ports: S3Ports, directory: JobDirectory, bound: Bound) -> Undo:
    header, files = _manifest(ports, directory, bound)
    back, refused = _replaced(ports, directory, header, bound)
    at = {partition_of(one.key) for one in files} | set(map(partition_of, back))
    roots = [directory.destination.prefix]
    if at and not header.undoes:  # of an undo, files that it did not touch may have come and gone
        roots = _fewest(at)
    makers = {owner_of(key) or "" for key in back}
    own, commits, made = commits_around(ports, directory, roots, makers, bound)
    if own is None:
        refuse(NOT_COMMITTED, f"the list of the files of job {directory.job_id} is missing")
    undone = undone_jobs(commits)
    for by in (one.directory for one in commits if one.undoes == directory):
        again = f"; job {undone[by].job_id} took that back: undo that one" if by in undone else ""
        refuse(NOTHING_TO_UNDO, f"job {directory.job_id} was undone by job {by.job_id}{again}")
    places = at.union(*map(directories_above, at))
    undos = [one for one in commits if one.undoes and one.directory.destination.prefix in places]
    first = {file.first_key: file.length for file in files}
    wanted = {one.key: one for one in chain(files, copies_of(ports, bound, undos, first))}
    put = {one.directory.job_id: shifted(one.put_at, S3_CLOCKS) for one in (own, *undos)}
    listing = bound.in_time(list_objects(ports, directory.bucket, roots))
    removes, by_hand = _present(ports, directory, listing, wanted, put=put, back=back, bound=bound)
    for one in removes:
        first.pop(wanted[one.key].first_key, None)
    gone = [one for one in files if one.first_key in first]
    reaches: list[tuple[Commit, Reach]] = []
    if gone or back or header.undoes:
        some = bound.lists(one for one in commits if one.header.replaced is not None)
        reach = partial(reach_of, ports, bound, places)
        reaches += each_of(ports, reach, some, lambda one: one.length)
    removed = {place for one in reaches for place in removed_by(*one)}
    for file in gone:
        if removed.isdisjoint(places_of(file)):
            refuse("FILES_CHANGED", f"{file.key!r} was deleted, and no job says that it did")
    named, theirs = _named(ports, back, made, bound)
    restores = tuple(_restored(ports, bound, back.values(), named, undone))
    back_by = {one.directory for one in commits if one.header.files}
    restored = {  # jobs whose removals are undone too: an undo may leave these as they are
        one.directory
        for one in commits
        if (undo := undone.get(one.directory))
        and (undo in back_by or not (one.header.replaced and one.header.replaced.files))
    }
    there = (wanted[one.key] for one in removes if owner_of(one.key) == directory.job_id)
    still = {place for file in there for place in places_of(file)}
    standing = [
        (one, reach)
        for one, reach in reaches
        if one.directory not in restored and is_later(own, one, reach, still, theirs)
    ]
    undos_of = {one.undoes: one for one in commits if one.undoes}
    refused = refused or _overwritten(ports, own, standing, restores, by=undos_of, bound=bound)
    refused = refused or _brought_back(by_hand, restores)
    if not removes and not restores and refused is None:
        refuse(NOTHING_TO_UNDO, f"job {directory.job_id} has no files, or later jobs replaced all")
    if refused is not None:
        why = f"{refused.message}. {instead(removes)}"
        refused = JobRefusedError(why, code=refused.code)
    return Undo(header, removes, len(gone), restores, refused)


def _fewest(directories: set[str]) -> list[str]:
    """The directories to list for their objects: those inside no other, or the one above many.

    The bucket's root has all.
    """
    some = [""] if "" in directories else [*outermost(directories)]
    return some if len(some) <= PAGE else [partition_of(commonprefix(some))]  # noqa: RUF071 - keys


def refuse(code: str, message: str) -> NoReturn:
    """Raise `JobRefusedError`."""
    raise JobRefusedError(message, code=code)


def instead(removes: Collection[ListedObject]) -> str:
    """The advice where nothing can come back."""
    if removes:
        return "To remove only the job's own files: --leave-removed"
    return "To have the data back anyway, write it again"


def _manifest(
    ports: S3Ports, directory: JobDirectory, bound: Bound
) -> tuple[CommitHeader, list[CommittedFile]]:
    try:
        header, files = stream_commit_manifest(ports.store, directory, max_bytes=MAX_WHOLE_BYTES)
        return header, list(bound.held(bound.in_time(files)))
    except InvalidInputError as error:
        refuse(error.code, f"the list of the files of job {directory.job_id}: {error.message}")
    except NotFoundError:
        refuse(NOT_COMMITTED, not_committed(directory))


def _replaced(
    ports: S3Ports, directory: JobDirectory, header: CommitHeader, bound: Bound
) -> tuple[dict[str, ListedObject], JobRefusedError | None]:
    """The files that the job replaced, by key; or why they can't come back. Files alone do."""
    if header.replaced is None or not header.replaced.files:
        return {}, None
    root = len(directory.destination.prefix)
    found = bound.in_time(replaced_files(ports, directory, header.replaced))
    data = (one for one in found if is_data(one.key[root:]))
    try:
        files = {one.key: one for one in bound.held(islice(data, MAX_JOB_FILES + 1))}
    except NeedsOperatorError:
        return {}, JobRefusedError(
            f"job {directory.job_id} replaced {header.replaced.files} files, and the list of them"
            " has expired: it is kept for the deployment's retentionDays",
            code="LIST_GONE",
        )
    if len(files) > MAX_JOB_FILES:
        return {}, JobRefusedError(
            f"job {directory.job_id} replaced more than {MAX_JOB_FILES} files, and one job brings"
            " back no more",
            code=TOO_LARGE,
        )
    return files, None


def _present(
    ports: S3Ports,
    directory: JobDirectory,
    listing: Iterable[ListedObject],
    wanted: Mapping[str, CommittedFile],
    *,
    put: Mapping[str, str],
    back: Mapping[str, ListedObject],
    bound: Bound,
) -> tuple[tuple[ListedObject, ...], set[str]]:
    """Those of the files ``wanted`` that are in the listing; each is what its job has put there.

    And the keys of what comes ``back`` that are there again. Behind KMS no etag is the expected
    one. A file that is not newer than its job's list, which was ``put`` at that moment, is the
    job's (A5); for others there is a HEAD.
    """
    present: list[ListedObject] = []
    unsure: list[ListedObject] = []
    again = set[str]()

    def changed(one: ListedObject) -> str:
        was = wanted[one.key]
        with suppress(AccessError, InvalidInputError):  # under a key of another's
            facts = ports.store.head(directory.bucket, one.key)
            return "" if facts and facts.matches(was.length, was.etag) else one.key
        return one.key

    for listed in listing:
        if was := wanted.get(listed.key):
            etag = was.etag if was.etag == listed.etag else listed.etag  # one text, not two
            present.append(ListedObject(was.key, etag, listed.length))
            is_new = listed.modified > put.get(owner_of(was.key) or "", "")
            if listed.length != was.length or (was.etag not in {"", listed.etag} and is_new):
                unsure.append(present[-1])
        elif (one := back.get(listed.key)) and one.length == listed.length:
            again.add(one.key)
    for key in filter(None, ports.parallel(changed, bound.in_time(unsure))):
        refuse("FILES_CHANGED", f"{key!r} is not what the job has put there")
    return tuple(present), again


def _brought_back(again: set[str], restores: Iterable[CommittedFile]) -> JobRefusedError | None:
    """Why a file that is there again can't come back: its rows would be there twice."""
    for file in restores:
        if file.key in again:
            return JobRefusedError(
                f"{file.key[:200]!r}, which the job replaced, is there again: delete it",
                code="FILES_CHANGED",
            )
    return None


def _named(
    ports: S3Ports, back: Mapping[str, ListedObject], made: list[Listed], bound: Bound
) -> tuple[dict[str, CommittedFile], set[JobDirectory]]:
    """The replaced files that lists of jobs name, and these jobs: a name alone proves nothing."""

    def known(listed: Listed) -> list[CommittedFile]:
        return files_of(ports, bound, listed[0], as_replaced)

    def as_replaced(file: CommittedFile) -> CommittedFile | None:
        if one := back.get(file.key):
            return CommittedFile(one.key, one.length, one.etag, file.rows, file.origin)
        return None

    found: dict[str, CommittedFile] = {}
    theirs = set[JobDirectory]()
    lists = each_of(ports, known, made, lambda listed: listed[1].length)
    for (job, _), files in zip(made, lists, strict=True):
        found |= {file.key: file for file in files}
        theirs |= {job} if files else set()
    return found, theirs


def _restored(
    ports: S3Ports,
    bound: Bound,
    back: Iterable[ListedObject],
    named: Mapping[str, CommittedFile],
    undone: Iterable[JobDirectory],
) -> Iterator[CommittedFile]:
    """The files that come back: all that the job replaced but those of jobs that are undone.

    A job further in may be forged, with the id of one further up: the files of that are not its.
    """
    gone: dict[str, list[JobDirectory]] = {}
    for job in undone:
        gone.setdefault(job.job_id, []).append(job)
    was = [named.get(one.key) or CommittedFile(one.key, one.length, one.etag) for one in back]
    others = cache(partial(named_above, ports, bound, {file.first_key for file in was}))
    for file in was:
        its = gone.get(owner_of(file.first_key) or "", ())
        below = (job for job in its if file.first_key.startswith(job.destination.prefix))
        if all(file.first_key in others(job) for job in below):
            yield file


def _overwritten(
    ports: S3Ports,
    own: Commit,
    standing: list[tuple[Commit, Reach]],
    restores: Iterable[CommittedFile],
    *,
    by: Mapping[JobDirectory, Commit],
    bound: Bound,
) -> JobRefusedError | None:
    """Why what the job replaced can't come back beside what later jobs have done there."""
    places = {place for file in restores for place in places_of(file)}
    found = [
        one
        for one, reach in bound.in_time(standing)
        if not places.isdisjoint(removed_by(one, reach))
        # Data that an undo's job undid may have come back in part, by an undo of what replaced it.
        or (own.undoes and one.undoes and _leaves_doubt(ports, own, one))
    ]
    if not found:
        return None
    if unsure := [one for one in found if not is_surely_later(own, one)]:
        why = (
            f"job {unsure[0].directory.job_id} has replaced or undone data there within {S3_CLOCKS}"
            " s, and S3's clocks can't tell whether before or after"
        )
    else:
        why = f"job {found[-1].directory.job_id} has since replaced or undone data there"
        first = [undone_first(own, one, by) for one in found]
        if first[-1] and all(first):
            why += f": undo job {first[-1].job_id} of {first[-1].destination.uri} first"
    return JobRefusedError(why, code="REPLACED_SINCE")


def _leaves_doubt(ports: S3Ports, own: Commit, undo: Commit) -> bool:
    """True if the undo in between may have left out, or brought back, a part of what own undid.

    So if what it has undone had replaced files, but for the undo of an append, if own undid one
    too: what these have put is whole, and beside all else.
    """
    with suppress(*NOT_READABLE):
        header, *appended = _undone(ports, undo), _undone(ports, own)
        if header.undoes:
            other = JobDirectory(undo.directory.destination, header.undoes)
            appended.append(read_commit_header(ports.store, other))
            if all(one.replaced is None for one in appended):
                return False
        return bool(header.replaced and header.replaced.files)
    return True


def _undone(ports: S3Ports, undo: Commit) -> CommitHeader:
    undone = JobDirectory(undo.directory.destination, undo.header.undoes)
    return read_commit_header(ports.store, undone)
