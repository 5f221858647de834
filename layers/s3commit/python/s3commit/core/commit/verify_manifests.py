"""VerifyManifests: is every counted file really there to be completed? Then the plan."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from s3commit.core.documents.commit_manifest import MAX_COMMITS_BYTES, MAX_LINE_BYTES, listed_bytes
from s3commit.core.documents.job_json import JOB_CHANGED, JobSpec, refuse_changed
from s3commit.core.documents.pages import Unit, in_groups, whole_pages
from s3commit.core.documents.partition_list import write_partitions
from s3commit.core.documents.pendingset import PendingFile, PendingSet
from s3commit.core.documents.plan import files_of_unit, write_plan
from s3commit.core.documents.request_json import CommitRequest, read_request
from s3commit.core.documents.ticket import Ticket
from s3commit.core.formats.layout import JobDirectory, is_copy, partition_of
from s3commit.core.formats.strict_json import TOO_LARGE
from s3commit.core.jobs.counted_manifests import counted_manifests
from s3commit.core.jobs.guards import (
    known_record,
    known_spec,
    refusing_unreadable,
    unless_overtaken,
)
from s3commit.core.jobs.listings import PAGE, list_uploads
from s3commit.core.jobs.names_free import taken_name
from s3commit.core.jobs.ownership import is_older
from s3commit.core.jobs.replaced import MAX_NAMES
from s3commit.core.model.checks import CheckedColumn, Figures
from s3commit.core.model.destination import Conflict, Scope
from s3commit.core.model.errors import JobRefusedError
from s3commit.core.model.limits import (
    MAX_JOB_FILES,
    MAX_TOTAL_BYTES,
    PAGE_FILES,
    UNITS_OF_A_JOB,
    are_few,
)
from s3commit.core.model.record import JobRecord, PlanFacts
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports, S3Ports
from s3commit.core.ports.parallel import together

SAMPLED: Final = 256 // 16  # one key in sixteen, by the first byte of its digest


@dataclass(slots=True)
class _Counted:
    """The facts kept of the manifests after they were judged; about 200 bytes a file.

    ``keys`` and ``uploads`` are digests; ``sample`` has some of the keys themselves, all of a small
    job's.
    """

    sampled: int
    checks: list[CheckedColumn]
    keys: set[bytes] = field(default_factory=set)
    uploads: set[bytes] = field(default_factory=set)
    sample: list[str] = field(default_factory=list)
    partitions: set[str] = field(default_factory=set)
    names: int = 0
    listed: int = MAX_LINE_BYTES  # bytes of the commit manifest; its header's to begin with
    bytes: int = 0
    rows: int | None = 0
    directories: str = ""  # the digest of ``partitions``, once it was made

    def counts(self) -> PlanFacts:
        """The plan's facts, as far as they are known before it is written and all files after."""
        if not self.directories:  # of up to a million names
            names = "\0".join(sorted(self.partitions))
            self.directories = hashlib.sha256(names.encode()).hexdigest()
        return PlanFacts(
            *("", 0, len(self.keys), self.bytes, self.rows),
            directories=self.directories,
            failed_check=next(filter(None, (one.failed() for one in self.checks)), ""),
        )

    def files(
        self, directory: JobDirectory, manifests: Iterable[PendingSet], *, is_undo: bool
    ) -> Iterator[PendingFile]:
        """The files of the manifests, each noted whole before. Raises `JobRefusedError`."""
        for pending in manifests:
            for file in pending.files:
                key = short_digest(file.key)
                if key in self.keys:
                    raise JobRefusedError(
                        f"{file.key!r} is written by two tasks of the job", code="DUPLICATE_KEY"
                    )
                if file.origin and not (is_undo and is_copy(file.key, file.origin)):
                    raise JobRefusedError(
                        f"{file.key[:200]!r} says that it is a copy, which it can't be",
                        code="BAD_FIELD",
                    )
                self.keys.add(key)
                self.uploads.add(short_digest(file.key, file.upload_id))
                self.listed += listed_bytes(file.key, file.origin)
                if key[0] < self.sampled:
                    self.sample.append(file.key)
                partition = partition_of(file.key[len(directory.destination.prefix) :])
                if partition not in self.partitions:
                    self.partitions.add(partition)
                    self.names += len(partition)
            self.bytes += pending.bytes
            rows = pending.rows
            self.rows = None if self.rows is None or rows is None else self.rows + rows
            self._check(pending, rows)
            _refuse_more(len(self.keys), self.bytes, self.names, self.listed)
            yield from pending.files

    def _check(self, pending: PendingSet, rows: int | None) -> None:
        """Count in what the manifest says of checked columns; one that is silent does not pass."""
        for one in self.checks if pending.files else ():
            column = one.check.column
            found = [each for each in pending.checked if each.column == column]
            for each in found or [Figures(column)]:
                one.add(each, rows)


def verify_manifests(ports: Ports, ticket: Ticket) -> Ticket:
    """Judge every counted manifest, write the plan, and see that all of its uploads are open.

    Manifests are client documents. They are read here for the last time: later steps read the
    plan. Repeating this step writes the same plan. Raises `JobRefusedError` if anything is amiss;
    no upload was completed then.
    """
    directory = ticket.directory
    with refusing_unreadable(ports, directory):
        record, spec, request = together(
            ports.parallel,
            partial(known_record, ports, ticket, JobState.SEALED, JobState.COMMITTING),
            partial(known_spec, ports, ticket),
            lambda: ticket.known.request or read_request(ports, directory),
        )
    if record.state is JobState.COMMITTING:  # by a twin, which continues
        return replace(ticket.after(record), acquired=True)
    refuse_changed(spec, record)
    if not isinstance(request, CommitRequest):
        raise JobRefusedError("the request has changed to an abort", code="REQUEST_CHANGED")
    plan, few, looked = _verify(ports, ticket, record, spec, request)
    is_append = record.conflict is Conflict.APPEND
    if is_append:  # others need not know what it writes: the decision notes the plan
        record = replace(record, plan=plan)
    else:
        record = ports.ledger.note(record, now=ports.clock.now(), plan=plan)
    after = ticket.after(record)
    return replace(
        after,
        few=few,
        acquired=is_append and record.idempotency_key is None,
        known=replace(after.known, is_unnoted=is_append, **looked),
    )


def _verify(
    ports: Ports, ticket: Ticket, record: JobRecord, spec: JobSpec, request: CommitRequest
) -> tuple[PlanFacts, tuple[Unit, ...], dict[str, Any]]:
    """Judge what the ``request`` counts and write the plan; the ledger does not change.

    Returns the plan, as the ledger is to have it, its units if they are few, and what else the call
    knows then. Of a small job, CheckConditions need not look for the keys again in this call.
    """
    directory = ticket.directory
    if request.job_sha256 not in {"", spec.sha256}:
        raise JobRefusedError(
            "_job.json was deleted, or is not the one that the request names", code=JOB_CHANGED
        )
    if record.conflict is Conflict.REPLACE:
        _refuse_to_replace(ports, directory)
    # The request's claims set the size of the units, so it is judged before they are made.
    total = request.files
    is_small = are_few(total)
    _refuse_more(total)
    checks = list(map(CheckedColumn, spec.conditions.checks))
    found = _Counted(256 if is_small else SAMPLED, checks)
    first = ticket.known.manifests
    manifests = counted_manifests(ports, directory, request.attempts, first)
    files = found.files(directory, manifests, is_undo=bool(record.undoes))
    by_partition = record.conflict is not Conflict.APPEND and record.scope is Scope.PARTITION
    partitions, looked = "", dict[str, Any]()

    def look() -> None:
        looked["taken"] = taken_name(ports, record, looked["keys"])

    def beside() -> None:
        nonlocal partitions
        find = partial(_find_uploads, ports, directory, found, record.opened_at)
        if is_small:
            looked["keys"] = [*in_groups(sorted(found.sample), PAGE_FILES)]
            looked["partitions"] = sorted(found.partitions)
        write = partial(write_partitions, ports, directory, found.partitions)
        _, partitions, _ = together(
            ports.parallel, find, write if by_partition else str, look if is_small else str
        )

    with unless_overtaken(ports, ticket, JobState.SEALED):
        sha256, units = write_plan(ports, directory, files, total=total, beside=beside)
        _refuse_missing_uploads(ports, directory, found.uploads, units)
    plan = replace(found.counts(), sha256=sha256, units=len(units), partitions=partitions)
    return plan, (tuple(units) if len(units) <= UNITS_OF_A_JOB else ()), looked


def _refuse_more(files: int, size: int = 0, names: int = 0, listed: int = 0) -> None:
    """Refuse what a function can't hold, a record can't carry, or a reader can't read (I12)."""
    limits = (
        (files, MAX_JOB_FILES, "files"),
        (size, MAX_TOTAL_BYTES, "bytes"),
        (names, MAX_NAMES, "characters of the names of partitions"),
        (listed, MAX_COMMITS_BYTES, "bytes of the list of its files"),
    )
    for count, most, counted in limits:
        if count > most:
            line = f"the job has more than {most} {counted}: use several jobs"
            raise JobRefusedError(line, code=TOO_LARGE)


def _refuse_to_replace(ports: Ports, directory: JobDirectory) -> None:
    """A right to put a job is none to delete what others have put, unless the deployment says so.

    Judged here: the ledger knows the policy, and no lock is held yet (I12).
    """
    if not directory.destination.prefix.startswith(ports.replace_below):
        raise JobRefusedError(
            f"conflict 'replace' is not allowed at {directory.destination.uri}: use another"
            " policy, or add the prefix to the deployment's parameter replacePrefixes",
            code="REPLACE_NOT_ALLOWED",
        )
    ports.check_deletes(directory.bucket)


def _find_uploads(ports: S3Ports, directory: JobDirectory, found: _Counted, opened_at: str) -> None:
    """One listing for all uploads; those that it lacks are left in ``found``."""
    missing = found.uploads
    if missing:
        prefix = directory.destination.prefix
        cuts = cuts_between(found.sample, files=len(found.keys))
        for upload in list_uploads(ports, directory.bucket, prefix, cuts):
            if not missing:
                break  # the rest is others'
            counted = short_digest(upload.key, upload.upload_id)
            if upload.composite and counted in missing:
                raise JobRefusedError(
                    f"the upload of {upload.key!r} has part checksums, which S3 requires at"
                    " completion and a manifest does not contain",
                    code="UNSUPPORTED_CHECKSUM",
                )
            # Another program's is neither to be completed nor to be aborted.
            if counted in missing and is_older(upload, opened_at):
                raise JobRefusedError(
                    f"the upload of {upload.key[:200]!r} was started before the job's _job.json was"
                    " put",
                    code="BAD_FIELD",
                )
            missing.discard(counted)


def _refuse_missing_uploads(
    ports: S3Ports, directory: JobDirectory, missing: set[bytes], units: Iterable[Unit]
) -> None:
    """Each that the listing lacked is looked up by itself."""
    for page in whole_pages(units) if missing else ():
        for file in files_of_unit(ports.store, directory, page):
            if short_digest(file.key, file.upload_id) not in missing:
                continue
            with refusing_unreadable(ports, directory):
                is_open = ports.store.upload_is_open(file.bucket, file.key, file.upload_id)
            if not is_open:
                raise JobRefusedError(
                    f"the upload of {file.key!r} does not exist: someone, or a lifecycle rule,"
                    " aborted it",
                    code="UPLOAD_GONE",
                )


def cuts_between(sample: Iterable[str], *, files: int) -> list[str]:
    """Keys in order that cut the listing of the uploads into ranges of three quarters of a page.

    However the keys are chosen, there are no more cuts than the number of files calls for.
    """
    keys = sorted(sample)
    ranges = 1 + files * 4 // (3 * PAGE)
    step = len(keys) // ranges + 1
    return keys[step::step]


def short_digest(*texts: str) -> bytes:
    """A digest in place of a long key: a million of them fit into a worker's memory."""
    return hashlib.blake2b("\0".join(texts).encode(), digest_size=16).digest()
