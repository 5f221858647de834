"""CheckConditions: conditions and policy against what is at the destination."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from typing import Final

from s3commit.core.documents.job_json import JobSpec, read_spec, refuse_changed
from s3commit.core.documents.pages import Unit, in_groups, read_index, whole_pages
from s3commit.core.documents.partition_list import read_partitions
from s3commit.core.documents.plan import files_of_unit, planned_files
from s3commit.core.documents.replace_list import write_replaced
from s3commit.core.documents.ticket import Ticket
from s3commit.core.formats.layout import (
    JobDirectory,
    directories_above,
    goes_with_an_overwrite,
    is_inner_marker,
    owner_of,
)
from s3commit.core.jobs.guards import planned_record, refusing_unreadable, unless_overtaken
from s3commit.core.jobs.listings import PAGE, list_objects
from s3commit.core.jobs.replaced import MOST_MARKERS, Appends, existing_files, markers_to_remove
from s3commit.core.model.destination import Conflict, Scope
from s3commit.core.model.errors import JobRefusedError
from s3commit.core.model.limits import FILES_LOOKED_AT
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.objects import ListedObject, listed_at
from s3commit.core.ports.parallel import in_order, together
from s3commit.core.undo.job import judge_undo

LISTED_AT_ONCE: Final = 10_000  # files, between two readings of the appends beside the job


def check_conditions(ports: Ports, ticket: Ticket) -> Ticket:
    """Judge the job's conditions and its policy against what is at the destination.

    Under the job's locks, so that no other job replaces there until it has ended. Writes the
    replace list of a job that replaces. Raises `JobRefusedError` with the figure that failed it.
    """
    directory = ticket.directory
    read = partial(_keys, ports, directory)
    with unless_overtaken(ports, ticket, JobState.SEALED):
        with refusing_unreadable(ports, directory):
            record, spec, few = together(
                ports.parallel,
                partial(planned_record, ports, ticket, JobState.SEALED, JobState.COMMITTING),
                partial(read_spec, ports, directory),
                partial(in_order, ports.parallel, read, whole_pages(ticket.few)),
            )
        if record.state is JobState.COMMITTING:  # by a twin of SealJob, which went on
            return ticket.after(record)
        refuse_changed(spec, record)
        refuse_taken(ports, spec, record, few)
        if record.conflict is Conflict.FAIL:
            files = (one.key for one in existing_files(ports, directory, record))
            found = next(chain(_at_directories(ports, directory, record), files), None)
            if found is not None:
                raise JobRefusedError(
                    f"the destination is not empty (found {found}) and conflict is 'fail'",
                    code="DESTINATION_NOT_EMPTY",
                )
        if record.conflict is Conflict.REPLACE:
            if record.undoes:
                undo = judge_undo(ports, spec, record)
                facts = write_replaced(ports, directory, undo.removes)
                facts = replace(facts, frees=undo.header.idempotency_key or "")
            else:
                facts = write_replaced(ports, directory, _replaced(ports, directory, record))
            record = ports.ledger.note(record, now=ports.clock.now(), replaced=facts)
    return ticket.after(record)


def _at_directories(ports: Ports, directory: JobDirectory, record: JobRecord) -> Iterator[str]:
    """The keys of objects that have the names of the directories that the files will be in.

    Readers take such an object for the table or the partition. Below a whole destination the
    listing of its files shows it as one of them. Requests: a listing for each directory.
    """
    root = directory.destination.prefix
    inside = read_partitions(ports, directory, record) if record.scope is Scope.PARTITION else ()
    names = {path for name in inside if name for path in (*directories_above(name), name)}
    keys = [root[:-1], *sorted(root + name[:-1] for name in names)]
    keys = list(filter(ports.serves, keys))  # a table may be all that the deployment serves
    for found in ports.parallel(partial(listed_at, ports.store, directory.bucket), keys):
        if found is not None:
            yield found.key


def _keys(ports: Ports, directory: JobDirectory, page: Unit) -> list[str]:
    """The keys of a page of the plan, in order."""
    return sorted([file.key for file in files_of_unit(ports.store, directory, page)])


def refuse_taken(ports: Ports, spec: JobSpec, record: JobRecord, few: list[list[str]]) -> None:
    """The job's own conditions hold, and no object has the key of one of its files (I5).

    So an object that has it after the decision is the job's, and a roll back may delete it. ``few``
    are the keys of a small plan, page by page. Raises `JobRefusedError`.
    """
    directory = JobDirectory.of(record)
    failed = spec.conditions.failed(record.planned.files, record.planned.rows)
    if failed:
        raise JobRefusedError(failed, code="CONDITION_FAILED")
    if record.planned.files > FILES_LOOKED_AT and not few:
        taken = _listed(ports, directory, record)
    else:
        pages: Iterable[list[str] | Unit] = few or whole_pages(
            read_index(ports.store, directory, record.planned.sha256)
        )
        taken = chain.from_iterable(ports.parallel(partial(_planned, ports, directory), pages))
    key = next(taken, None)
    if key is not None:
        raise JobRefusedError(
            f"{key[:200]!r} already exists with the name of a file of this job: write the data"
            " again with a new job ID",
            code="NAME_TAKEN",
        )


def _listed(ports: Ports, directory: JobDirectory, record: JobRecord) -> Iterator[str]:
    """As `_planned`, of all pages: few keys of a listing of the destination carry the job's id."""
    prefixes = (directory.destination.prefix,)
    named = {
        listed.key
        for listed in list_objects(ports, directory.bucket, prefixes)
        if owner_of(listed.key) == directory.job_id
    }
    files = planned_files(ports, directory, record) if named else ()
    return (file.key for file in files if file.key in named)


def _planned(ports: Ports, directory: JobDirectory, page: list[str] | Unit) -> list[str]:
    """The keys of a page of the plan that an object has.

    Requests: a GET for the page, unless its keys are given, and a listing; where a page of the
    listing does not reach as far as the files, a listing for each of the others.
    """
    keys = _keys(ports, directory, page) if isinstance(page, Unit) else page
    if not keys:
        return []
    prefix = directory.destination.prefix
    listing = ports.store.list(directory.bucket, prefix, after=keys[0][:-1])
    listed = [one.key for one in islice(listing, PAGE)]
    taken = set(keys).intersection(listed)
    if len(listed) == PAGE:
        unseen = keys[bisect_right(keys, listed[-1]) :]
        taken.update([key for key in unseen if listed_at(ports.store, directory.bucket, key)])
    return sorted(taken)


def _replaced(ports: Ports, directory: JobDirectory, record: JobRecord) -> Iterator[ListedObject]:
    """The files in the reach of the job that are of strangers, or of jobs that had ended (I6)."""
    appends, markers = Appends(ports, record), list[ListedObject]()
    root, is_any = len(directory.destination.prefix), False
    found = existing_files(ports, directory, record, wanted=goes_with_an_overwrite)
    for some in in_groups(found, LISTED_AT_ONCE):
        leave = appends.to_leave()
        for one in some:
            nodes = leave.get(owner_of(one.key) or "", ())
            if is_inner_marker(one.key[root:]):
                markers += [one] * (len(markers) < MOST_MARKERS)
            elif not f"{directory.bucket}/{one.key}".startswith(nodes):
                is_any = True
                yield one
    if markers and is_any:
        staying = chain.from_iterable(appends.to_leave().values())
        yield from markers_to_remove(ports, directory.bucket, markers, staying)
