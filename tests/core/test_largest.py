"""The largest documents that the codecs admit, on a ledger that refuses what DynamoDB refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from s3commit.core.formats.documents import (
    MAX_JOB_BYTES,
    commit_lines,
    decode_commit_header,
    decode_job,
    header_of,
)
from s3commit.core.formats.layout import (
    MAX_PREFIX_BYTES,
    JobDirectory,
    parse_destination,
)
from s3commit.core.formats.strict_json import LONGEST_LINE
from s3commit.core.job.decision_record import put_decision, read_decision
from s3commit.core.job.record import new_record
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.fields import Whole
from s3commit.core.model.job import (
    MAX_COLUMN_NAME,
    MAX_COLUMNS,
    MAX_KEY_CHARACTERS,
    MAX_ROWS,
    MAX_TEXT,
    Failure,
    JobSpec,
)
from s3commit.core.model.limits import (
    MAX_JOB_FILES,
    MAX_NAMED,
    MAX_NODE_BYTES,
    MAX_NODES,
    MAX_TOTAL_BYTES,
)
from s3commit.core.model.record import PlanFacts, ReplacedFacts, Waits
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports
from tests.fakes.memory import ManualClock, MemoryLedger, MemoryObjectStore

JOB = "0b5a2c36-8f57-4b8c-9f5e-1d0d7c1f9a42"
BUCKET = "b" * 63
DIRECTORY = JobDirectory(parse_destination(f"s3://{BUCKET}/{'d' * MAX_PREFIX_BYTES}"), JOB)
NOW = "2026-11-21T22:00:00.000Z"
WIDE = "\U00020000"  # four bytes, and printable


def name(number: int, characters: int) -> str:
    return f"{number:03d}".ljust(characters, WIDE)


def a_document(client_characters: int) -> bytes:
    """Every field as large as it may be; of the client's name as much as is asked for."""
    columns = [name(number, MAX_COLUMN_NAME) for number in range(MAX_COLUMNS)]
    document: dict[str, Any] = {
        "version": 1,
        "jobId": JOB,
        "destination": DIRECTORY.destination.uri,
        "conflict": "replace",
        "scope": "partition",
        "partitionBy": columns,
        "idempotencyKey": WIDE * MAX_KEY_CHARACTERS,
        "client": WIDE * client_characters,
    }
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def the_largest() -> JobSpec:
    """The largest ``_job.json`` that is read."""
    with pytest.raises(InvalidInputError):
        decode_job(a_document(MAX_TEXT + 1), DIRECTORY)
    body = a_document(MAX_TEXT)
    assert len(body) <= MAX_JOB_BYTES
    return decode_job(body, DIRECTORY)


def test_the_record_of_the_largest_job_fits_into_an_item_to_its_end() -> None:
    """DynamoDB takes 400 KB: a job whose record it refused could neither go on nor be ended."""
    spec, ledger = the_largest(), MemoryLedger()
    record = ledger.open_job(new_record(spec, DIRECTORY, NOW))
    record = ledger.take_over(record, execution="e" * 300, now=NOW)
    record = ledger.advance(record, JobState.SEALED, now=NOW)
    most = 2**63 - 1
    facts = PlanFacts(
        "a" * 64,
        units=4_000,
        files=most,
        bytes=most,
        rows=most,
        partitions="b" * 64,
    )
    nodes = tuple(f"{BUCKET}/{n}".ljust(MAX_NODE_BYTES - 1, "n") + "/" for n in range(MAX_NODES))
    replaced = ReplacedFacts("c" * 64, files=most, bytes=most)
    ledger.note(record, now=NOW, plan=facts, replaced=replaced)
    waits = Waits(NOW, (DIRECTORY.ref,) * MAX_NAMED)
    ledger.note(record, now=NOW, waits=waits)
    ledger.lock(record, nodes, now=NOW)
    failure = Failure("C" * 100, WIDE * LONGEST_LINE)

    for target in (JobState.ABORTING, JobState.ABORTED):
        record = ledger.advance(record, target, now=NOW, failure=failure)

    assert record.failure == failure
    assert record.plan == facts


def test_i8_i12_what_is_written_of_the_largest_decided_job_is_read_again() -> None:
    """A decision record that nobody can read stops the healing of the whole bucket."""
    store, clock = MemoryObjectStore(BUCKET), ManualClock()
    most = 2**63 - 1
    record = replace(
        new_record(the_largest(), DIRECTORY, NOW),
        state=JobState.COMMITTING,
        decided_at=NOW,
        plan=PlanFacts("a" * 64, 4_000, most, most, most, "b" * 64),
        replaced=ReplacedFacts("c" * 64, files=most, bytes=most),
    )
    ports = Ports(store, MemoryLedger(), clock)
    put_decision(ports, record)
    found = read_decision(ports, DIRECTORY.bucket, DIRECTORY.decision)
    assert found is not None
    assert (found.plan, found.partition_by) == (record.plan, record.partition_by)
    header = header_of(record)
    (line,) = commit_lines(header, ())
    assert decode_commit_header(line, DIRECTORY) == header


def test_i12_the_counts_of_the_largest_job_are_numbers_that_every_reader_takes() -> None:
    """Else its record, once written, would stop all who list the ledger."""
    assert MAX_JOB_FILES * MAX_ROWS <= MAX_TOTAL_BYTES == Whole().most
