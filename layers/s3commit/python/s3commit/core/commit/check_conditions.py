"""CheckConditions: conditions and policy against what is at the destination."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Final

from s3commit.core.documents.job_json import refuse_changed
from s3commit.core.documents.pages import in_groups
from s3commit.core.documents.replace_list import write_replaced
from s3commit.core.documents.ticket import Ticket
from s3commit.core.formats.layout import (
    JobDirectory,
    directories_above,
    goes_with_an_overwrite,
    is_inner_marker,
    owner_of,
)
from s3commit.core.jobs.guards import (
    known_partitions,
    known_spec,
    planned_record,
    refusing_unreadable,
    unless_overtaken,
)
from s3commit.core.jobs.names_free import taken_name
from s3commit.core.jobs.replaced import MOST_MARKERS, Appends, existing_files, markers_to_remove
from s3commit.core.model.destination import Conflict
from s3commit.core.model.errors import JobRefusedError
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports, S3Ports
from s3commit.core.ports.objects import ListedObject, listed_at
from s3commit.core.ports.parallel import together
from s3commit.core.undo.job import judge_undo

LISTED_AT_ONCE: Final = 10_000  # files, between two readings of the appends beside the job


def check_conditions(ports: Ports, ticket: Ticket) -> Ticket:
    """Judge the job's conditions and its policy against what is at the destination.

    Under the job's locks, so that no other job replaces there until it has ended. Writes the
    replace list of a job that replaces. Raises `JobRefusedError` with the figure that failed it.
    """
    directory = ticket.directory
    with unless_overtaken(ports, ticket, JobState.SEALED):
        with refusing_unreadable(ports, directory):
            record, spec = together(
                ports.parallel,
                partial(planned_record, ports, ticket, JobState.SEALED, JobState.COMMITTING),
                partial(known_spec, ports, ticket),
            )
        if record.state is JobState.COMMITTING:  # by a twin, which continues
            return ticket.after(record)
        refuse_changed(spec, record)
        failed = spec.conditions.failed(record.planned.files, record.planned.rows)
        if failed:
            raise JobRefusedError(failed, code="CONDITION_FAILED")
        if record.planned.failed_check:
            raise JobRefusedError(record.planned.failed_check, code="CHECK_FAILED")
        _refuse_taken(ports, ticket, record)
        if record.conflict is Conflict.FAIL:
            inside = known_partitions(ports, ticket, record)
            files = (one.key for one in existing_files(ports, record, inside))
            found = next(chain(_at_directories(ports, directory, inside), files), None)
            if found is not None:
                raise JobRefusedError(
                    f"the destination is not empty (found {found}) and conflict is 'fail'",
                    code="DESTINATION_NOT_EMPTY",
                )
        if record.conflict is Conflict.REPLACE:
            if record.undoes:
                undo = judge_undo(ports, spec, record)
                facts = write_replaced(ports, directory, undo.removes)
                facts = replace(
                    facts,
                    frees=undo.header.idempotency_key or "",
                    restores_all=not (spec.leave_removed and undo.may_restore),
                )
            else:
                facts = write_replaced(ports, directory, _replaced(ports, ticket, record))
            record = ports.ledger.note(record, now=ports.clock.now(), replaced=facts)
    return ticket.after(record)


def _at_directories(
    ports: S3Ports, directory: JobDirectory, inside: Iterable[str]
) -> Iterator[str]:
    """The keys of objects that have the names of the directories that the files will be in.

    Readers take such an object for the table or the partition. Below a whole destination the
    listing of its files shows it as one of them. Requests: a listing for each directory.
    """
    root = directory.destination.prefix
    names = {path for name in inside if name for path in (*directories_above(name), name)}
    keys = [root[:-1], *sorted(root + name[:-1] for name in names)]
    keys = list(filter(ports.serves, keys))  # a table may be all that the deployment serves
    for found in ports.parallel(partial(listed_at, ports.store, directory.bucket), keys):
        if found is not None:
            yield found.key


def _refuse_taken(ports: S3Ports, ticket: Ticket, record: JobRecord) -> None:
    """No object has the key of one of the job's files (I5).

    So an object that has it after the decision is the job's, and a roll back may delete it.
    """
    known = ticket.known
    key = taken_name(ports, record, known.keys) if known.taken is None else known.taken
    if key:
        raise JobRefusedError(
            f"{key[:200]!r} already exists with the name of a file of this job: write the data"
            " again with a new job ID",
            code="NAME_TAKEN",
        )


def _replaced(ports: Ports, ticket: Ticket, record: JobRecord) -> Iterator[ListedObject]:
    """The files in the reach of the job that are of strangers, or of jobs that had ended (I6)."""
    appends, markers = Appends(ports, record), list[ListedObject]()
    directory, is_any = ticket.directory, False
    root, inside = len(directory.destination.prefix), known_partitions(ports, ticket, record)
    found = existing_files(ports, record, inside, wanted=goes_with_an_overwrite)
    for some in in_groups(found, LISTED_AT_ONCE):
        leave = appends.to_leave()
        for one in some:
            nodes = leave.get(owner_of(one.key) or "", ())
            if is_inner_marker(one.key[root:]):
                if len(markers) < MOST_MARKERS:
                    markers.append(one)
            elif not f"{directory.bucket}/{one.key}".startswith(nodes):
                is_any = True
                yield one
    if markers and is_any:
        staying = chain.from_iterable(appends.to_leave().values())
        yield from markers_to_remove(ports, directory.bucket, markers, staying)
