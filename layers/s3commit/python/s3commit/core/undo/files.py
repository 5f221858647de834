"""The files of an undo: what its job has written that is there, and what comes back."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache, partial
from itertools import islice
from typing import Final, NoReturn

from s3commit.core.documents.commit_manifest import (
    MAX_WHOLE_BYTES,
    CommitHeader,
    CommittedFile,
    not_committed,
    stream_commit_manifest,
)
from s3commit.core.documents.replace_list import replaced_files
from s3commit.core.formats.layout import JobDirectory, is_data, owner_of
from s3commit.core.formats.strict_json import TOO_LARGE
from s3commit.core.model.amounts import many
from s3commit.core.model.errors import (
    AccessError,
    InvalidInputError,
    JobRefusedError,
    NeedsOperatorError,
    NotFoundError,
)
from s3commit.core.model.limits import MAX_JOB_FILES
from s3commit.core.ports.objects import ListedObject
from s3commit.core.undo.bound import Look
from s3commit.core.undo.later import Listed, each_of, files_of, named_above

NOT_COMMITTED: Final = "NOT_COMMITTED"
NOTHING_TO_UNDO: Final = "NOTHING_TO_UNDO"


def refuse(code: str, message: str) -> NoReturn:
    """Raise `JobRefusedError`."""
    raise JobRefusedError(message, code=code)


def manifest_of(look: Look, directory: JobDirectory) -> tuple[CommitHeader, list[CommittedFile]]:
    """The job's own list. Raises `JobRefusedError` where it is missing or can't be read."""
    store = look.ports.store
    try:
        header, files = stream_commit_manifest(store, directory, max_bytes=MAX_WHOLE_BYTES)
        return header, list(look.held(look.in_time(files)))
    except InvalidInputError as error:
        refuse(error.code, f"the list of the files of job {directory.job_id}: {error.message}")
    except NotFoundError as error:
        if error.code != NotFoundError.code:
            raise
        refuse(NOT_COMMITTED, not_committed(directory))


def replaced_by(
    look: Look, directory: JobDirectory, header: CommitHeader
) -> tuple[dict[str, ListedObject], JobRefusedError | None]:
    """The files that the job replaced, by key; or why they can't come back. Files alone do."""
    root = len(directory.destination.prefix)
    found = look.in_time(replaced_files(look.ports, directory, header.replaced))
    data = (one for one in found if is_data(one.key[root:]))
    try:
        files = {one.key: one for one in look.held(islice(data, MAX_JOB_FILES + 1))}
    except NeedsOperatorError:
        return {}, JobRefusedError(
            f"job {directory.job_id} replaced {many(header.replaced_files, 'file')}, and the list"
            " of them has expired: it is kept for the deployment's retentionDays",
            code="LIST_GONE",
        )
    if len(files) > MAX_JOB_FILES:
        return {}, JobRefusedError(
            f"job {directory.job_id} replaced more than {MAX_JOB_FILES} files, and one job brings"
            " back no more",
            code=TOO_LARGE,
        )
    return files, None


def present(
    look: Look,
    bucket: str,
    listing: Iterable[ListedObject],
    wanted: Mapping[str, CommittedFile],
    *,
    put: Mapping[str, str],
    back: Mapping[str, ListedObject],
) -> tuple[tuple[ListedObject, ...], set[str]]:
    """Those of the files ``wanted`` that are in the listing; each is what its job has put there.

    And the keys of what comes ``back`` that are there again. Behind KMS no etag is the expected
    one. A file that is not newer than its job's list, which was ``put`` at that moment, is the
    job's (A5); for others there is a HEAD.
    """
    found: list[ListedObject] = []
    unsure: list[ListedObject] = []
    again = set[str]()

    def changed(one: ListedObject) -> str:
        was = wanted[one.key]
        with suppress(AccessError, InvalidInputError):  # under a key of another's
            facts = look.ports.store.head(bucket, one.key)
            return "" if facts and facts.matches(was.length, was.etag) else one.key
        return one.key

    for listed in listing:
        if was := wanted.get(listed.key):
            etag = was.etag if was.etag == listed.etag else listed.etag  # one text, not two
            found.append(ListedObject(was.key, etag, listed.length))
            is_new = listed.modified > put.get(owner_of(was.key) or "", "")
            if listed.length != was.length or (was.etag not in {"", listed.etag} and is_new):
                unsure.append(found[-1])
        elif (one := back.get(listed.key)) and one.length == listed.length:
            again.add(one.key)
    for key in filter(None, look.ports.parallel(changed, look.in_time(unsure))):
        refuse("FILES_CHANGED", f"{key!r} is not what the job has put there")
    return tuple(found), again


def brought_back(again: set[str], restores: Iterable[CommittedFile]) -> JobRefusedError | None:
    """Why a file that is there again can't come back: its rows would be there twice."""
    for file in restores:
        if file.key in again:
            return JobRefusedError(
                f"{file.key[:200]!r}, which the job replaced, is there again: delete it",
                code="FILES_CHANGED",
            )
    return None


def named_files(
    look: Look, back: Mapping[str, ListedObject], made: list[Listed]
) -> tuple[dict[str, CommittedFile], set[JobDirectory]]:
    """The replaced files that lists of jobs name, and these jobs: a name alone proves nothing."""

    def known(listed: Listed) -> list[CommittedFile]:
        return files_of(look, listed[0], as_replaced)

    def as_replaced(file: CommittedFile) -> CommittedFile | None:
        if one := back.get(file.key):
            return CommittedFile(one.key, one.length, one.etag, file.rows, file.origin)
        return None

    found: dict[str, CommittedFile] = {}
    theirs = set[JobDirectory]()
    lists = each_of(look, known, made, lambda listed: listed[1].length)
    for (job, _), files in zip(made, lists, strict=True):
        found |= {file.key: file for file in files}
        theirs |= {job} if files else set()
    return found, theirs


def restored_files(
    look: Look,
    back: Iterable[ListedObject],
    named: Mapping[str, CommittedFile],
    undone: Iterable[JobDirectory],
) -> Iterator[CommittedFile]:
    """The files that come back: all that the job replaced but those of jobs that are undone.

    A job further in may be forged, with the id of one further up: the files of that are not its.
    """
    gone: dict[str, list[JobDirectory]] = {}
    for job in undone:
        gone.setdefault(job.job_id, []).append(job)
    was = [named.get(one.key) or CommittedFile(one.key, one.length, one.etag) for one in back]
    others = cache(partial(named_above, look, {file.first_key for file in was}))
    for file in was:
        its = gone.get(owner_of(file.first_key) or "", ())
        below = (job for job in its if file.first_key.startswith(job.destination.prefix))
        if all(file.first_key in others(job) for job in below):
            yield file
