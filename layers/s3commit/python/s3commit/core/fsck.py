"""Compare a table with what was committed to it: facts, and how to repair them. Changes nothing.

Compares every commit manifest with one listing of the destination. Of a job without a result it
gives the ledger's state. To run a job's steps again is the repair of what they left undone.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from s3commit.core.documents.commit_manifest import CommittedFile, stream_commit_manifest
from s3commit.core.documents.replace_list import replaced_files
from s3commit.core.documents.result_json import read_result
from s3commit.core.formats.layout import (
    COMMITS,
    MAGIC_PREFIX,
    PENDINGSET_SUFFIX,
    JobDirectory,
    directories_above,
    is_data,
    owner_of,
    parse_commit_manifest_key,
    parse_directory,
)
from s3commit.core.fsck_report import Expiry, Finding, FindingKind, OpenJob, Report
from s3commit.core.jobs.past_commits import manifests_at, reaches_of, read_commits
from s3commit.core.model.destination import Destination
from s3commit.core.model.errors import (
    NOT_READABLE,
    AccessError,
    InvalidInputError,
    NeedsOperatorError,
    S3CommitError,
)
from s3commit.core.model.outcome import Outcome
from s3commit.core.model.record import ReplacedFacts
from s3commit.core.ports.bundle import S3Ports
from s3commit.core.ports.ledger import Ledger
from s3commit.core.ports.objects import ListedObject, ObjectReader, ObjectStore, listed_at
from s3commit.core.ports.parallel import ParallelMap

EXAMPLES: Final = 10  # of foreign files
Moment = tuple[str, str]  # when S3 got a job's commit manifest, and when the job was decided
Replaced = dict[str | None, Moment]  # when each element of a `Reach` was last replaced


def check(
    store: ObjectStore,
    ledger: Ledger | None,
    parallel: ParallelMap,
    destination: Destination,
    rules: tuple[Expiry, ...] = (),
) -> Report:
    """Look at everything below the destination.

    Requests: one listing; a GET for each commit manifest, for each page of what an ended job has
    removed, as long as that is kept, and for each result of a job without a manifest; a query for
    each job without a result; a few for each file that is missing, changed or back.
    Memory: about 400 bytes for each object, and 2 KB for each file that is not there.
    """
    report, seen = Report(destination, rules), _list(store, destination)
    report.is_table = bool(seen.lists or seen.ended or seen.open)
    missing = _compare(store, report, seen)
    above = sorted({at for one in missing for at in directories_above(one.file.key)})
    last = dict(parallel(lambda at: (at, _last_replaced(store, destination.bucket, at)), above))
    report.findings += filter(None, parallel(partial(_judge, store, report, last), missing))
    report.findings += _back(S3Ports(store), parallel, seen)
    without = ((job, at) for job, at in seen.ended.items() if job not in seen.lists)
    report.findings += filter(None, parallel(partial(_without_list, store, report), without))
    report.findings.sort(key=lambda one: one.key)
    report.open_jobs += filter(None, parallel(partial(_open_job, store, ledger, seen), seen.open))
    report.open_jobs.sort(key=lambda one: one.directory.job_id)
    return report


@dataclass
class _Seen:
    """A listing: data by key, when each commit manifest or result was put, other directories.

    ``removed`` has what commit manifests say of the files that their jobs have removed.
    """

    data: dict[str, tuple[int, str]] = field(default_factory=dict)
    lists: dict[JobDirectory, str] = field(default_factory=dict)
    open: set[JobDirectory] = field(default_factory=set)
    requested: set[JobDirectory] = field(default_factory=set)
    ended: dict[JobDirectory, str] = field(default_factory=dict)
    removed: dict[JobDirectory, ReplacedFacts] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Missing:
    """A committed file that the listing does not show as it was, with its job's commit manifest."""

    directory: JobDirectory
    moment: Moment
    file: CommittedFile


def _list(store: ObjectReader, destination: Destination) -> _Seen:
    seen, bucket, prefix = _Seen(), destination.bucket, destination.prefix
    for listed in store.list(bucket, prefix):
        relative = listed.key[len(prefix) :]
        if is_data(relative):
            seen.data[listed.key] = listed.length, listed.etag
        elif relative.startswith(COMMITS):
            job = parse_commit_manifest_key(destination, listed.key)
            if job is not None:
                seen.lists[job] = listed.modified
        elif relative.startswith(MAGIC_PREFIX):
            _add_document(seen, bucket, listed)
    seen.open -= seen.ended.keys()
    return seen


def _add_document(seen: _Seen, bucket: str, listed: ListedObject) -> None:
    key = listed.key
    try:
        directory = parse_directory(bucket, key)
    except InvalidInputError:
        return
    if key == directory.result:
        seen.ended[directory] = listed.modified
    elif key == directory.request:
        seen.requested.add(directory)
        seen.open.add(directory)
    elif key == directory.job or (
        key.startswith(directory.tasks) and key.endswith(PENDINGSET_SUFFIX)
    ):
        seen.open.add(directory)


def _compare(store: ObjectReader, report: Report, seen: _Seen) -> list[_Missing]:
    """Count what is there; what a list names is its job's alone, by its name."""
    missing: list[_Missing] = []
    named: set[str] = set()
    for directory, put in seen.lists.items():
        there: dict[str, int] = {}
        gone: list[_Missing] = []
        try:
            header, files = stream_commit_manifest(store, directory)
            for file in files:
                found = seen.data.get(file.key)
                if found is not None and found[0] == file.length and file.etag in {"", found[1]}:
                    there[file.key] = file.length
                else:
                    gone.append(_Missing(directory, (put, header.decided_at), file))
        except NOT_READABLE as error:
            if error.code == "WRONG_JOB":
                continue  # it came with a copy of another table
            fix = "restore a version of it that can be read"
            report.findings.append(_unreadable(directory.commits, directory.job_id, fix, error))
            continue
        if header.replaced:
            seen.removed[directory] = header.replaced
        report.jobs += 1
        report.files += len(there)
        report.bytes += sum(there.values())
        missing += gone
        named.update(there, (one.file.key for one in gone))
    foreign = sorted(seen.data.keys() - named)
    report.foreign, report.examples = len(foreign), foreign[:EXAMPLES]
    return missing


def _unreadable(key: str, job_id: str, fix: str, error: S3CommitError) -> Finding:
    if isinstance(error, AccessError):
        fix = f"look again with the right to read it, or else {fix}"
    return Finding(FindingKind.UNREADABLE, key, job_id, f"{fix} ({error.message})")


def _judge(
    store: ObjectReader, report: Report, last_replaced: Mapping[str, Replaced], one: _Missing
) -> Finding | None:
    """The fault of a file that is not there as it was; counts it if it has none.

    It was replaced if a later job has removed files at its place: all those of a destination there
    or above, those of the partitions that it wrote, or those of the job that it has undone. The
    list of removed files is not read. So a file that was deleted by hand before counts as replaced.
    """
    bucket, file = one.directory.bucket, one.file
    try:
        facts = store.head(bucket, file.key)
    except NOT_READABLE as error:
        return _unreadable(file.key, one.directory.job_id, "find out who wrote it", error)
    if facts is not None and facts.matches(file.length, file.etag):
        report.files += 1
        report.bytes += file.length
        return None
    if facts is None and one.moment < max(_reaching(last_replaced, file), default=one.moment):
        report.replaced += 1
        return None
    if facts is None and _has_expired(report, file.key, one.moment[0]):
        report.expired += 1
        return None
    try:
        version = _version(store, bucket, file)
        restore = f"restore version {version}"
        fix = restore if version else "no version of it is kept: write it again"
    except AccessError:
        fix = "write it again, or look for a version of it with the right s3:ListBucketVersions"
    what = FindingKind.GONE if facts is None else FindingKind.CHANGED
    meant = "; if it was deleted on purpose: s3commit fsck --expired" if facts is None else ""
    return Finding(what, file.key, one.directory.job_id, fix + meant)


def _back(ports: S3Ports, parallel: ParallelMap, seen: _Seen) -> Iterable[Finding]:
    """The files of jobs that ended jobs have removed, and that are there again.

    As when all delete markers of a bucket are removed. By the lists of these jobs, where they are
    kept and can be read: the first that is denied is a finding. No job writes a name twice.
    """
    denied: list[Finding] = []

    def listed(job: JobDirectory) -> tuple[JobDirectory, list[str]]:
        keys: list[str] = []
        try:
            for file in replaced_files(ports, job, seen.removed[job]):
                if owner_of(file.key) and seen.data.get(file.key) == (file.length, file.etag):
                    keys.append(file.key)
        except AccessError as error:
            fix = f"see that no file is there that job {job.job_id} has removed"
            denied.append(_unreadable(job.replaced, job.job_id, fix, error))
        except (*NOT_READABLE, NeedsOperatorError):
            pass  # it has expired, or is lost
        return job, keys

    by: dict[str, JobDirectory] = {}  # the last job that has removed each
    jobs = (job for job in seen.removed if job in seen.ended)
    for job, keys in sorted(parallel(listed, jobs), key=lambda one: seen.lists[one[0]]):
        by.update(dict.fromkeys(keys, job))
    yield from denied[:1]
    # It may have been listed before it was removed.
    for key, found in parallel(lambda key: (key, listed_at(ports.store, by[key].bucket, key)), by):
        if found:
            fix = (
                "unless it was restored on purpose, delete it: its rows may be there twice, since"
                f" job {by[key].job_id} has removed it"
            )
            yield Finding(FindingKind.BACK, key, owner_of(key) or "", fix)


def _has_expired(report: Report, key: str, put_at: str) -> bool:
    return any(key.startswith(prefix) and put_at < before for prefix, before in report.rules)


def _version(store: ObjectReader, bucket: str, file: CommittedFile) -> str:
    """The newest version that has the file's bytes; empty if there is none."""
    for version in store.list_versions(bucket, file.key):
        if version.length == file.length and file.etag in {"", version.etag}:
            return version.version_id
    return ""


def _reaching(last_replaced: Mapping[str, Replaced], file: CommittedFile) -> Iterable[Moment]:
    """When jobs have removed files at its place: of each destination above, the last ones."""
    for at in directories_above(file.key):
        for reach in reaches_of(file, file.key[len(at) :]):
            if reach in last_replaced[at]:
                yield last_replaced[at][reach]


def _last_replaced(store: ObjectReader, bucket: str, directory: str) -> Replaced:
    """When the last jobs of that destination that replaced files were published: by S3's times."""
    last: Replaced = {}
    manifests = manifests_at(store, Destination(bucket, directory))
    for commit in read_commits(store, map, manifests):
        if commit.header.replaced_files:
            with suppress(*NOT_READABLE):
                for reach in commit.reach(store):
                    last[reach] = max(commit.moment, last.get(reach, commit.moment))
    return last


def _without_list(
    store: ObjectReader, report: Report, one: tuple[JobDirectory, str]
) -> Finding | None:
    """A committed job whose list of files is missing; when its result was put."""
    directory, put_at = one
    try:
        result = read_result(store, directory)
    except NOT_READABLE as error:
        fix = "restore a version that can be read"
        return _unreadable(directory.result, directory.job_id, fix, error)
    if result.outcome is not Outcome.COMMITTED:
        return None
    if listed_at(store, directory.bucket, directory.commits) is not None:
        return None  # it was put after the listing
    if _has_expired(report, directory.commits, put_at):
        return None
    fix = "restore a version of it: nothing else says which files the job has"
    return Finding(FindingKind.GONE, directory.commits, directory.job_id, fix)


def _open_job(
    store: ObjectReader, ledger: Ledger | None, seen: _Seen, directory: JobDirectory
) -> OpenJob | None:
    record = ledger.job(directory.ref) if ledger is not None else None
    if listed_at(store, directory.bucket, directory.result) is not None:
        return None  # it has ended since the listing
    state = record.state.value if record else None
    return OpenJob(directory, directory in seen.requested, state)
