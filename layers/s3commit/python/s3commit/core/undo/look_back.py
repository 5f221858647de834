"""The undo of a committed job: what it removes and brings back (docs/adr/0038).

An undo is a job that replaces: the files that it removes are those of the job that it undoes, and
its own are copies of what that one had replaced. So it has the locks, the decision and the crash
behaviour of any job that replaces. The work follows from ``_commits/``, a listing, and the list of
what the job replaced, which the pipeline keeps below ``_s3commit/``.

A job is undone if another one that undoes it is committed, and is not undone itself.
"""

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from os.path import commonprefix

from s3commit.core.documents.commit_manifest import CommitHeader, CommittedFile, read_commit_header
from s3commit.core.formats.layout import JobDirectory, directories_above, owner_of, partition_of
from s3commit.core.formats.strict_json import TOO_LARGE
from s3commit.core.jobs.listings import PAGE, list_objects
from s3commit.core.jobs.past_commits import Commit, Reach, undone_jobs
from s3commit.core.jobs.replaced import outermost
from s3commit.core.model.errors import NOT_READABLE, JobRefusedError
from s3commit.core.model.limits import S3_CLOCKS
from s3commit.core.model.moments import shifted
from s3commit.core.ports.bundle import S3Ports
from s3commit.core.ports.objects import ListedObject
from s3commit.core.undo.bound import Look, PastBoundError
from s3commit.core.undo.files import (
    NOT_COMMITTED,
    NOTHING_TO_UNDO,
    brought_back,
    manifest_of,
    named_files,
    present,
    refuse,
    replaced_by,
    restored_files,
)
from s3commit.core.undo.later import (
    Done,
    commits_around,
    copies_of,
    each_of,
    is_around,
    is_later,
    is_surely_later,
    places_of,
    reach_of,
    removed_by,
    undone_first,
)


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

    @property
    def may_restore(self) -> bool:
        """True unless it is known that nothing would come back."""
        return bool(self.restores or self.refused)


def look_back(look: Look, directory: JobDirectory, after: Iterable[Done] = ()) -> Undo:
    """The work of an undo of the committed job, as if it came ``after`` these undos too.

    Changes nothing, and reads no ledger.

    Raises `JobRefusedError`: ``NOT_COMMITTED``; ``NOTHING_TO_UNDO`` if it is undone, or later jobs
    have replaced all of it and nothing could come back; ``FILES_CHANGED`` if a file is missing, or
    another one, and no job says why; ``TOO_LARGE`` past the bound; the decoder's code for a
    manifest that can't be read.

    Requests: two listings of the places of its files and of those that it replaced; a GET for each
    commit since, two for one that has replaced partitions or brought files back; a GET for each job
    of which it replaced files; and a HEAD for each file with another etag that is newer than the
    list of its job.
    """
    try:
        return _look_back(look, directory, [*after])
    except PastBoundError as error:
        refuse(
            TOO_LARGE,
            f"an undo of job {directory.job_id} {error}. If lists in _commits/"
            " are not the pipeline's, delete them (`s3commit log` names them); or write the data"
            " again with conflict 'replace'",
        )


def _look_back(look: Look, directory: JobDirectory, after: list[Done]) -> Undo:
    header, files = manifest_of(look, directory)
    back, refused = replaced_by(look, directory, header)
    at = {partition_of(one.key) for one in files} | set(map(partition_of, back))
    roots = [directory.destination.prefix]
    if at and not header.undoes:  # of an undo, files that it did not touch may have come and gone
        roots = _fewest(at)
    makers = {owner_of(key) or "" for key in back}
    own, commits, made = commits_around(look, directory, roots, makers)
    if own is None:
        refuse(NOT_COMMITTED, f"the list of the files of job {directory.job_id} is missing")
    after = [one for one in after if is_around(one[0].directory.destination.prefix, roots)]
    read, commits = commits, [*commits, *(commit for commit, _ in after)]
    undone = undone_jobs(commits)
    for by in (one.directory for one in commits if one.undoes == directory):
        again = f"; job {undone[by].job_id} took that back: undo that one" if by in undone else ""
        refuse(NOTHING_TO_UNDO, f"job {directory.job_id} was undone by job {by.job_id}{again}")
    places = at.union(*map(directories_above, at))
    undos = [one for one in read if one.undoes and one.directory.destination.prefix in places]
    first = {file.first_key: file.length for file in files}
    new = [one for _, some in after for one in some if first.get(one.origin) == one.length]
    wanted = {one.key: one for one in chain(files, copies_of(look, undos, first), new)}
    put = {one.directory.job_id: shifted(one.put_at, S3_CLOCKS) for one in (own, *undos)}
    listing = look.in_time(list_objects(look.ports, directory.bucket, roots))
    listing = chain(listing, (ListedObject(one.key, "", one.length) for one in new))
    removes, by_hand = present(look, directory.bucket, listing, wanted, put=put, back=back)
    for one in removes:
        first.pop(wanted[one.key].first_key, None)
    gone = [one for one in files if one.first_key in first]
    reaches: list[tuple[Commit, Reach]] = []
    if gone or back or header.undoes:
        some = look.lists(one for one in commits if one.header.replaced is not None)
        reach = partial(reach_of, look, places)
        reaches += each_of(look, reach, some, lambda one: one.length)
    removed = {place for one in reaches for place in removed_by(*one)}
    for file in gone:
        if removed.isdisjoint(places_of(file)):
            refuse("FILES_CHANGED", f"{file.key!r} was deleted, and no job says that it did")
    named, theirs = named_files(look, back, made)
    restores = tuple(restored_files(look, back.values(), named, undone))
    whole = {one.directory for one in commits if not one.header.leaves_removed}
    restored = {job for job, undo in undone.items() if undo in whole}  # their removals are undone
    there = (wanted[one.key] for one in removes if owner_of(one.key) == directory.job_id)
    still = {place for file in there for place in places_of(file)}
    standing = [
        (one, reach)
        for one, reach in reaches
        if one.directory not in restored and is_later(own, one, reach, still, theirs)
    ]
    undos_of = {one.undoes: one for one in commits if one.undoes}
    refused = refused or _overwritten(look, own, standing, restores, undos_of)
    refused = refused or brought_back(by_hand, restores)
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


def instead(removes: Collection[ListedObject]) -> str:
    """The advice where nothing can come back."""
    if removes:
        how = "`s3commit undo JOB --leave-removed`, or leave_removed=True"
        return f"To remove only the job's own files: {how}"
    return "To have the data back anyway, write it again"


def _overwritten(
    look: Look,
    own: Commit,
    standing: list[tuple[Commit, Reach]],
    restores: Iterable[CommittedFile],
    by: Mapping[JobDirectory, Commit],
) -> JobRefusedError | None:
    """Why what the job replaced can't come back beside what later jobs have done there."""
    places = {place for file in restores for place in places_of(file)}
    found = [
        one
        for one, reach in look.in_time(standing)
        if not places.isdisjoint(removed_by(one, reach))
        # Data that an undo's job undid may have come back in part, by an undo of what replaced it.
        or (own.undoes and one.undoes and _leaves_doubt(look.ports, own, one))
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
        return header.replaced_files > 0
    return True


def _undone(ports: S3Ports, undo: Commit) -> CommitHeader:
    undone = JobDirectory(undo.directory.destination, undo.header.undoes)
    return read_commit_header(ports.store, undone)
