"""The largest documents that the codecs admit, on a ledger that refuses what DynamoDB refuses."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

import pytest

from s3commit.core.commit import verify_manifests
from s3commit.core.commit.complete_unit import complete_unit
from s3commit.core.documents.commit_manifest import (
    MAX_LINE_BYTES,
    SUCCESS_FILES,
    commit_lines,
    decode_commit_header,
    header_of,
    listed_bytes,
    read_commit_manifest,
)
from s3commit.core.documents.decision_json import put_decision, read_decision
from s3commit.core.documents.job_json import (
    JOB_JSON,
    MAX_COLUMNS,
    MAX_JOB_BYTES,
    MAX_KEY_CHARACTERS,
    MAX_NOTE,
    JobSpec,
    decode_job,
)
from s3commit.core.documents.pages import read_index
from s3commit.core.documents.pendingset import MAX_ROWS
from s3commit.core.documents.ticket import UNIT_RESULT, Ticket
from s3commit.core.formats.layout import MAX_PREFIX_BYTES, JobDirectory, parse_destination
from s3commit.core.formats.strict_json import LONGEST_LINE, TOO_LARGE, dump
from s3commit.core.jobs.record import new_record
from s3commit.core.model import limits
from s3commit.core.model.checks import MAX_COLUMN_NAME
from s3commit.core.model.destination import Conflict, Scope
from s3commit.core.model.errors import InvalidInputError, JobRefusedError
from s3commit.core.model.fields import Whole
from s3commit.core.model.outcome import MAX_TEXT, Failure, Outcome
from s3commit.core.model.record import PlanFacts, ReplacedFacts, Waits
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports
from tests.core.test_checks import LONGEST_VERDICT
from tests.core.world import BUCKET as BUCKET_OF_WORLD
from tests.core.world import JOB, World, job_directory
from tests.fakes.memory import ManualClock, MemoryLedger, MemoryObjectStore

BUCKET = "b" * 63
DIRECTORY = JobDirectory(parse_destination(f"s3://{BUCKET}/{'d' * MAX_PREFIX_BYTES}"), JOB)
NOW = "2026-11-21T22:00:00.000Z"
WIDE = "\U00020000"  # four bytes, and printable


def name(number: int, characters: int) -> str:
    return f"{number:03d}".ljust(characters, WIDE)


def a_document(directory: JobDirectory, columns: Sequence[str], **said: object) -> bytes:
    """A ``_job.json`` with these columns."""
    document = {
        "version": 1,
        "jobId": JOB,
        "destination": directory.destination.uri,
        "conflict": Conflict.REPLACE,
        "scope": Scope.PARTITION,
        "partitionBy": columns,
        **said,
    }
    return dump(document)


def the_largest() -> JobSpec:
    """The largest ``_job.json`` that is read: every field as large as it may be."""
    columns = [name(number, MAX_COLUMN_NAME) for number in range(MAX_COLUMNS)]
    said = {"idempotencyKey": WIDE * MAX_KEY_CHARACTERS, "note": WIDE * MAX_NOTE}
    labels = [f"{name:x<64}={WIDE * 256}" for name in "abcdefghij"]
    largest = partial(a_document, DIRECTORY, columns, labels=labels, **said)
    with pytest.raises(InvalidInputError):
        decode_job(largest(client=WIDE * (MAX_TEXT + 1)), DIRECTORY)
    body = largest(client=WIDE * MAX_TEXT)
    assert len(body) <= MAX_JOB_BYTES
    return decode_job(body, DIRECTORY)


def test_the_record_of_the_largest_job_fits_into_an_item_to_its_end() -> None:
    """DynamoDB takes 400 KB: a job whose record it refused could neither go on nor be ended."""
    spec, ledger = the_largest(), MemoryLedger()
    record = ledger.open_job(new_record(spec, DIRECTORY, NOW))
    record = ledger.take_over(record, execution="e" * 300, now=NOW)
    record = ledger.advance(record, JobState.SEALED, now=NOW)
    most = 2**63 - 1
    longest = WIDE * LONGEST_VERDICT
    facts = PlanFacts("a" * 64, 4_000, most, most, most, "b" * 64, "d" * 64, longest)
    nodes = tuple(
        f"{BUCKET}/{n}".ljust(limits.MAX_NODE_BYTES - 1, "n") + "/" for n in range(limits.MAX_NODES)
    )
    replaced = ReplacedFacts("c" * 64, files=most, bytes=most)
    ledger.note(record, now=NOW, plan=facts, replaced=replaced)
    waits = Waits(NOW, (DIRECTORY.ref,) * limits.MAX_NAMED)
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
        plan=PlanFacts("a" * 64, 4_000, most, most, most, "b" * 64, "d" * 64),
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


# Texts as long as they may be, of characters that count for more than one in some document.
FILLERS = {"comma": ",", "bracket": "[", "brace": "{", "quote": '"', "slash": "\\", "wide": WIDE}
PARTITION = 800  # bytes of a partition's name


def the_fullest(filler: str, conflict: Conflict, scope: Scope) -> bytes:
    """A ``_job.json`` of few members, with as many columns as are read, and one that fills it."""
    directory = job_directory()
    columns = [f"{number:03d}".ljust(MAX_COLUMN_NAME, filler) for number in range(MAX_COLUMNS)]

    key = filler * MAX_KEY_CHARACTERS

    def document(*columns: str) -> bytes:
        said = {"conflict": conflict, "scope": scope, "idempotencyKey": key}
        return a_document(directory, columns, **said)

    def is_read(*columns: str) -> bool:
        with suppress(InvalidInputError):
            return bool(decode_job(document(*columns), directory))
        return False

    most = next(n for n in range(MAX_COLUMNS, 0, -1) if is_read(*columns[:n]))
    last = next(
        (n for n in range(MAX_COLUMN_NAME, 0, -1) if is_read(*columns[:most], filler * n)), 0
    )
    return document(*columns[:most], *[filler * last][: bool(last)])


@pytest.mark.parametrize("scope", Scope)
@pytest.mark.parametrize("conflict", Conflict)
@pytest.mark.parametrize("filler", FILLERS.values(), ids=FILLERS)
@pytest.mark.parametrize("full", [False, True], ids=["its partitions", "its _job.json too"])
def test_i2_i12_a_job_whose_texts_are_as_long_as_they_may_be_ends(
    full: bool, filler: str, conflict: Conflict, scope: Scope
) -> None:
    """Behind the decision nothing that was too long could be mended, and the locks would stay."""
    world, directory = World(), job_directory()
    plain = JobSpec(JOB, directory.destination, conflict=conflict, scope=scope)
    body = the_fullest(filler, conflict, scope) if full else JOB_JSON.encode(plain)
    world.store.put(BUCKET_OF_WORLD, directory.job, body)
    name = filler * (PARTITION // len(filler.encode()))
    files = {f"{n:02d}{name}/part-t0-{JOB}.csv": b"x" for n in range(limits.MAX_NODES)}
    world.request(directory, world.attempt(directory, "t0", files=files))
    world.run(directory)
    # A header of as many signs as _job.json may have, and some more, is one that nobody reads.
    is_refused = full and filler in ",[{"
    ended = (Outcome.ABORTED, TOO_LARGE) if is_refused else (Outcome.COMMITTED, "")
    assert world.ended(directory) == ended
    assert world.ledger.holders == set()
    if not is_refused:
        header, listed = read_commit_manifest(world.store, directory)
        assert header.partition_by == decode_job(body, directory).partition_by
        assert len(listed) == len(files)
        decided = read_decision(world.ports, BUCKET_OF_WORLD, directory.decision)
        assert decided is not None
        assert len(decided.locks) in {0, 1, limits.MAX_NODES}


def test_i2_a_job_whose_list_would_be_too_long_to_be_read_is_refused_before_its_decision(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keys = [f"{n}{filler}/part-t0-{JOB}.csv" for n, filler in enumerate('",\\a語')]
    for more, outcome in ((0, Outcome.COMMITTED), (-1, Outcome.ABORTED)):
        world, directory = World(), job_directory()
        counted = world.attempt(directory, "t0", files=dict.fromkeys(keys, b"x"))
        least = sum(listed_bytes(directory.destination.prefix + key) for key in keys)
        monkeypatch.setattr(verify_manifests, "MAX_COMMITS_BYTES", MAX_LINE_BYTES + least + more)
        world.request(directory, counted)
        world.run(directory)
        assert world.result(directory).outcome is outcome
        if outcome is Outcome.COMMITTED:
            body = world.store.get(BUCKET_OF_WORLD, directory.commits, max_bytes=10**6).body
            assert len(body) <= MAX_LINE_BYTES + least
            longest = [len(line) + 1 for line in body.splitlines()[1:]]
            assert sum(longest) <= least <= sum(longest) + 100 * len(keys)
        else:
            assert world.failure(directory).code == TOO_LARGE
            assert " bytes of the list of its files: " in world.failure(directory).message


def test_i2_a_marker_of_the_longest_names_is_put_again_by_a_repetition() -> None:
    """It counts for more values than a marker is read with."""
    world, directory = World(), job_directory()
    name = "," * PARTITION
    files = {f"{n:02d}{name}/part-t0-{JOB}.csv": b"x" for n in range(SUCCESS_FILES + 1)}
    world.request(directory, world.attempt(directory, "t0", files=files))
    world.plan.crash_after("put", where=lambda call: call.key == directory.success)
    world.dies(directory)
    world.run(directory, "execution-2")
    assert world.ended(directory) == (Outcome.COMMITTED, "")
    assert len(world.json(directory.success)["filenames"]) == SUCCESS_FILES


def test_i2_the_results_of_all_units_fit_into_a_state_however_many_files_are_lost() -> None:
    """Step Functions takes 256 KiB; behind the decision a larger one would fail for ever."""
    world, directory = World(), job_directory()
    world.ask(directory)
    world.plan.crash_after("decide")
    world.dies(directory)
    record = world.record(directory)
    [unit] = read_index(world.store, directory, record.planned.sha256)
    ticket = Ticket(JOB, BUCKET_OF_WORLD, directory.prefix, generation=record.generation)
    words = JobRefusedError("x" * 9_999, code="PARTS_MISMATCH")
    world.plan.fail("complete_upload", words, times=None)
    for units in (1, 150, 1_000, limits.MAX_UNITS):
        world.ledger.write(record.ref, replace(record, plan=replace(record.planned, units=units)))
        lost = complete_unit(world.ports, ticket, unit)
        assert lost.why.startswith("PARTS_MISMATCH")
        lost = replace(lost, lost=limits.MAX_JOB_FILES // limits.MAX_UNITS)
        results = [UNIT_RESULT.write(replace(lost, unit=n)) for n in range(units)]
        assert len(dump(results)) < 250_000


def test_i12_the_counts_of_the_largest_job_are_numbers_that_every_reader_takes() -> None:
    """Else its record, once written, would stop all who list the ledger."""
    assert limits.MAX_JOB_FILES * MAX_ROWS <= limits.MAX_TOTAL_BYTES == Whole().most
