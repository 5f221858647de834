"""What a rescue would do with an S3A job, and why it should not: judged before anything is asked.

What the pipeline would refuse ends in an abort, and the data is lost with it; so all of it is found
out here first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from s3commit.cli.rescue.jobs import S3AJob, read_files
from s3commit.cli.session import Session
from s3commit.cli.text import age, epoch_of, many, some
from s3commit.core.formats.file_names import write_of
from s3commit.core.formats.hadoop import parse_manifest_name, task_number, task_of_attempt
from s3commit.core.formats.layout import PENDINGSET_SUFFIX
from s3commit.core.model.errors import IdentityUnknownError, InvalidInputError, JobRefusedError
from s3commit.core.model.job import Failure
from s3commit.core.model.pending import PendingFile
from s3commit.core.ownership.identity import ObjectOwner, described, is_provably_ours, object_owner
from s3commit.core.ownership.other_jobs import OtherJobs
from s3commit.core.ports.objects import OpenUpload

UNFINISHED = "UNFINISHED"


@dataclass
class Judgement:
    """One job as it stands; ``problems`` are why a commit would be refused.

    ``visible`` are the files that its driver had completed; ``began`` are tasks without a
    pendingset; ``unfinished`` open uploads that no pendingset names. ``quiet`` is seconds since
    the last sign of life in S3.
    """

    job: S3AJob
    tasks: int = 0
    files: int = 0
    bytes: int = 0
    visible: list[PendingFile] = field(default_factory=list)
    began: tuple[str, ...] = ()
    unfinished: tuple[OpenUpload, ...] = ()
    quiet: int = 0
    problems: list[Failure] = field(default_factory=list)

    def speaks_against(self, code: str, message: str) -> None:
        """Note a problem."""
        self.problems.append(Failure(code, message))

    @property
    def reasons(self) -> list[Failure]:
        """The problems, and last what hints at tasks that are not done."""
        told = []
        if self.began:
            told.append(
                f"{many(len(self.began), 'task')} without a pendingset ({some(self.began)})"
            )
        if self.unfinished:
            told.append(f"{many(len(self.unfinished), 'open upload')} that no pendingset names")
        if not told:
            return self.problems
        hint = (
            f"it has {' and '.join(told)}: data is missing, unless they are of attempts that were"
            " run again. If every task is done, add --partial, and they are aborted"
        )
        return [*self.problems, Failure(UNFINISHED, hint)]


def judge(session: Session, job: S3AJob) -> Judgement:
    """Read all of the job's manifests and the destination's open uploads.

    A request for each manifest and each ``.pending`` file, and a HEAD for each file whose upload is
    not open, or whose name does not say which write it is of.
    """
    found = Judgement(job, tasks=len(job.manifests))
    committed = _read_all(session, job, job.manifests, found)
    pending = _read_all(session, job, job.pending, found)
    found.files, found.bytes = len(committed), sum(file.length for file in committed)
    directory = job.directory
    uploads = {
        (upload.key, upload.upload_id): upload
        for upload in session.store.list_uploads(directory.bucket, directory.destination.prefix)
    }
    named = {(file.key, file.upload_id) for file in committed}
    found.began = _began(job)
    found.unfinished = _unfinished(session, job, [*committed, *pending], named, uploads)
    found.quiet = _quiet(session, [*committed, *pending], found.unfinished)
    _judge_application_attempts(found)
    _judge_files(session, found, committed, set(uploads))
    if not committed:
        found.speaks_against("NO_MANIFEST", "no task of it is done, there is nothing to commit")
    return found


def refuse(found: Judgement, *, commit: bool, partial: bool, older_than: int) -> None:
    """Raise `JobRefusedError` if the job must not, or must not yet, be committed or given up.

    ``ALIVE`` if there was a sign of life lately. ``IDENTITY_UNKNOWN`` where the pipeline would stop
    half way: not even an abort would end then, and a person settles it before the request stands.
    """
    name = f"job {found.job.job_id}"
    if found.quiet < older_than:
        raise JobRefusedError(
            f"{name} was alive {age(found.quiet)} ago; be sure that its driver is dead, then wait"
            f" until it was quiet for {age(older_than)}, or shorten that with --older-than",
            code="ALIVE",
        )
    against = [one for one in found.problems if one.code == IdentityUnknownError.code]
    if commit:
        against += found.problems if partial else found.reasons
    if against:
        raise JobRefusedError(f"{name}: {against[0].message}", code=against[0].code)


def _read_all(
    session: Session, job: S3AJob, keys: Iterable[str], found: Judgement
) -> list[PendingFile]:
    def read(key: str) -> tuple[PendingFile, ...] | Failure:
        try:
            return read_files(session, job, key)
        except InvalidInputError as error:
            return Failure(error.code, f"{key[len(job.root) :]}: {error.message}")

    files: list[PendingFile] = []
    for result in session.parallel(read, keys):
        if isinstance(result, Failure):
            found.problems.append(result)
        else:
            files += result
    return files


def _began(job: S3AJob) -> tuple[str, ...]:
    """Tasks that are known to have begun, by an attempt's directory or a later task's number."""
    done = {key.rsplit("/", 1)[-1].removesuffix(PENDINGSET_SUFFIX) for key in job.manifests}
    tasks = {task for attempt in job.attempts if (task := task_of_attempt(attempt))}
    numbers = {number for task in done | tasks if (number := task_number(task)) is not None}
    some = max(done | tasks, default="")
    between = set(range(max(numbers, default=-1))) - numbers
    return tuple(sorted((tasks - done) | {f"{some[:-6]}{number:06d}" for number in between}))


def _unfinished(
    session: Session,
    job: S3AJob,
    files: list[PendingFile],
    named: set[tuple[str, str]],
    uploads: dict[tuple[str, str], OpenUpload],
) -> tuple[OpenUpload, ...]:
    """Open uploads of attempts that are not committed.

    Those of ``.pending`` files, and those whose names carry the id of the write that the job's
    files carry: Spark makes one for each write, and puts it into all its names.
    """
    other_jobs = OtherJobs(session.store, job.directory)
    known = {(file.key, file.upload_id) for file in files}
    writes = {write_of(file.key) for file in files if not other_jobs.own(file.key)} - {None}
    return tuple(
        upload
        for where, upload in sorted(uploads.items())
        if where not in named and (where in known or write_of(upload.key) in writes)
        if not other_jobs.own(upload.key)
    )


def _quiet(session: Session, files: Iterable[PendingFile], uploads: Iterable[OpenUpload]) -> int:
    moments = [file.saved / 1000 for file in files]
    moments += [epoch_of(upload.initiated) for upload in uploads]
    return max(0, int(session.environment.epoch() - max(moments, default=0)))


def _judge_application_attempts(found: Judgement) -> None:
    if found.job.shared:
        return
    directory = found.job.directory
    names = [
        parse_manifest_name(key[len(directory.prefix) :], directory.job_id)
        for key in found.job.manifests
    ]
    if None in names or len({name[1] for name in names if name}) > 1:
        found.speaks_against(
            "TWO_ATTEMPTS",
            "it has manifests of more than one attempt of its application, and only the driver"
            " knows which count",
        )


def _judge_files(
    session: Session, found: Judgement, files: list[PendingFile], uploads: set[tuple[str, str]]
) -> None:
    other_jobs = OtherJobs(session.store, found.job.directory)
    keys = [file.key for file in files]
    if len(set(keys)) != len(keys):
        found.speaks_against("DUPLICATE_KEY", "two of its tasks write the same file")
    foreign = [key for key in keys if other_jobs.own(key)]
    if foreign:
        found.speaks_against(
            "NAME_NOT_UNIQUE", f"it names {some(foreign)}, by the name another job's"
        )

    def look(file: PendingFile) -> tuple[str, str]:
        is_open = (file.key, file.upload_id) in uploads
        if is_open and write_of(file.key) is not None:
            return "", file.key
        facts = session.store.head(file.bucket, file.key)
        if facts is None:
            return "" if is_open else "gone", file.key
        if is_open:
            return "taken", file.key
        if is_provably_ours(file, facts):
            found.visible.append(file)
            return "visible", file.key
        if object_owner(file, facts) is ObjectOwner.UNKNOWN:
            return "doubted", described(file)
        return "taken" if object_owner(file, facts) is ObjectOwner.OURS else "gone", file.key

    told: dict[str, list[str]] = defaultdict(list)
    for state, key in session.parallel(look, files):
        told[state].append(key)
    if doubted := told["doubted"]:
        found.speaks_against(IdentityUnknownError.code, _in_doubt(doubted))
    if gone := told["gone"]:
        found.speaks_against(
            "UPLOAD_GONE",
            f"{many(len(gone), 'upload')} that its manifests name can not be completed any more,"
            f" aborted by another S3A job's cleanup or a lifecycle rule: {some(gone)}",
        )
    if taken := told["taken"]:
        found.speaks_against(
            "KEY_EXISTS",
            f"{some(taken)} is there already, and nothing in the name says that it is of this job",
        )


def _in_doubt(files: list[str]) -> str:
    """Behind SSE-KMS: its driver may have completed them, or another program has put them there."""
    are, they_are = ("is", "it is") if len(files) == 1 else ("are", "they are")
    return (
        f"nobody can tell whether {many(len(files), 'file')} that {are} there {are} its own,"
        " completed: the upload is gone, and behind SSE-KMS an etag tells nothing"
        f" ({some(files)}). Settle whose {they_are} (docs/operations.md), then rescue the job"
    )
