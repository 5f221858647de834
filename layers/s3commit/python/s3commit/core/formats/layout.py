"""Every S3 key of the protocol, in one place, with its inverse.

A job directory is in its destination: ``<destination>/__magic_job-<job_id>/``. The name of each
document itself starts with ``_``: given a glob, Spark and Hadoop judge each match by its last name
alone, not by the directories above it.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Self

from s3commit.core.model.destination import ID, Destination, job_ref
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.record import JobRecord

MAGIC_PREFIX = "__magic_job-"  # this and the next two are Hadoop's
PENDINGSET_SUFFIX = ".pendingset"
_MAGIC = "__magic"  # of all jobs together, before Hadoop 3.4
JOB_FILE = "_job.json"
REQUEST_FILE = "_request.json"
RESULT_FILE = "_result.json"
INDEX = "_index-"
PAGES = "_pages/"
TASKS = "_tasks/"
COMMITS = "_commits/"
SUCCESS = "_SUCCESS"
REPLACED = "_replaced/"
# Of the Parquet files in and below a directory; Spark takes the schema of such a file first
# (org.apache.spark.sql.execution.datasources.parquet.ParquetUtils.inferSchema).
SUMMARIES = ("_metadata", "_common_metadata")
PIPELINE = "_s3commit/"  # at the bucket's root: the pipeline's own, no client may write there
DECISION_FILE = "_decision.json"
CATALOG_FILE = "_catalog.json"
KEYS = "_keys/"  # the pipeline's notes of idempotency keys

# User metadata of every data object: who made it. S3 lower-cases the names.
META_JOB = "s3commit-job"
META_TASK = "s3commit-task"
META_ATTEMPT = "s3commit-attempt"
# Of a request that is put again, when S3 got the first one; of one that a person puts in a driver's
# place, when the last task ended.
META_REQUESTED = "s3commit-requested"
MAX_KEY_BYTES = 1024  # https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html

# Behind a destination's prefix are up to 195 bytes of the protocol's own names, and DynamoDB's
# sort key, of 1,024 bytes, holds a prefix behind a task's and an attempt's id:
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
MAX_PREFIX_BYTES = 800

# A job's id proves, in file names, whose an upload is. Ids of one fixed form can't be parts of each
# other; with free ones, job "1" would own whatever has a 1 in its name (docs/adr/0004).
JOB_ID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")

# `part-00003-<id>` is ours and Hadoop's staging committer's. Spark's own writers put a counter
# behind the id of a write (`part-00003-<id>-c000`): that is not the id of a job, and the
# manifests' keys show it to all, so it must not make a job the owner (I12).
_OWNER = re.compile(rf"(?:^_?|-)(?P<id>{JOB_ID.pattern})\Z")

# Names that the protocol uses itself. A job that wrote or replaced files below one of them could
# remove the manifests and key records of a table, or another job's documents (I8, I11).
_NO_NAMES = frozenset({"", ".", ".."})
_RESERVED = frozenset({COMMITS[:-1], SUCCESS, PIPELINE[:-1], _MAGIC})

# Characters that S3's answers, which are XML 1.0, can't carry.
UNSPEAKABLE = re.compile("[\\x00-\\x1f\\x7f\\ud800-\\udfff\\ufffe\\uffff]")
# Names that end so are of access points and other kinds of buckets; events name the bucket itself:
# https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html; by the rules of
# botocore for endpoints also those of Outposts, and of access points of directory buckets.
ALIAS_ENDS = ("-s3alias", "--ol-s3", "--op-s3", ".mrap", "--x-s3", "--xa-s3", "--table-s3")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.\-]{1,61}[a-z0-9]")
_DIRECTORY = re.compile(rf"(?P<prefix>(?:.*/)?){MAGIC_PREFIX}(?P<job>{JOB_ID.pattern})/")

_MANIFEST = re.compile(
    rf"{TASKS}(?P<task>{ID.pattern})/_(?P<attempt>{ID.pattern}){re.escape(PENDINGSET_SUFFIX)}"
)
_COMMIT_MANIFEST = re.compile(rf"{COMMITS}_(?P<job>{JOB_ID.pattern})\.jsonl")


def check_id(value: str, what: str) -> str:
    """Return ``value`` if it may be an id of ``what``, else raise `InvalidInputError`."""
    if not isinstance(value, str) or not ID.fullmatch(value):
        raise InvalidInputError(
            f"{what} {value!r:.80} is not 1 to 64 letters, digits, '-' or '_'", code="BAD_ID"
        )
    return value


def check_job_id(value: str) -> str:
    """Return ``value`` if it may be a job's id, a UUID, else raise `InvalidInputError`."""
    if not JOB_ID.fullmatch(value := str(value)):  # programs have a uuid.UUID too
        raise InvalidInputError(
            f"invalid job ID {value[:80]!r}: expected a UUID, as `s3commit log` shows it",
            code="BAD_ID",
        )
    return value


def parse_destination(uri: str) -> Destination:
    """``s3://bucket/any/prefix`` (or s3a, s3n) as a `Destination`.

    Raises `InvalidInputError` for another scheme, a bad bucket name, and for a prefix that is
    empty, too long, has an element as `check_elements` refuses it, or control characters.
    """
    if not isinstance(uri, str):
        raise InvalidInputError(
            f"the path is a {type(uri).__name__}: give a string such as 's3://bucket/prefix'"
            " (pathlib would make s3:/bucket/prefix of it)",
            code="BAD_PATH",
        )
    scheme, _, rest = uri.partition("://")
    bucket, _, prefix = rest.partition("/")
    prefix = prefix.removesuffix("/")
    bad = bad_element(prefix)
    if scheme not in {"s3", "s3a", "s3n"}:
        wrong = "must look like s3://bucket/prefix"
    elif not _BUCKET.fullmatch(bucket):
        wrong = f"has {bucket[:80]!r}, which is not a bucket name"
    elif bucket.endswith(ALIAS_ENDS):
        wrong = (
            "names an alias or another kind of bucket: give the general purpose bucket's own name"
        )
    elif not prefix:
        wrong = "is a whole bucket: give a prefix, such as s3://bucket/table/"
    elif UNSPEAKABLE.search(prefix):
        wrong = "has a control character, which S3's answers can't carry"
    elif len(prefix.encode()) > MAX_PREFIX_BYTES:
        wrong = f"has a prefix of more than {MAX_PREFIX_BYTES} bytes"
    elif bad is not None:
        wrong = f"has the element {bad[:200]!r}, which is not allowed"
    else:
        return Destination(bucket, prefix + "/")
    raise InvalidInputError(f"path {uri[:200]!r} {wrong}", code="BAD_PATH")


def bad_element(path: str) -> str | None:
    """The first element of a path that no table, partition or file may have; None if there is none.

    Empty ones, ``.`` and ``..``, and the names that the protocol uses itself.
    """
    for one in path.split("/"):
        if one in _NO_NAMES or one in _RESERVED or one.startswith(MAGIC_PREFIX):
            return one
    return None


@dataclass(frozen=True, slots=True)
class JobDirectory:
    """The place of a job's own objects, and their keys.

    ``ref`` is the job for the ledger, and an execution's name (`job_ref`). Prefixes, each with its
    ``/``: ``prefix`` of the directory itself, ``tasks`` of the manifests, which an ended job needs
    no more, ``pipeline_prefix`` of what the pipeline writes for itself (docs/adr/0004), and
    ``replaced`` of the list of what the job replaced, which remains when it has ended. The others
    are keys: ``commits`` of the job's full manifest, once it is committed, ``success`` of the
    destination's ``_SUCCESS``. ``lists`` says below which of its prefixes an index and its pages
    are.
    """

    destination: Destination
    job_id: str
    lists: str = field(default="", repr=False, compare=False)
    bucket: str = field(init=False, repr=False, compare=False)
    ref: str = field(init=False, repr=False, compare=False)
    prefix: str = field(init=False, repr=False, compare=False)
    job: str = field(init=False, repr=False, compare=False)
    request: str = field(init=False, repr=False, compare=False)
    result: str = field(init=False, repr=False, compare=False)
    tasks: str = field(init=False, repr=False, compare=False)
    commits: str = field(init=False, repr=False, compare=False)
    success: str = field(init=False, repr=False, compare=False)
    pipeline_prefix: str = field(init=False, repr=False, compare=False)
    replaced: str = field(init=False, repr=False, compare=False)
    decision: str = field(init=False, repr=False, compare=False)
    catalog: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        place, ref = self.destination, job_ref(self.job_id, self.destination)
        own = f"{place.prefix}{MAGIC_PREFIX}{self.job_id}/"
        pipelines = f"{PIPELINE}{ref}/"
        for name, value in {
            "bucket": place.bucket,
            "ref": ref,
            "prefix": own,
            "job": own + JOB_FILE,
            "request": own + REQUEST_FILE,
            "result": own + RESULT_FILE,
            "tasks": own + TASKS,
            "commits": f"{place.prefix}{COMMITS}_{self.job_id}.jsonl",
            "success": place.prefix + SUCCESS,
            "pipeline_prefix": pipelines,
            "replaced": pipelines + REPLACED,
            "decision": pipelines + DECISION_FILE,
            "catalog": pipelines + CATALOG_FILE,
        }.items():
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, record: JobRecord) -> Self:
        """The directory of a job in the ledger."""
        return cls(record.destination, record.job_id)

    @property
    def uri(self) -> str:
        """The directory as people name it: the id with the place where to look for it."""
        return f"s3://{self.bucket}/{self.prefix}"

    @property
    def typed(self) -> str:
        """The URI as a shell takes it: others choose the names in it, and people copy commands."""
        return shlex.quote(self.uri)

    @property
    def of_replaced(self) -> Self:
        """The same, for the index and the pages of what the job replaced."""
        return replace(self, lists=REPLACED)

    def index(self, sha256: str) -> str:
        """The key of the index with that digest: none can be put over another (docs/adr/0007)."""
        return f"{self.pipeline_prefix}{self.lists}{INDEX}{sha256[:32]}.json"

    def page(self, sha256: str) -> str:
        """The key of the page with that digest."""
        return f"{self.pipeline_prefix}{self.lists}{PAGES}_{sha256[:32]}.jsonl"

    def once(self, digest: str) -> str:
        """The key of the hint for clients that says which job has an idempotency key (digest)."""
        return f"{self.destination.prefix}{COMMITS}_once/_{digest}.json"

    def key_note(self, digest: str) -> str:
        """The key of the pipeline's own note that says which job has an idempotency key."""
        where = self.ref.rpartition("-")[2]
        return f"{PIPELINE}{KEYS}{where}/_{digest}.json"

    def manifest_name(self, task_id: str, attempt_id: str) -> str:
        """The manifest's key relative to the directory."""
        return f"{TASKS}{task_id}/_{attempt_id}{PENDINGSET_SUFFIX}"

    def manifest(self, task_id: str, attempt_id: str) -> str:
        """The manifest's key."""
        return self.prefix + self.manifest_name(task_id, attempt_id)


@lru_cache(maxsize=64)  # each step asks many times
def parse_directory(bucket: str, key: str) -> JobDirectory:
    """The job directory that ``key`` is in.

    Raises `InvalidInputError` if it is in none, or in one whose place no table may have.
    """
    found = _DIRECTORY.match(key)
    if not found:
        raise InvalidInputError(f"key {key[:200]!r} is not in a job directory", code="BAD_KEY")
    return JobDirectory(parse_destination(f"s3://{bucket}/{found['prefix']}"), found["job"])


def parse_manifest_key(bucket: str, key: str) -> tuple[JobDirectory, str, str]:
    """The directory, task id and attempt id of a manifest's key. Raises `InvalidInputError`."""
    directory = parse_directory(bucket, key)
    found = _MANIFEST.fullmatch(key, len(directory.prefix))
    if not found:
        raise InvalidInputError(f"key {key[:200]!r} is not a manifest's key", code="BAD_KEY")
    return directory, found["task"], found["attempt"]


def parse_commit_manifest_key(destination: Destination, key: str) -> JobDirectory | None:
    """The job of that destination whose commit manifest has the key; None if none can have it."""
    found = _COMMIT_MANIFEST.fullmatch(key, len(destination.prefix))
    return JobDirectory(destination, found["job"]) if found else None


def owner_of(key: str) -> str | None:
    """The id of the one job that can have made the file, by its name; None if it names none.

    Before its first dot the name is the job's id, or ends with ``-`` and the id; that of a commit
    manifest, which may be uploaded in parts too, is ``_`` and the id. Ids are UUIDs, so no name
    has two owners (I5, I12; docs/adr/0004).
    """
    found = _OWNER.search(key.rsplit("/", 1)[-1].split(".", 1)[0])
    return found["id"] if found else None


def is_hidden(relative_key: str) -> bool:
    """True if a key below a destination is hidden: the one rule, for writers and readers.

    So is a file whose name starts with ``_`` or ``.``, and all in a directory that `hides_files`.
    Spark's listings go by it, and Hive's and Hadoop's for files
    (org.apache.spark.util.HadoopFSUtils.shouldFilterOutPathName,
    org.apache.hadoop.mapred.FileInputFormat.hiddenFileFilter).
    """
    *directories, name = relative_key.split("/")
    return name.startswith(("_", ".")) or any(map(hides_files, directories))


def hides_files(directory: str) -> bool:
    """True if readers skip a directory of that name.

    It starts with ``.``, or with ``_`` unless it is a partition's (``_day=1``).
    """
    return directory.startswith(".") or (directory.startswith("_") and "=" not in directory)


def is_inner_marker(relative_key: str) -> bool:
    """True if a key below a destination is the ``_SUCCESS`` of a table inside it."""
    *inside, name = relative_key.split("/")
    return name == SUCCESS and inside != [] and all(inside) and not any(map(hides_files, inside))


def goes_with_an_overwrite(relative_key: str) -> bool:
    """True for keys of data, inner markers and `SUMMARIES`, in a directory that readers look into.

    A summary that stayed would hide new columns, and files, from who reads by it.
    """
    *inside, name = relative_key.split("/")
    is_summary = name in SUMMARIES and not any(map(hides_files, inside))
    return is_summary or is_data(relative_key) or is_inner_marker(relative_key)


def is_data(relative_key: str) -> bool:
    """True if a key below a destination is data: not hidden, and not a marker of a directory."""
    is_marker = relative_key == "" or relative_key.endswith("/")  # the destination's, or another
    return not is_marker and not is_hidden(relative_key)


def partition_of(relative_key: str) -> str:
    """The directory of a file relative to its destination, with its ``/``; empty for the root."""
    directory, separator, _ = relative_key.rpartition("/")
    return directory + separator


def is_copy(key: str, origin: str) -> bool:
    """True if the one key can be of a copy of the other, which an undo brings back beside it."""
    return key != origin and partition_of(key) == partition_of(origin)


def directories_above(prefix: str) -> Iterator[str]:
    """The directories above a directory, the outermost first; each with its ``/``."""
    above = ""
    for element in prefix.removesuffix("/").split("/")[:-1]:
        above += element + "/"
        yield above
