"""Benchmark 7: the ledger with many jobs in it, on moto, by the adapter that is deployed.

moto's time is not DynamoDB's, so the ratios count: a job among a thousand others beside one that is
alone, and a pass of the sweep behind many ended jobs beside one behind few. What AWS would charge
and allow is computed in tests/aws/test_units.py.
"""

import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final
from unittest.mock import patch

import boto3
from moto import mock_aws

from bench.figures import Figure, Sample
from s3commit.aws import env
from s3commit.aws.clients import make_client
from s3commit.aws.clock import SystemClock
from s3commit.aws.ledger import DynamoLedger
from s3commit.aws.ledger_items import bind
from s3commit.aws.s3 import S3ObjectStore
from s3commit.core.commit.acquire_destination import acquire_destination
from s3commit.core.documents.ticket import Ticket
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.destination import Conflict, Destination
from s3commit.core.model.locks import destination_node
from s3commit.core.model.moments import shifted
from s3commit.core.model.record import JobRecord, PlanFacts
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports
from s3commit.core.sweep.questions import run_sweep
from s3commit.core.sweep.sweep import DAY, HOUR, Limits, Sweep
from tests.fakes.executions import MemoryExecutions

REGION: Final = "eu-central-1"
BUCKET: Final = "bench"
TABLE: Final = "ledger"
HOLDERS: Final = 1_000
REPLACES: Final = 100
ENDED: Final = (10, 500)
LOCKS_GOAL: Final = 1.25
PASS_GOAL: Final = 1.1


def ledger(
    say: Callable[[str], None],
    *,
    holders: int = HOLDERS,
    replaces: int = REPLACES,
    ended: tuple[int, int] = ENDED,
) -> list[Figure]:
    """The locks of a replace below a crowded directory, and a pass of the sweep."""
    with _moto() as ports:
        figures = [_locks(ports, holders, replaces)]
        say(f"ledger: {replaces} replaces among {holders} holders")
        figures.append(_sweep(ports, *ended))
        say(f"ledger: a pass behind {ended[1]} jobs that have ended")
    return figures


def _locks(ports: Ports, holders: int, replaces: int) -> Figure:
    """Looking, locking, and giving it all back."""
    for number in range(holders):
        record = _record(f"warehouse/sales.db/t{number}/", JobState.SEALED, ports.clock.now())
        node = destination_node(record.destination)
        ports.ledger.open_job(replace(record, conflict=Conflict.REPLACE, locks=(node,)))
    taken: dict[str, list[float]] = {"warehouse/": [], "alone/": []}
    for number in range(replaces + 1):
        for root, times in taken.items():
            start = time.perf_counter()
            locked = _lock(ports, f"{root}sales.db/own/")
            ports.ledger.advance(locked, JobState.ABORTING, now=ports.clock.now())
            if number:  # the first one is warm-up
                times.append(time.perf_counter() - start)
    return Figure(
        "locks on moto",
        f"locks of a replace among {holders} below one directory",
        "s",
        Sample(tuple(taken["warehouse/"])),
        "the same replace alone",
        Sample(tuple(taken["alone/"])),
        goal=LOCKS_GOAL,
    )


def _lock(ports: Ports, prefix: str) -> JobRecord:
    """A new job that replaces what is there, and has its locks."""
    record = _record(prefix, JobState.SEALED, ports.clock.now())
    record = ports.ledger.open_job(replace(record, conflict=Conflict.REPLACE))
    directory = JobDirectory.of(record)
    ticket = Ticket(record.job_id, BUCKET, directory.prefix, execution="bench").after(record)
    assert acquire_destination(ports, ticket).acquired
    held = ports.ledger.job(record.ref)
    assert held is not None and held.locks
    return held


def _sweep(ports: Ports, few: int, many: int) -> Figure:
    """Requests of a pass to DynamoDB: behind many jobs that ended long ago, and behind few."""
    made = {count: _requests(ports, count) for count in (few, many)}
    return Figure(
        "the sweep on moto",
        f"requests to DynamoDB of a sweep, {many} jobs ended three days ago",
        "requests",
        Sample((made[many],)),
        f"{few} jobs ended then",
        Sample((made[few],)),
        goal=PASS_GOAL,
    )


def _requests(ports: Ports, ended: int) -> int:
    """Of a pass as if in three days: what lies in the bucket was put now."""
    now = ports.clock.now()
    in_three_days = shifted(now, 3 * DAY)
    table = f"{TABLE}-{ended}"
    ledger = _make_ledger(table)
    ports = replace(ports, ledger=ledger)
    for number in range(ended + 1):  # and one that has just ended, which leads the sweep there
        moment = now if number else shifted(in_three_days, -HOUR)
        record = _record(f"{table}/", JobState.COMMITTED, moment)
        ledger.open_job(record)
        directory = JobDirectory.of(record)
        for key in (directory.job, directory.request, directory.result):
            ports.store.put(BUCKET, key, b"{}")
    made: list[str] = []
    client = ledger._items.job._get_connection().connection.client
    client.meta.events.register("before-call", lambda model, **_: made.append(model.name))
    report = run_sweep(
        Sweep(ports, MemoryExecutions(), Limits.of(env.SWEEP_LIMITS), now=in_three_days)
    )
    assert (report.visited, report.failed) == (1, 0), report  # the destination
    return len(made)


def _record(prefix: str, state: JobState, now: str) -> JobRecord:
    record = JobRecord(
        str(uuid.uuid4()),
        Destination(BUCKET, prefix),
        state,
        1,
        now,
        now,
        plan=PlanFacts("0" * 64, 1, 1, 1, 1),
    )
    return replace(record, finished_at=now) if state is JobState.COMMITTED else record


def _make_ledger(table: str) -> DynamoLedger:
    bind(table).job.create_table(billing_mode="PAY_PER_REQUEST")
    return DynamoLedger(table)


@contextmanager
def _moto() -> Iterator[Ports]:
    with patch.dict(os.environ), mock_aws():
        os.environ.update(
            AWS_ACCESS_KEY_ID="testing",
            AWS_SECRET_ACCESS_KEY="testing",
            AWS_REGION=REGION,
            AWS_DEFAULT_REGION=REGION,
        )
        os.environ.pop("AWS_ENDPOINT_URL", None)
        boto3.client("s3").create_bucket(
            Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION}
        )
        yield Ports(S3ObjectStore(make_client()), _make_ledger(TABLE), SystemClock())
