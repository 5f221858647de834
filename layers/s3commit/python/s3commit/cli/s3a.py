"""The S3A jobs at a destination, and what has become of their uploads: by the objects in S3.

Hadoop's documents are read as strangers may have written them. A ``.pendingset`` has the files of a
task that is done, a ``.pending`` file has one file of a task that is not. Source:
``org.apache.hadoop.fs.s3a.commit.files`` of Hadoop 3.3.4 and 3.5.0.
"""

import hashlib
import itertools
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

from s3commit.cli.render import epoch_of
from s3commit.cli.session import Session
from s3commit.core.documents.pendingset import (
    MAX_MANIFEST_BYTES,
    MAX_MANIFEST_VALUES,
    SMALL_MANIFEST_BYTES,
    PendingFile,
    PendingSet,
    expected_etag,
)
from s3commit.core.formats.codec import Codec
from s3commit.core.formats.layout import (
    JOB_FILE,
    JOB_ID,
    MAGIC_PREFIX,
    PENDINGSET_SUFFIX,
    REQUEST_FILE,
    RESULT_FILE,
    UNSPEAKABLE,
    bad_element,
    directories_above,
    is_hidden,
    owner_of,
    parse_destination,
)
from s3commit.core.formats.strict_json import parse
from s3commit.core.model.amounts import many
from s3commit.core.model.destination import Destination
from s3commit.core.model.errors import (
    NOT_READABLE,
    InvalidInputError,
    JobRefusedError,
    PreconditionError,
    UploadGoneError,
)
from s3commit.core.ports.bundle import S3Ports
from s3commit.core.ports.objects import ListedObject, OpenUpload

MAGIC = "__magic"
# From Hadoop 3.4 on a job has a directory of its own; before, all of a destination share one.
_ROOT = re.compile(r"(?:__magic_job-|__magic/job-)([^/]*)/")
ATTEMPT = "/__base/"  # ends the marker of an attempt's directory, which its task's commit deletes
OURS = (JOB_FILE, REQUEST_FILE, RESULT_FILE)  # a job with one of these is the pipeline's
OPEN, VISIBLE, TAKEN, GONE, UNFINISHED = STATES = "open", "visible", "taken", "gone", "unfinished"

_TASK = re.compile(r"(?:task|attempt)_\d+_\d+_[a-z]_(\d{1,18})")
# Spark's own writers put one id into the names of all files of a write.
_WRITE = re.compile(rf"-({JOB_ID.pattern})[-.]c\d+\.[^/]*\Z")

Upload = tuple[str, str]  # key and upload id

_SET, _FILE = Codec(PendingSet, "manifest"), Codec(PendingFile, "manifest")


@dataclass
class S3AJob:
    """A job: its documents, and its uploads with their states; ``problems`` forbid a commit.

    An upload that no manifest names has no file. ``quiet`` is how many seconds ago S3 saw the last
    sign of life; ``is_pipelines`` says of a key that it is not S3A's.
    """

    destination: Destination
    root: str
    documents: list[ListedObject]
    is_pipelines: Callable[[str], bool]
    started: list[str] = field(default_factory=list)  # the directories of attempts
    named: list[tuple[str, PendingFile]] = field(default_factory=list)  # with the document's key
    uploads: dict[Upload, tuple[PendingFile | None, str]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    quiet: int = 0

    @property
    def job_id(self) -> str:
        """The job's id."""
        return _ROOT.sub(r"\1", self.root[len(self.destination.prefix) :])

    @cached_property
    def _marks(self) -> set[Upload | str]:
        writes = (found[0] for _, one in self.named if (found := _WRITE.findall(one.key)))
        return {*writes, *((one.key, one.upload_id) for _, one in self.named)}

    def owns(self, upload: OpenUpload) -> bool:
        """True for an upload that a document names, or that has the id of its write in the name."""
        return (upload.key, upload.upload_id) in self._marks or (
            not self._marks.isdisjoint(_WRITE.findall(upload.key))
            and not self.is_pipelines(upload.key)
        )

    @property
    def uri(self) -> str:
        """The directory's URI."""
        return f"s3://{self.destination.bucket}/{self.root}"

    @property
    def command(self) -> str:
        """The command that shows it, quoted for a shell: others choose the names in the URI."""
        return f"s3commit rescue {shlex.quote(self.uri)}"

    @property
    def manifests(self) -> list[str]:
        """The keys of the pendingsets, one for each task that is done."""
        return [one.key for one in self.documents if one.key.endswith(PENDINGSET_SUFFIX)]

    @property
    def missing_tasks(self) -> int:
        """How many tasks are not done, by what they left and by gaps in the numbers."""
        left = [*self.started, *(one.key for one in self.documents)]
        highest = max(_task_numbers(left), default=-1)
        return highest + 1 - len(_task_numbers(self.manifests))

    @property
    def counts(self) -> Counter[str]:
        """How many uploads are in which state."""
        return Counter(state for _, state in self.uploads.values())

    @property
    def still_open(self) -> list[Upload]:
        """The uploads that an abort aborts."""
        found = self.uploads.items()
        return sorted(upload for upload, (_, state) in found if state in {OPEN, UNFINISHED})

    @property
    def shown(self) -> str:
        """A code for exactly these open uploads."""
        return hashlib.sha256(repr(self.still_open).encode()).hexdigest()[:16]

    @property
    def doubts(self) -> list[str]:
        """The doubts that a person has to decide on before a commit."""
        doubts = (
            ("task", " without a manifest", self.missing_tasks),
            ("open upload", " that no manifest names", self.counts[UNFINISHED]),
            ("upload", " gone, and the data", self.counts[GONE]),
        )
        return [many(count, thing) + text for thing, text, count in doubts if count]


def parse_target(text: str) -> tuple[Destination, str]:
    """A destination, and the directory of a job below it, or "". Raises `InvalidInputError`."""
    above, separator, below = text.partition("/" + MAGIC)
    destination = parse_destination(above)
    root = _root(destination, f"{destination.prefix}{MAGIC}{below}/") if separator else ""
    if separator and not root:
        raise InvalidInputError(f"{text[:200]!r} is not the directory of one job", code="BAD_PATH")
    return destination, root


def find_jobs(session: Session, destination: Destination, root: str = "") -> list[S3AJob]:
    """The S3A jobs with documents at the destination, or the one in ``root``, by a look at all."""
    jobs = list(read_jobs(session.s3, destination, root))
    for job in jobs:
        _examine(session, job)
    return jobs


def read_jobs(
    ports: S3Ports, destination: Destination, root: str = "", *, most: int | None = None
) -> Iterator[S3AJob]:
    """The same without the uploads, by ``most`` documents of each: what it `S3AJob.owns`."""
    listing = ports.store.list(destination.bucket, root or destination.prefix + MAGIC)
    # A look at some counts no tasks.
    attempt = (ATTEMPT,) if most is None else ()
    suffixes = (PENDINGSET_SUFFIX, ".pending", *attempt, *OURS)
    wanted = (one for one in listing if one.key.endswith(suffixes))
    for place, objects in itertools.groupby(wanted, lambda one: _root(destination, one.key)):
        found = list(itertools.islice(objects, most))
        documents = [one for one in found if not one.key.endswith(ATTEMPT)]
        is_ours = any(one.key in {place + name for name in OURS} for one in documents)
        if place and documents and not is_ours:
            is_pipelines = _pipelines(ports, destination.bucket, place)
            started = [one.key for one in found if one.key.endswith(ATTEMPT)]
            job = S3AJob(destination, place, documents, is_pipelines, started)
            job.named = _read_all(ports, job)
            yield job


def _examine(session: Session, job: S3AJob) -> None:
    """List the destination's open uploads, and HEAD each file."""
    bucket = job.destination.bucket
    done = (one for document, one in job.named if document.endswith(PENDINGSET_SUFFIX))
    files = {(one.key, one.upload_id): one for one in done}
    listed = session.store.list_uploads(bucket, job.destination.prefix)
    still_open = {(one.key, one.upload_id): one for one in listed if job.owns(one)}
    moments = [one.modified for one in job.documents if one.modified]
    moments += [one.initiated for one in still_open.values()]
    job.quiet = int(session.epoch() - max(map(epoch_of, moments), default=0))

    def look(upload: Upload) -> tuple[Upload, tuple[PendingFile, str]]:
        file = files[upload]
        try:
            facts = session.store.head(bucket, upload[0])
        except NOT_READABLE:
            return upload, (file, TAKEN)
        if facts is None:
            return upload, (file, OPEN if upload in still_open else GONE)
        same = facts.length == file.length and (facts.opaque or facts.etag == expected_etag(file))
        return upload, (file, VISIBLE if same and upload not in still_open else TAKEN)

    job.uploads |= session.parallel(look, files)
    job.uploads |= dict.fromkeys(still_open.keys() - files, (None, UNFINISHED))
    for key in (one.key for where, one in still_open.items() if one.composite and where in files):
        job.problems.append(f"{key} has checksums of its parts, its manifest none")
    if len({key for key, _ in files}) < len(files):
        job.problems.append("two manifests name the same file")
    if job.counts[TAKEN]:
        job.problems.append(f"other objects are visible at {job.counts[TAKEN]} of its keys")
    if len({key.rpartition("/")[0] for key in job.manifests}) > 1:
        job.problems.append("two attempts of its application left manifests")


def complete(session: Session, job: S3AJob) -> None:
    """Complete the open uploads that manifests name; what is visible stays as it is."""

    def finish(file: PendingFile) -> None:
        where = file.bucket, file.key, file.upload_id, file.etags
        # The next look says what became of it, also where the answer of a completion was lost.
        with suppress(PreconditionError, UploadGoneError, JobRefusedError):
            session.store.complete_upload(*where, length=file.length, if_absent=True)

    files = [file for file, state in job.uploads.values() if file and state == OPEN]
    list(session.parallel(finish, files))


def abort(session: Session, job: S3AJob) -> None:
    """Abort the uploads that are open, and nothing else."""
    bucket = job.destination.bucket
    list(session.parallel(lambda one: session.store.abort_upload(bucket, *one), job.still_open))


def _pipelines(ports: S3Ports, bucket: str, own: str) -> Callable[[str], bool]:
    """A test for the name of a file of a pipeline's job, which must not be touched.

    That has a directory with the id in the name, above the file. ``own``, the S3A job's, does not
    count, and an id proves nothing: the writer of a document has chosen it (I5).
    """

    @cache
    def is_there(root: str) -> bool:
        return any(ports.store.list(bucket, root))

    def is_pipelines(key: str) -> bool:
        owner = owner_of(key)
        roots = {f"{above}{MAGIC_PREFIX}{owner}/" for above in directories_above(key)}
        return owner is not None and any(map(is_there, roots - {own}))

    return is_pipelines


def _read_all(ports: S3Ports, job: S3AJob) -> list[tuple[str, PendingFile]]:
    """The uploads in the documents, with the document's key; a bad document is a problem.

    Large ones are read one at a time.
    """

    def read(document: ListedObject) -> list[tuple[str, PendingFile]]:
        bucket, key = job.destination.bucket, document.key
        try:
            body = ports.store.get(bucket, key, max_bytes=MAX_MANIFEST_BYTES).body
            return [(key, file) for file in _decode(job, key, body)]
        except NOT_READABLE as error:
            job.problems.append(f"{key}: {error.message} [{error.code}]")
            return []

    small = [one for one in job.documents if one.length <= SMALL_MANIFEST_BYTES]
    large = (one for one in job.documents if one.length > SMALL_MANIFEST_BYTES)
    return list(itertools.chain(*ports.parallel(read, small), *map(read, large)))


def _decode(job: S3AJob, key: str, body: bytes) -> list[PendingFile]:
    """The uploads in a document. Raises `InvalidInputError` if not all are this job's own (I5)."""
    limits = {"max_bytes": MAX_MANIFEST_BYTES, "most": MAX_MANIFEST_VALUES}
    document = _plain(parse(body, what="manifest", **limits))
    found = _SET.read(document) if key.endswith(PENDINGSET_SUFFIX) else _FILE.read(document)
    files = [found] if isinstance(found, PendingFile) else list(found.files)
    for named in {found.job_id, *(file.job_id for file in files)} - {"", job.job_id}:
        raise InvalidInputError(f"it is of job {named[:80]!r}", code="WRONG_JOB")
    for file in files:
        name = file.key.removeprefix(job.destination.prefix)
        inside = file.bucket == job.destination.bucket and file.key != name
        if not inside or bad_element(name) or UNSPEAKABLE.search(name) or is_hidden(name):
            line = f"{file.key[:200]!r} is not a data file there"
            raise InvalidInputError(line, code="NOT_CONTAINED")
        if job.is_pipelines(file.key):
            line = f"{file.key} has the name of another job's file"
            raise InvalidInputError(line, code="NOT_CONTAINED")
    return files


def _plain(value: Any, levels: int = 5) -> Any:
    """The value with etags as texts; from Hadoop 3.5 on they are objects, on the fifth level."""
    if isinstance(value, list) and levels:
        return [_plain(one, levels - 1) for one in value]
    if isinstance(value, dict) and levels:
        found = {name: _plain(one, levels - 1) for name, one in value.items()}
        return found.get("etag", found)
    return value


def _root(destination: Destination, key: str) -> str:
    """The directory of the job that the key is in; empty if it is in none."""
    found = _ROOT.match(key[len(destination.prefix) :])
    return destination.prefix + found[0] if found else ""


def _task_numbers(keys: Iterable[str]) -> set[int]:
    return {int(found[1]) for key in keys if (found := _TASK.search(key))}
