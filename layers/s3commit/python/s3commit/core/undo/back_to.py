"""The undos that take a table back to how it was right after one of its jobs, as one plan.

In the end none of the jobs that came later is in effect, but for undos of such jobs, so the writes
in effect are those of that moment (docs/adr/0038). A pair of a later job and its undo needs no act,
and an undo of an earlier job is undone itself. Nothing of the plan is stored: the next call makes
it again.
"""

import re
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from typing import Final

from s3commit.core.documents.commit_manifest import (
    CommitHeader,
    CommittedFile,
    not_committed,
    read_commit_header,
    stream_commit_manifest,
)
from s3commit.core.documents.replace_list import replaced_files
from s3commit.core.formats.layout import JobDirectory, owner_of
from s3commit.core.formats.strict_json import TOO_LARGE
from s3commit.core.jobs.past_commits import Commit, undone_jobs
from s3commit.core.model.errors import NOT_READABLE, JobRefusedError, NeedsOperatorError
from s3commit.core.model.limits import S3_CLOCKS
from s3commit.core.model.moments import shifted
from s3commit.core.model.record import ReplacedFacts
from s3commit.core.ports.bundle import S3Ports
from s3commit.core.ports.objects import listed_at
from s3commit.core.undo.files import NOT_COMMITTED, NOTHING_TO_UNDO, refuse
from s3commit.core.undo.job import PlannedUndo, plan_undo
from s3commit.core.undo.later import Done, Listed, is_surely_later, listed_around

MAX_UNDOS: Final = 100  # each looks at all jobs since
REPLACED_SINCE: Final = "REPLACED_SINCE"
_PLANNED: Final = "ffffffff-ffff-4fff-bfff-"  # so begin the ids of undos that are planned


@dataclass(frozen=True, slots=True)
class WayBack:
    """The way back to right after a job: the ``undos``, newest first, each with what it undoes.

    ``idle`` are later jobs of which nothing will be left to undo.
    """

    job: JobDirectory
    undos: tuple[tuple[Commit, PlannedUndo], ...]
    idle: frozenset[JobDirectory]


def plan_way_back(ports: S3Ports, directory: JobDirectory) -> WayBack:
    """The plan, of which each undo is judged as if those before it were done. Changes nothing.

    Raises `JobRefusedError` as `jobs_to_undo`, as `plan_undo` for an undo of the plan, and if there
    are more than `MAX_UNDOS` (``TOO_LARGE``). Requests: those of both.
    """
    left = jobs_to_undo(ports, directory)
    if len(left) > MAX_UNDOS:
        refuse(
            TOO_LARGE,
            f"{len(left)} jobs came after job {directory.job_id}, and one call undoes at most"
            f" {MAX_UNDOS}: go back to a later job first",
        )
    # By S3's clocks, as those of the other jobs: this machine's may be slow.
    at = shifted(left[0].put_at, 2 * S3_CLOCKS) if left else ""
    undos, done, following = list[tuple[Commit, PlannedUndo]](), list[Done](), iter(left)
    while one := next(following, None):
        try:
            planned = plan_undo(ports, one.directory, leave_removed=False, after=done)
        except JobRefusedError as error:
            if error.code == NOTHING_TO_UNDO:
                continue  # as yet: within S3's clocks one that is older by them may be later
            said = re.sub(rf"job {_PLANNED}\w+", "an undo of this plan", error.message)
            refuse(
                error.code,
                f"{directory.destination.uri} can't go back to job {directory.job_id}, as the undo"
                f" of job {one.directory.job_id} at {one.directory.destination.uri} is refused:"
                f" {said}",
            )
        done.append(_as_done(planned, len(done), at))
        undos.append((one, planned))
        left.remove(one)
        following = iter(left)
    return WayBack(directory, tuple(undos), frozenset(one.directory for one in left))


def jobs_to_undo(ports: S3Ports, directory: JobDirectory) -> list[Commit]:
    """The jobs to undo so that the table is as right after the given one, the newest first.

    Jobs of tables inside are among them. Raises `JobRefusedError`: ``NOT_COMMITTED``;
    ``REPLACED_SINCE`` if S3's clocks can't tell whether a job came later, if a later one of a table
    above has files here, or if an undo has left out what its job had replaced here; the decoder's
    code for a list of a later job that can't be read. Requests: listings of the table and of
    ``_commits/`` above, a GET for each job since, and for those of tables above its lists.
    """
    own, since = _since(ports, directory)
    table = _Table(ports, directory.destination.prefix, own)
    later = table.later(since)
    _refuse_left_out(table, later)
    undone, undo_of = undone_jobs(since), {one.undoes: one for one in since if one.undoes}
    found = []
    for one in later.values():
        if one.undoes in later or one.directory in undone:
            continue  # it goes with the job that it undoes, or needs no act
        if not table.is_touched_by(one):
            continue
        if not one.directory.destination.prefix.startswith(table.root):
            refuse(
                REPLACED_SINCE,
                f"job {one.directory.job_id} of {one.directory.destination.uri}, the table above,"
                " has since written or replaced here: go back there, or undo it first",
            )
        last = one
        while undo := undo_of.get(last.directory):
            last = undo
        found.append(last)
    return sorted(found, key=attrgetter("moment"), reverse=True)


def _refuse_left_out(table: "_Table", later: dict[JobDirectory, Commit]) -> None:
    """Refuse if a later undo has left removed what a later job had replaced of that moment."""
    undos = [(one, later[job]) for one in later.values() if (job := one.undoes) and job in later]
    if not any(one.header.leaves_removed for one, _ in undos):
        return
    # Files of later jobs were not there, nor copies, but if they are of what was there before.
    new = {one.directory.job_id for one in later.values() if one.undoes not in later}
    for undo, undone in undos:
        if table.owners(undone) <= new:
            new.add(undo.directory.job_id)
        elif undo.header.leaves_removed:
            refuse(
                REPLACED_SINCE,
                f"job {undo.directory.job_id} has left out what job {undone.directory.job_id} had"
                " replaced. That was there then, and no undo brings it back: write it again",
            )


def _since(ports: S3Ports, directory: JobDirectory) -> tuple[Commit, list[Commit]]:
    """The job, and those of about that moment and since, in their order."""
    place = listed_at(ports.store, directory.bucket, directory.commits)
    if place is None:
        refuse(NOT_COMMITTED, not_committed(directory))

    def read(one: Listed) -> Commit:
        job, listed = one
        try:
            return Commit(job, listed.modified, read_commit_header(ports.store, job), listed.length)
        except NOT_READABLE as error:
            refuse(error.code, f"the list of the files of job {job.job_id}: {error.message}")

    since = shifted(place.modified, -S3_CLOCKS)
    around = listed_around(ports, directory.bucket, [directory.destination.prefix])
    listed = [one for one in around if one[1].modified >= since and one[0] != directory]
    commits = sorted(ports.parallel(read, listed), key=attrgetter("moment"))
    return read((directory, place)), commits


@dataclass(frozen=True, slots=True)
class _Table:
    """The effects of jobs below ``root``, seen from the ``own`` one."""

    ports: S3Ports
    root: str
    own: Commit

    def later(self, commits: list[Commit]) -> dict[JobDirectory, Commit]:
        """Those that came after the own one."""
        found: dict[JobDirectory, Commit] = {}
        for one in commits:
            if is_surely_later(self.own, one) or self._is_later(one, found):
                found[one.directory] = one
        return found

    def _is_later(self, one: Commit, later: dict[JobDirectory, Commit]) -> bool:
        """Of a job within S3's clocks: by what the two have done to each other."""
        own, job = self.own.directory, one.directory
        if one.undoes == own or one.undoes in later or own.job_id in self.owners(one):
            return True
        is_earlier = self.own.undoes == job or job.job_id in self.owners(self.own)
        if not is_earlier and self.is_touched_by(one):
            refuse(
                REPLACED_SINCE,
                f"jobs {own.job_id} and {job.job_id} were committed within {S3_CLOCKS} s, and S3's"
                " clocks can't tell which was first: choose another job, or undo single jobs,"
                " newest first",
            )
        return False

    def owners(self, one: Commit) -> set[str | None]:
        """The jobs whose files here it has replaced; None among them: not known."""
        try:
            replaced = replaced_files(self.ports, one.directory, one.header.replaced)
            return {owner_of(file.key) for file in replaced if file.key.startswith(self.root)}
        except NeedsOperatorError:
            return {None}

    def is_touched_by(self, one: Commit) -> bool:
        """True if it has written or replaced here, or undone a job that had; above by the lists.

        Files of undone jobs do not come back when the job that had replaced them is undone.
        """
        if not one.header.files and not one.header.replaced_files:
            return False
        job: JobDirectory | None = one.directory
        if one.directory.destination.prefix.startswith(self.root):
            return True
        seen = set[JobDirectory]()  # forged manifests may undo each other
        with suppress(*NOT_READABLE, NeedsOperatorError):
            while job and job not in seen:
                seen.add(job)
                header, files = stream_commit_manifest(self.ports.store, job)
                replaced = replaced_files(self.ports, job, header.replaced)
                keys = chain((one.key for one in files), (one.key for one in replaced))
                if any(key.startswith(self.root) for key in keys):
                    return True
                job = JobDirectory(job.destination, header.undoes) if header.undoes else None
            return job is not None
        return True


def _as_done(planned: PlannedUndo, number: int, at: str) -> Done:
    undone, job_id = planned.directory, f"{_PLANNED}{number:012x}"
    files = [
        CommittedFile(key, one.length, "", one.rows, one.first_key)
        for key, one, _ in planned.copies(job_id)
    ]
    header = CommitHeader(
        *(job_id, undone.destination.uri, at, len(files), 0, None),
        replaced=ReplacedFacts("", len(planned.found.removes), 0, restores_all=True),
        undoes=undone.job_id,
    )
    return Commit(JobDirectory(undone.destination, job_id), at, header), files
