"""The lists of a decided job that are lost: written again, or the job is abandoned (docs/adr/0043).

Without ``_s3commit/``, with an emptied bucket or a deleted KMS key a decided job lacks the pages by
which it continues. Its manifests make the same plan again, and the digest in the ledger says so:
a client that has changed them changes nothing. Where they are missing too, or a replace list
is, a person may abandon the job. No client can start an execution that does.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from typing import Final

from s3commit.core.documents.decision_json import renew_decision
from s3commit.core.documents.pages import read_list
from s3commit.core.documents.plan import write_plan
from s3commit.core.documents.request_json import CommitRequest, read_request
from s3commit.core.formats.layout import JobDirectory, is_data, owner_of
from s3commit.core.formats.strict_json import LONGEST_LINE, one_line
from s3commit.core.jobs.counted_manifests import counted_manifests
from s3commit.core.jobs.listings import list_objects
from s3commit.core.model.errors import (
    AccessError,
    JobRefusedError,
    NeedsOperatorError,
    UnchangedError,
)
from s3commit.core.model.outcome import LISTS_LOST, Failure
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports, S3Ports
from s3commit.core.ports.objects import ListedObject

GOES_BY_LISTS: Final = frozenset({JobState.COMMITTING, JobState.PUBLISHING, JobState.ROLLING_BACK})
# In a message: so many keys, and characters of a person's reason.
_SHOWN: Final = 20
_REASON: Final = 500
_MORE: Final = ", and {} more"


def keep_lists(ports: Ports, record: JobRecord, lists_lost: str) -> JobRecord:
    """Write a lost plan of a decided job again; the record, which may be abandoned.

    ``lists_lost`` is who gives the job up, and why, should a list stay lost; else nothing is. A
    job of which a list is lost stays where it is, and a later step says so. Requests: a GET for
    each page. Raises `LostRaceError`.
    """
    directory = JobDirectory.of(record)
    renew_decision(ports, record)
    if not has_plan(ports, record):
        with suppress(JobRefusedError, UnchangedError):
            _write_again(ports, directory, record)
    if not lists_lost or _has_all(ports, record):
        return record
    # Nothing of a job that is being published is undone: it may have deleted what it replaces.
    is_published = record.state is JobState.PUBLISHING
    target = JobState.PUBLISHING if is_published else JobState.ROLLING_BACK
    failure = Failure(LISTS_LOST, f"{one_line(lists_lost)} {_replaced_in(record)}".strip())
    return ports.ledger.give_up(record, target, failure, now=ports.clock.now())


def is_given_up(record: JobRecord) -> bool:
    """True if a person has given the job up, since a list of it was lost."""
    return record.failure is not None and record.failure.code == LISTS_LOST


def has_plan(ports: S3Ports, record: JobRecord) -> bool:
    """True if each page of the plan is as it was decided."""
    directory = JobDirectory.of(record)
    return _are_readable(read_list(ports, directory, record.planned.sha256, len))


def visible_files(ports: S3Ports, record: JobRecord) -> Iterator[ListedObject]:
    """The objects at the job's destination whose names carry its id.

    No proof that they are the job's: good for a message, and never for a deletion (I5).
    """
    prefix = record.destination.prefix
    for one in list_objects(ports, record.destination.bucket, (prefix,)):
        if owner_of(one.key) == record.job_id and is_data(one.key[len(prefix) :]):
            yield one


def told(ports: S3Ports, record: JobRecord) -> Failure:
    """Why the job has ended, and which of its files are visible."""
    count, keys = 0, list[str]()
    for one in visible_files(ports, record):
        count += 1
        keys += [one.key] if len(keys) < _SHOWN else []
    before = f"{record.failure.message[:_REASON]}: " if record.failure else ""
    said = f"{before}{count} of its {record.planned.files} files are visible, by their names"
    shown = 0
    for key in keys:
        if len(said) + len(key) > LONGEST_LINE - len(_MORE.format(count)):
            break
        said += f"{', ' if shown else ': '}{key}"
        shown += 1
    said += _MORE.format(count - shown) if shown < count else ""
    return Failure(LISTS_LOST, one_line(said))


def _has_all(ports: S3Ports, record: JobRecord) -> bool:
    replaced = record.replaced
    if replaced is None or record.state is JobState.ROLLING_BACK:
        return has_plan(ports, record)
    pages = JobDirectory.of(record).of_replaced
    return has_plan(ports, record) and _are_readable(read_list(ports, pages, replaced.sha256, len))


def _are_readable(lines: Iterable[int]) -> bool:
    try:
        return all(True for _ in lines)
    except (NeedsOperatorError, AccessError):
        return False


def _write_again(ports: S3Ports, directory: JobDirectory, record: JobRecord) -> None:
    request, total = read_request(ports, directory), record.planned.files
    if isinstance(request, CommitRequest) and request.files == total:
        manifests = counted_manifests(ports, directory, request.attempts)
        files = chain.from_iterable(pending.files for pending in manifests)
        write_plan(ports, directory, files, total=total)


def _replaced_in(record: JobRecord) -> str:
    if record.state is not JobState.PUBLISHING or not (record.replaced and record.replaced.files):
        return ""
    return f"(of the {record.replaced.files} files that it replaces some may be left, others gone)"
