"""Jobs of S3A's magic committer that have not ended, by what lies in S3.

From Hadoop 3.4 on a job has its directory, as ours have; before, all jobs of a destination share
``__magic/``, and each is known by the directory in it that carries its id.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from s3commit.cli.session import Session
from s3commit.core.formats.file_names import write_of
from s3commit.core.formats.hadoop import (
    JOB_PREFIX,
    MAGIC,
    MAGIC_PREFIX,
    PENDING_SUFFIX,
    parse_manifest_name,
)
from s3commit.core.formats.layout import (
    PENDINGSET_SUFFIX,
    JobDirectory,
    check_id,
    check_job_id,
    parse_destination,
    parse_directory,
)
from s3commit.core.formats.manifest import (
    MAX_MANIFEST_BYTES,
    MAX_PENDING_BYTES,
    decode_pending,
    decode_pendingset,
    with_ids,
)
from s3commit.core.model.errors import InvalidInputError, NotFoundError
from s3commit.core.model.job import Destination, Names
from s3commit.core.model.pending import PendingFile
from s3commit.core.ports.objects import ListedObject

SHARED = MAGIC + "/"
APPLICATION_ATTEMPT = "00/"  # where the files of a job without such directories are put


@dataclass(frozen=True, slots=True)
class S3AJob:
    """A job of S3A's: its place, and its objects below ``root``, in key order.

    ``shared`` says that ``root`` lies in the old ``__magic/`` and not in ``directory``. Once there
    is a request, or a result, the pipeline has the job.
    """

    directory: JobDirectory
    root: str
    objects: tuple[ListedObject, ...]
    shared: bool = False
    requested: bool = False
    ended: bool = False

    @property
    def job_id(self) -> str:
        """The job's id."""
        return self.directory.job_id

    @property
    def manifests(self) -> tuple[str, ...]:
        """The keys of the pendingsets: one a task."""
        return tuple(one.key for one in self.objects if one.key.endswith(PENDINGSET_SUFFIX))

    @property
    def pending(self) -> tuple[str, ...]:
        """The keys of the ``.pending`` files: of attempts that are not committed."""
        return tuple(one.key for one in self.objects if one.key.endswith(PENDING_SUFFIX))

    @property
    def attempts(self) -> frozenset[str]:
        """The ids of the task attempts that have a directory: they began and did not end."""
        found = set()
        for one in self.objects:
            elements = one.key[len(self.root) :].split("/")
            if "tasks" in elements[:-2]:
                found.add(elements[elements.index("tasks") + 1])
        return frozenset(found)

    @property
    def uri(self) -> str:
        """The job's directory, as people name it."""
        return f"s3://{self.directory.bucket}/{self.root}" if self.shared else self.directory.uri

    def adopted(self, key: str) -> str:
        """Where a file of a shared directory belongs in the job's own."""
        return f"{self.directory.s3a}{APPLICATION_ATTEMPT}{key[len(self.root) :]}"


def parse_target(text: str) -> tuple[Destination, str | None]:
    """A destination, and the job's id if a job directory, of either layout, is named.

    Raises `InvalidInputError`.
    """
    scheme, separator, rest = text.partition("://")
    bucket, _, key = rest.partition("/")
    elements = key.removesuffix("/").split("/")
    for index, element in enumerate(elements):
        above = f"{scheme}{separator}{bucket}/{'/'.join(elements[:index])}"
        if element.startswith(MAGIC_PREFIX):
            return parse_destination(above), check_job_id(element.removeprefix(MAGIC_PREFIX))
        if element == MAGIC:
            below = [*elements[index + 1 :], ""][0]
            job_id = check_job_id(below.removeprefix(JOB_PREFIX)) if below else None
            return parse_destination(above), job_id
    return parse_destination(text), None


def find_jobs(
    session: Session, destination: Destination, job_id: str | None
) -> tuple[list[S3AJob], list[str]]:
    """The S3A jobs at the destination that have not ended, and the directories of no job of ours.

    Those have an id that is no UUID, as MapReduce's have. Two listings.
    """
    own, strangers = _own_directories(session, destination)
    shared, more = _shared_directories(session, destination)
    # A shared job that was asked for has copies in a directory of its own.
    jobs = {job.directory.job_id: job for job in (*own, *shared)}
    found = [job for name, job in sorted(jobs.items()) if job_id in {None, name}]
    return found, sorted({*strangers, *more})


def write_ids(session: Session, job: S3AJob) -> frozenset[str]:
    """The ids that the job's file names carry instead of its own, by its first manifest."""
    for key in (*job.manifests, *job.pending):
        try:
            files = read_files(session, job, key)
        except (InvalidInputError, NotFoundError):
            continue
        if files:
            return frozenset(filter(None, (write_of(file.key) for file in files)))
    return frozenset()


def read_files(session: Session, job: S3AJob, key: str) -> tuple[PendingFile, ...]:
    """The files of one of the job's manifests. Raises `InvalidInputError`, `NotFoundError`."""
    directory = job.directory
    if not key.endswith(PENDINGSET_SUFFIX):
        stored = session.store.get(directory.bucket, key, max_bytes=MAX_PENDING_BYTES)
        return (decode_pending(stored.body, directory, key),)
    task_id = check_id(key.rsplit("/", 1)[-1].removesuffix(PENDINGSET_SUFFIX), "task id")
    stored = session.store.get(directory.bucket, key, max_bytes=MAX_MANIFEST_BYTES)
    pending = decode_pendingset(stored.body, directory, names=Names.EXACT)
    if job.shared and pending.job_id != directory.job_id:
        raise InvalidInputError(
            f"the pendingset does not say that it is of job {directory.job_id}", code="WRONG_JOB"
        )
    if any(file.task_id not in {"", task_id} for file in pending.files):
        raise InvalidInputError("the pendingset is of another task", code="WRONG_JOB")
    name = job.adopted(key) if job.shared else key
    ids = parse_manifest_name(name[len(directory.prefix) :], directory.job_id)
    return with_ids(pending.files, directory.job_id, *ids) if ids else pending.files


def _own_directories(session: Session, destination: Destination) -> tuple[list[S3AJob], list[str]]:
    bucket, prefix = destination.bucket, destination.prefix + MAGIC_PREFIX
    found: dict[JobDirectory, list[ListedObject]] = defaultdict(list)
    strangers = set()
    for listed in session.store.list(bucket, prefix):
        try:
            found[parse_directory(bucket, listed.key)].append(listed)
        except InvalidInputError:
            strangers.add(prefix + listed.key[len(prefix) :].split("/")[0] + "/")
    jobs = []
    for directory, objects in found.items():
        keys = {listed.key for listed in objects}
        below = tuple(_of_tasks(objects, directory.s3a))
        if below and not keys & {directory.job, directory.result}:
            jobs.append(
                S3AJob(directory, directory.s3a, below, requested=directory.request in keys)
            )
    return jobs, sorted(strangers)


def _shared_directories(
    session: Session, destination: Destination
) -> tuple[list[S3AJob], list[str]]:
    prefix = destination.prefix + SHARED
    found: dict[str, list[ListedObject]] = defaultdict(list)
    for listed in session.store.list(destination.bucket, prefix):
        first, separator, _ = listed.key[len(prefix) :].partition("/")
        if separator:
            found[first].append(listed)
    jobs, strangers = [], []
    for name, objects in found.items():
        root = f"{prefix}{name}/"
        try:
            directory = JobDirectory(destination, check_job_id(name.removeprefix(JOB_PREFIX)))
        except InvalidInputError:
            strangers.append(root)
            continue
        below = tuple(_of_tasks(objects, root))
        if below:
            asked, ended = (
                session.store.head(directory.bucket, key) is not None
                for key in (directory.request, directory.result)
            )
            jobs.append(S3AJob(directory, root, below, shared=True, requested=asked, ended=ended))
    return jobs, strangers


def _of_tasks(objects: Iterable[ListedObject], root: str) -> Iterator[ListedObject]:
    """The objects below ``root``, if tasks have left anything to finish or to give up there."""
    below = [one for one in objects if one.key.startswith(root) and one.key != root]
    if any(one.key.endswith((PENDINGSET_SUFFIX, PENDING_SUFFIX)) for one in below):
        yield from below
