"""The S3A jobs at a destination, and what has become of their uploads: by what lies in S3.

Hadoop's documents are read as strangers may have written them. A ``.pendingset`` has the files of a
task that is done, a ``.pending`` file has one file of a task that is not. Source:
``org.apache.hadoop.fs.s3a.commit.files`` of Hadoop 3.3.4 and 3.5.0.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from s3commit.cli.render import epoch_of
from s3commit.cli.session import Session
from s3commit.core.formats.codec import Codec, Form, each, read_text
from s3commit.core.formats.layout import (
    JOB_ID,
    UNSPEAKABLE,
    bad_element,
    directories_above,
    is_hidden,
    owner_of,
    parse_destination,
)
from s3commit.core.formats.manifest import (
    MAX_MANIFEST_BYTES,
    MAX_MANIFEST_VALUES,
    expected_etag,
)
from s3commit.core.formats.strict_json import parse
from s3commit.core.model.errors import (
    InvalidInputError,
    JobRefusedError,
    PreconditionError,
    S3CommitError,
    UnchangedError,
    UploadGoneError,
)
from s3commit.core.model.fields import Several, Text
from s3commit.core.model.job import MAX_ETAG, MAX_FILES, MAX_PARTS, Destination, PendingFile
from s3commit.core.ports.objects import ListedObject

# From Hadoop 3.4 on a job has a directory of its own; before, all of a destination share one.
MAGIC, OWN, SHARED = "__magic", "__magic_job-", "__magic/job-"
OURS = ("job.json", "request.json", "result.json")  # a job with one of these is the pipeline's
SMALL = 512 * 1024  # bytes; larger documents are read one at a time
OPEN, VISIBLE, TAKEN, GONE, UNFINISHED = STATES = "open", "visible", "taken", "gone", "unfinished"

_TASK = re.compile(r"(?:task|attempt)_\d+_\d+_[a-z]_(\d{1,18})")
# Spark's own writers put one id into the names of all files of a write.
_WRITE = re.compile(rf"-({JOB_ID.pattern})[-.]c\d+\.[^/]*\Z")

Upload = tuple[str, str]  # key and upload id


@dataclass(frozen=True, slots=True)
class _Set:
    """A pendingset; a pending file, which is one of its members, has no ``commits``."""

    job_id: str = ""
    commits: tuple[PendingFile, ...] | None = None


_ETAG = Text(MAX_ETAG, least=1)
_ETAGS = each(  # texts, or from Hadoop 3.5 on objects
    Form(lambda part: read_text(_ETAG, part.get("etag") if isinstance(part, dict) else part)),
    Several(MAX_PARTS, least=1),
)
_FILE = Codec(PendingFile, "manifest", forms={"etags": _ETAGS})
_SET = Codec(
    _Set,
    "manifest",
    forms={"commits": each(Form(_FILE.member), Several(MAX_FILES))},
)


@dataclass
class S3AJob:
    """A job: its documents, and its uploads with their states; ``problems`` forbid a commit.

    ``quiet`` is how many seconds ago S3 saw the last sign of life.
    """

    destination: Destination
    root: str
    documents: list[ListedObject]
    files: dict[Upload, tuple[PendingFile, str]] = field(default_factory=dict)
    unfinished: list[Upload] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    quiet: int = 0

    @property
    def job_id(self) -> str:
        """The job's id."""
        return self.root[len(self.destination.prefix) :].removeprefix(SHARED).removeprefix(OWN)[:-1]

    @property
    def uri(self) -> str:
        """The directory's URI."""
        return f"s3://{self.destination.bucket}/{self.root}"

    @property
    def typed(self) -> str:
        """The URI as a shell takes it: others choose the names in it, and people copy commands."""
        return shlex.quote(self.uri)

    @property
    def manifests(self) -> list[str]:
        """The keys of the pendingsets, one for each task that is done."""
        return [one.key for one in self.documents if one.key.endswith(".pendingset")]

    @property
    def missing_tasks(self) -> int:
        """How many tasks are not done, by what they left and by gaps in the numbers."""
        highest = max(_task_numbers(one.key for one in self.documents), default=-1)
        return highest + 1 - len(_task_numbers(self.manifests))

    @property
    def counts(self) -> Counter[str]:
        """How many uploads are in which state."""
        counts = Counter(state for _, state in self.files.values())
        return counts + Counter({UNFINISHED: len(self.unfinished)})

    @property
    def still_open(self) -> list[Upload]:
        """What an abort aborts."""
        named = [upload for upload, (_, state) in self.files.items() if state == OPEN]
        return sorted({*named, *self.unfinished})

    @property
    def shown(self) -> str:
        """Stands for exactly these open uploads."""
        return hashlib.sha256(repr(self.still_open).encode()).hexdigest()[:16]

    @property
    def doubts(self) -> list[str]:
        """What a person has to decide on before a commit."""
        doubts = {
            "tasks without a manifest": self.missing_tasks,
            "open uploads that no manifest names": len(self.unfinished),
            "uploads gone, and their data": self.counts[GONE],
        }
        return [f"{count} {text}" for text, count in doubts.items() if count]


def parse_target(text: str) -> tuple[Destination, str]:
    """A destination, and the directory of a job below it, or "". Raises `InvalidInputError`."""
    above, separator, below = text.partition("/" + MAGIC)
    destination = parse_destination(above)
    root = _root(destination, f"{destination.prefix}{MAGIC}{below}/") if separator else ""
    if separator and not root:
        raise InvalidInputError(f"{text[:200]!r} is no directory of one job", code="BAD_PATH")
    return destination, root


def find_jobs(session: Session, destination: Destination, root: str = "") -> list[S3AJob]:
    """The S3A jobs with documents at the destination, or the one in ``root``. One listing."""
    listing = session.store.list(destination.bucket, root or destination.prefix + MAGIC)
    wanted = (one for one in listing if one.key.endswith((".pendingset", ".pending", *OURS)))
    jobs = []
    for place, objects in itertools.groupby(wanted, lambda one: _root(destination, one.key)):
        documents = list(objects)
        if place and not any(one.key in {place + name for name in OURS} for one in documents):
            jobs.append(S3AJob(destination, place, documents))
    return jobs


def examine(session: Session, job: S3AJob) -> None:
    """Read the job's documents, list the destination's open uploads, and HEAD each file."""
    bucket = job.destination.bucket

    @functools.cache
    def exists(directory: str) -> bool:
        return next(iter(session.store.list(bucket, directory)), None) is not None

    def is_anothers(key: str) -> bool:  # a job's that has a directory at or above the file (I5)
        owner = owner_of(key)
        named = owner is not None and owner != job.job_id
        return named and any(exists(f"{above}{OWN}{owner}/") for above in directories_above(key))

    read = _read_all(session, job)
    foreign = {one.key for _, one in read if is_anothers(one.key)}
    job.problems += [f"{key} has the name of another job's file" for key in sorted(foreign)]
    read = [(document, one) for document, one in read if one.key not in foreign]
    manifests = set(job.manifests)
    files = {(one.key, one.upload_id): one for key, one in read if key in manifests}
    known = {(one.key, one.upload_id) for _, one in read}
    writes = {_WRITE.findall(key)[0] for key, _ in known if _WRITE.search(key)}
    still_open, moments = set(), [one.modified for one in job.documents if one.modified]
    for upload in session.store.list_uploads(bucket, job.destination.prefix):
        where = upload.key, upload.upload_id
        if where in known or writes.intersection(_WRITE.findall(upload.key)):
            still_open.add(where)
            moments.append(upload.initiated)
            if upload.composite and where in files:
                job.problems.append(f"{upload.key} has checksums of its parts, its manifest none")
    job.unfinished = sorted(still_open - files.keys())
    job.quiet = int(session.epoch() - max(map(epoch_of, moments), default=0))

    def look(upload: Upload) -> tuple[Upload, str]:
        return upload, state_of(session, files[upload], is_open=upload in still_open)

    job.files = {one: (files[one], state) for one, state in session.parallel(look, files)}
    if len({key for key, _ in files}) < len(files):
        job.problems.append("two manifests name the same file")
    if job.counts[TAKEN]:
        job.problems.append(f"other objects are visible at {job.counts[TAKEN]} of its keys")
    if len({key.rpartition("/")[0] for key in manifests}) > 1:
        job.problems.append("two attempts of its application left manifests")


def state_of(session: Session, file: PendingFile, *, is_open: bool) -> str:
    """What has become of the upload. One HEAD."""
    facts = session.store.head(file.bucket, file.key)
    if facts is None:
        return OPEN if is_open else GONE
    same = facts.length == file.length and (facts.opaque or facts.etag == expected_etag(file))
    return VISIBLE if same and not is_open else TAKEN


def complete(session: Session, job: S3AJob) -> None:
    """Complete the open uploads that manifests name; what is visible stays as it is."""

    def finish(file: PendingFile) -> tuple[PendingFile, str]:
        where = file.bucket, file.key, file.upload_id, file.etags
        try:
            session.store.complete_upload(*where, length=file.length, if_absent=True)
        except (PreconditionError, UploadGoneError, JobRefusedError) as error:
            # An earlier completion whose answer was lost also ends as "gone".
            is_open = not isinstance(error, UploadGoneError)
            return file, state_of(session, file, is_open=is_open)
        return file, VISIBLE

    files = [file for file, state in job.files.values() if state == OPEN]
    for file, state in _change(session, job, finish, files):
        job.files[file.key, file.upload_id] = file, state


def abort(session: Session, job: S3AJob) -> None:
    """Abort the uploads that are open, and nothing else."""
    bucket, uploads = job.destination.bucket, job.still_open
    for _ in _change(session, job, lambda one: session.store.abort_upload(bucket, *one), uploads):
        pass
    job.unfinished = []
    job.files |= {one: (job.files[one][0], GONE) for one in uploads if one in job.files}


def _change(
    session: Session, job: S3AJob, change: Callable[[Any], Any], items: Iterable[Any]
) -> Iterator[Any]:
    """Apply ``change`` to each; what stops it is no error that says that nothing was changed."""
    try:
        yield from session.parallel(change, items)
    except UnchangedError as error:
        raise S3CommitError(
            f"{error.message}; that stopped the command, and what it had done by then stands: look"
            f" again with s3commit rescue {job.typed}",
            code="HALF_DONE",
        ) from error


def _read_all(session: Session, job: S3AJob) -> list[tuple[str, PendingFile]]:
    """What the documents name, with the document's key; one that is no good is a problem."""

    def read(document: ListedObject) -> list[tuple[str, PendingFile]]:
        key = document.key
        try:
            body = session.store.get(job.destination.bucket, key, max_bytes=MAX_MANIFEST_BYTES).body
            return [(key, one) for one in _read_uploads(body, job.destination, job.job_id)]
        except InvalidInputError as error:
            job.problems.append(f"{key}: {error.message} [{error.code}]")
            return []

    small = [one for one in job.documents if one.length <= SMALL]
    large = (one for one in job.documents if one.length > SMALL)
    found = itertools.chain(session.parallel(read, small), map(read, large))
    return list(itertools.chain.from_iterable(found))


def _root(destination: Destination, key: str) -> str:
    """The directory of the job in which the key lies; empty if it lies in none."""
    relative = key[len(destination.prefix) :]
    depth = 1 if relative.startswith(OWN) else 2 if relative.startswith(SHARED) else 0
    return destination.prefix + "/".join([*relative.split("/")[:depth], ""]) if depth else ""


def _task_numbers(keys: Iterable[str]) -> set[int]:
    return {int(found[1]) for key in keys if (found := _TASK.search(key))}


def _read_uploads(body: bytes, destination: Destination, job_id: str) -> list[PendingFile]:
    """The uploads of either document. Raises `InvalidInputError` if one is not acceptable."""
    document = parse(body, what="manifest", max_bytes=MAX_MANIFEST_BYTES, most=MAX_MANIFEST_VALUES)
    found = _SET.read(document)
    files = [_FILE.read(document)] if found.commits is None else found.commits
    for named in {found.job_id, *(file.job_id for file in files)} - {"", job_id}:
        raise InvalidInputError(f"it is of job {named[:80]!r}", code="WRONG_JOB")
    for file in files:
        _check_contained(file, destination)
    return list(files)


def _check_contained(file: PendingFile, destination: Destination) -> None:
    relative = file.key.removeprefix(destination.prefix)
    inside = file.bucket == destination.bucket and file.key != relative
    if not inside or bad_element(relative) or UNSPEAKABLE.search(relative) or is_hidden(relative):
        raise InvalidInputError(f"{file.key[:200]!r} is no data file there", code="NOT_CONTAINED")
