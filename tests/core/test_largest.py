"""The largest documents that the codecs admit, on a ledger that refuses what DynamoDB refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from s3commit.core.formats import plan
from s3commit.core.formats.documents import (
    MAX_COLUMN_NAME,
    MAX_COLUMNS,
    MAX_JOB_BYTES,
    MAX_KEY_CHARACTERS,
    MAX_TEXT,
    decode_job,
)
from s3commit.core.formats.layout import (
    MAX_KEY_BYTES,
    MAX_PREFIX_BYTES,
    JobDirectory,
    parse_destination,
)
from s3commit.core.formats.plan import cut_units, encode_plan, unit_json
from s3commit.core.formats.strict_json import LONGEST_LINE, dump
from s3commit.core.job.record import new_record
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.job import Failure, JobSpec
from s3commit.core.model.limits import (
    MAX_NODE_BYTES,
    MAX_PARTITION_LOCKS,
    MAX_UNITS,
    UNIT_BYTES,
)
from s3commit.core.model.record import AttemptRecord, PlanFacts, ReplacedFacts, Stage, Turn
from s3commit.core.model.states import JobState
from tests.fakes.memory import MemoryLedger

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
    """The largest ``job.json`` that is read."""
    with pytest.raises(InvalidInputError):
        decode_job(a_document(MAX_TEXT + 1), DIRECTORY)
    body = a_document(MAX_TEXT)
    assert len(body) <= MAX_JOB_BYTES
    return decode_job(body, DIRECTORY)


def test_the_record_of_the_largest_job_fits_into_an_item_to_its_end() -> None:
    """DynamoDB takes 400 KB: a job whose record it refused could neither go on nor be ended."""
    spec, ledger = the_largest(), MemoryLedger()
    first = ledger.open_job(new_record(spec, DIRECTORY, NOW)).generation
    now = ledger.take_over(DIRECTORY.ref, generation=first, execution="e" * 300, now=NOW).generation
    ledger.advance(
        DIRECTORY.ref, source=JobState.OPEN, target=JobState.SEALED, generation=now, now=NOW
    )
    most = 2**63 - 1
    facts = PlanFacts(
        "a" * 64,
        units=4_000,
        files=most,
        bytes=most,
        rows=most,
        partitions="b" * 64,
    )
    most_nodes = MAX_PARTITION_LOCKS + 2  # the key, and the destination if they are escalated
    nodes = [f"{BUCKET}/{number}".ljust(MAX_NODE_BYTES, "n") for number in range(most_nodes)]
    replaced = ReplacedFacts("c" * 64, files=most, bytes=most)
    ledger.note(DIRECTORY.ref, generation=now, now=NOW, plan=facts, replaced=replaced)
    turn = Turn(Stage.ENTERING, NOW, 1)
    ledger.take_turn(DIRECTORY.ref, generation=now, before=Turn(), after=turn, locks=nodes, now=NOW)
    failure = Failure("C" * 100, WIDE * LONGEST_LINE)

    for source, target in (
        (JobState.SEALED, JobState.ABORTING),
        (JobState.ABORTING, JobState.ABORTED),
    ):
        ended = ledger.advance(
            DIRECTORY.ref, source=source, target=target, generation=now, now=NOW, failure=failure
        )

    assert ended.failure == failure
    assert ended.plan == facts


def test_an_attempt_at_the_longest_destination_fits_into_its_key() -> None:
    """DynamoDB's sort key has 1,024 bytes, and holds the task and the attempt."""
    ledger = MemoryLedger()
    attempt = AttemptRecord(
        DIRECTORY.ref,
        "t" * 64,
        "a" * 64,
        manifest=DIRECTORY.manifest("t" * 64, "a" * 64),
        sha256="c" * 64,
        files=1,
        bytes=1,
        rows=1,
    )

    ledger.record_attempts([attempt])

    assert list(ledger.attempts(DIRECTORY.ref)) == [attempt]
    assert len(attempt.manifest.encode()) <= MAX_KEY_BYTES


def test_a_unit_of_many_small_manifests_fits_into_the_input_of_its_worker() -> None:
    """Step Functions carries 256 KiB; a job of millions of files has many of them in a unit."""
    small = [
        (DIRECTORY.manifest_name(f"{number:064d}", "a" * 64), "c" * 64, [1])
        for number in range(10_000)
    ]
    large = [
        (DIRECTORY.manifest_name(f"z{number:063d}", "a" * 64), "c" * 64, [1] * 100_000)
        for number in range(60)
    ]
    total = len(small) + 60 * 100_000

    units = list(cut_units([*small, *large], total_files=total))

    assert sum(unit.files for unit in units) == total
    assert [unit.number for unit in units] == list(range(len(units)))
    assert len(units) <= MAX_UNITS
    assert max(len(dump(unit_json(unit))) for unit in units) <= UNIT_BYTES + 100


def test_a_plan_that_nobody_would_read_is_refused_before_the_decision(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    units = list(cut_units([("tasks/t/a.pendingset", "c" * 64, [1])], total_files=1))
    body = encode_plan(units)
    monkeypatch.setitem(plan._BOUNDS, "max_bytes", len(body) - 1)

    with pytest.raises(InvalidInputError) as caught:
        encode_plan(units)

    assert caught.value.code == "TOO_LARGE"
