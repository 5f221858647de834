"""CompleteUnit: a worker makes the files of one unit visible, after the decision."""

from __future__ import annotations

from s3commit.core.formats.plan import Unit
from s3commit.core.formats.ticket import Ticket, UnitResult
from s3commit.core.job.decision_record import is_recovered
from s3commit.core.job.plan import readable_files
from s3commit.core.job.record import own_record
from s3commit.core.model.errors import (
    CONFLICT,
    JobRefusedError,
    PreconditionError,
    TransientError,
    UploadGoneError,
)
from s3commit.core.model.job import Names
from s3commit.core.model.pending import PendingFile
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import JobState
from s3commit.core.ownership.identity import ObjectOwner, described, is_in_doubt, is_ours
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.ledger import LostRaceError
from s3commit.core.ports.objects import ObjectFacts

IN_DOUBT_SHOWN = 40_000  # characters of all units: what they say has to fit into 256 KiB


def complete_unit(ports: Ports, ticket: Ticket, unit: Unit) -> UnitResult:
    """Complete every upload of the unit, and say how many files are visible or lost for good.

    A file of which nobody can tell is named in the result, and BeginPublish stops the job.

    A unit that a worker has completed before, by the ledger, is not looked at again: when one unit
    fails the Map, the next round of it works on those that are left (docs/adr/0005).

    Repeating it is harmless. The job's state and generation are asked first, so that nothing is
    completed before the decision (I1) or during a roll back; a worker that stalls right after
    asking is fenced by the uploads themselves, which a roll back aborts before it deletes.
    A worker of an execution that was overtaken completes nothing and says so: BeginPublish then
    finds out by the ledger. Raises `TransientError` (try the unit again).
    """
    try:
        record = own_record(ports, ticket, JobState.COMMITTING)
    except LostRaceError:
        return UnitResult(unit.number, files=0, lost=0)
    began = ports.ledger.begin_unit(ticket.ref, unit.number)
    plan = record.plan.sha256 if record.plan else ""
    recovered = is_recovered(record)  # a lost ledger has lost the notes of units too, or some
    if not began and not recovered and ports.ledger.unit_ended(ticket.ref, unit.number, plan):
        return UnitResult(unit.number, files=unit.files, lost=0)
    first_time = began and not recovered

    def complete(file: PendingFile) -> tuple[ObjectOwner, str]:
        new = _must_be_new(record)
        return complete_file(ports, file, look=not first_time, if_absent=new), described(file)

    # After the decision a manifest that is gone or changed means that nobody knows the etags any
    # more: its files count as lost, and BeginPublish rolls back.
    files = readable_files(ports, ticket.directory, record, [unit])
    done = list(ports.parallel(complete, files))
    visible = sum(found is ObjectOwner.OURS for found, _ in done)
    if visible == unit.files:
        ports.ledger.end_unit(ticket.ref, unit.number, plan)
    doubted = sorted(text for found, text in done if found is ObjectOwner.UNKNOWN)
    return UnitResult(
        unit.number,
        files=visible,
        lost=unit.files - visible - len(doubted),
        in_doubt=_shown(record, doubted[0]) if doubted else "",
    )


def _shown(record: JobRecord, text: str) -> str:
    """The end of the text, as much as each unit of the job may say."""
    units = record.plan.units if record.plan else 0
    return text[-(IN_DOUBT_SHOWN // max(units, 200)) :]


def _must_be_new(record: JobRecord) -> bool:
    """Names unique to the job are new; an exact one must be, unless it may cover another (I2)."""
    covers = record.replaced is not None and record.replaced.overwrites
    return record.names is Names.EXACT and not covers


def complete_file(
    ports: Ports, file: PendingFile, *, look: bool, if_absent: bool = False
) -> ObjectOwner:
    """Complete one upload; OURS if the file is visible, ANOTHERS if it never can be.

    With ``look`` the object is inspected even if S3 says 200: the answer to a repeated completion
    does not prove that the object is there now; but its etag is that of what the upload became.
    With ``if_absent`` a key that exists is not covered; S3's refusal is final, the parts would have
    to be sent again. UNKNOWN if the upload is gone and nothing tells whose the object is.
    """
    made: ObjectFacts | None = None
    refused = ""
    try:
        made = ports.store.complete_upload(
            file.bucket,
            file.key,
            file.upload_id,
            file.etags,
            length=file.length,
            if_absent=if_absent,
        )
        if not look:
            return ObjectOwner.OURS
    except (UploadGoneError, PreconditionError, JobRefusedError) as error:
        refused = error.code  # completed before, by us, with the response lost? the object tells
    facts = ports.store.head(file.bucket, file.key)
    if facts is None and refused == CONFLICT:
        # S3 answers 409 to one of two that complete at once, before the other one's is there.
        raise TransientError(f"another request completes the upload of {file.key}")
    if made is not None and facts is not None and facts.etag == made.etag:
        return ObjectOwner.OURS
    if is_in_doubt(ports.store, file, facts):
        return ObjectOwner.UNKNOWN
    return ObjectOwner.OURS if is_ours(file, facts) else ObjectOwner.FOREIGN
