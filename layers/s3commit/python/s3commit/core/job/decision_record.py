"""The decision record: that a job was decided, where no client can write it (I2, I8, I12).

It lies at ``_s3commit/<ref>/decision.json`` at the bucket's root. It is put after the ledger's
decision and before the first upload is completed, and tells how far the job has come since. The
rule that it stands for: a visible object is deleted only for a job with a decision on record, in
the ledger, or, where the ledger was lost, here (docs/adr/0019).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from s3commit.core.formats.documents import VERSION, choice
from s3commit.core.formats.layout import JobDirectory, check_job_id, parse_destination
from s3commit.core.formats.published import read_replaced
from s3commit.core.formats.strict_json import Fields, dump, members, parse
from s3commit.core.job.record import first_generation
from s3commit.core.model.errors import InvalidInputError, NotFoundError, PreconditionError
from s3commit.core.model.job import Conflict, Scope
from s3commit.core.model.record import JobRecord, PlanFacts
from s3commit.core.model.states import ENDED, JobState
from s3commit.core.ports.bundle import Ports

MAX_DECISION_BYTES = 64 * 1024

# Fields of a record that mean something in the ledger alone; ``jobDigest`` is in the document.
_LEDGERS_OWN = (
    *("generation", "created_at", "updated_at", "execution"),
    *("locks", "turn", "failure", "job_sha256"),
)

DECIDED = frozenset(
    {JobState.COMMITTING, JobState.PUBLISHING, JobState.COMMITTED, JobState.ROLLED_BACK}
)


def put_decision(ports: Ports, record: JobRecord) -> None:
    """Put the record of a job in COMMITTING; one that is there stays."""
    directory = JobDirectory.of(record)
    with suppress(PreconditionError):  # an earlier try, or execution, has put it
        body = _encode(record, JobState.COMMITTING)
        ports.store.put(directory.bucket, directory.decision, body, if_absent=True)


def note_publishing(ports: Ports, record: JobRecord) -> None:
    """Say that all files are visible: from here on nothing leads back, whatever the ledger forgets.

    Conditional on the record that was read: a late waker must not set an ended job back.
    """
    directory = JobDirectory.of(record)
    try:
        stored = ports.store.get(directory.bucket, directory.decision, max_bytes=MAX_DECISION_BYTES)
    except NotFoundError:
        return  # the job has ended and its documents are gone
    if _decode(stored.body, directory).state is not JobState.COMMITTING:
        return
    with suppress(PreconditionError, NotFoundError):
        body = _encode(record, JobState.PUBLISHING)
        ports.store.put(directory.bucket, directory.decision, body, if_match=stored.facts.etag)


def note_end(ports: Ports, record: JobRecord) -> None:
    """Say how a decided job has ended. It stays as long as the job's documents do."""
    if record.decided_at is None:
        return
    directory = JobDirectory.of(record)
    ports.store.put(directory.bucket, directory.decision, _encode(record, record.state))


def read_decision(ports: Ports, directory: JobDirectory) -> JobRecord | None:
    """The job's record as its decision has it, under a new generation; None if there is none.

    Raises `InvalidInputError` if somebody with rights to the whole bucket has spoilt it.
    """
    try:
        stored = ports.store.get(directory.bucket, directory.decision, max_bytes=MAX_DECISION_BYTES)
    except NotFoundError:
        return None
    now = ports.clock.now()
    found = _decode(stored.body, directory)
    return replace(found, generation=first_generation(now), created_at=now, updated_at=now)


def is_recovered(record: JobRecord) -> bool:
    """Whether the ledger's record was made again from the decision record."""
    return record.decided_at is not None and record.created_at > record.decided_at


def _encode(record: JobRecord, state: JobState) -> bytes:
    plan, replaced = record.plan, record.replaced
    if plan is None or record.decided_at is None:
        raise InvalidInputError(f"job {record.job_id} is not decided", code="NOT_DECIDED")
    document = {
        "version": VERSION,
        **members(record, *_LEDGERS_OWN),
        "destination": record.destination.uri,
        "state": state,
        "jobDigest": record.job_sha256,
        "finishedAt": record.finished_at if state in ENDED else None,
        "plan": members(plan),
        "replaced": replaced and members(replaced),
    }
    return dump(document)


def _decode(body: bytes, directory: JobDirectory) -> JobRecord:
    fields = Fields(parse(body, what="decision.json", max_bytes=MAX_DECISION_BYTES), "$")
    fields.version(VERSION)
    job_id = check_job_id(fields.text("jobId", longest=80))
    destination = parse_destination(fields.text("destination"))
    if (job_id, destination) != (directory.job_id, directory.destination):
        raise InvalidInputError(f"{directory.decision} is of another job", code="WRONG_JOB")
    return JobRecord(
        job_id=job_id,
        destination=destination,
        state=_state(fields),
        generation=0,
        created_at="",
        updated_at="",
        conflict=choice(Conflict, fields.text("conflict"), "conflict"),
        scope=choice(Scope, fields.text("scope"), "scope"),
        partition_by=fields.texts("partitionBy", most=100),
        idempotency_key=fields.optional_text("idempotencyKey"),
        job_sha256=fields.optional_text("jobDigest", longest=64),
        opened_at=fields.text("openedAt", longest=64),
        decided_at=fields.text("decidedAt", longest=64),
        finished_at=fields.optional_text("finishedAt", longest=64),
        plan=_plan(Fields(fields.mapping("plan"), "$.plan")),
        replaced=read_replaced(fields),
    )


def _state(fields: Fields) -> JobState:
    state = choice(JobState, fields.text("state"), "state")
    if state not in DECIDED:
        raise InvalidInputError(f"decision.json has state {state}", code="BAD_FIELD")
    return state


def _plan(fields: Fields) -> PlanFacts:
    return PlanFacts(
        sha256=fields.text("sha256", longest=64),
        units=fields.integer("units"),
        files=fields.integer("files"),
        bytes=fields.integer("bytes"),
        rows=fields.optional_integer("rows"),
        partitions=fields.text("partitions", "", longest=64),
    )
