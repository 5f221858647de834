"""Adapters put together: what a handler holds from its cold start on."""

from __future__ import annotations

import os

from s3commit.aws.clock import SystemClock
from s3commit.aws.executions import StateMachine
from s3commit.aws.ledger import DynamoLedger
from s3commit.aws.parallel import ThreadMap
from s3commit.aws.s3 import S3ObjectStore
from s3commit.aws.s3_client import MAX_POOL_CONNECTIONS, make_client
from s3commit.aws.s3_survey import S3Survey
from s3commit.aws.settings import Settings, state_machine
from s3commit.core.ports.bundle import Ports, Sweeper


def make_ports(*, workers: int = MAX_POOL_CONNECTIONS, slows_down: bool = False) -> Ports:
    """The pipeline on S3 and DynamoDB, as the environment of the function says.

    ``workers`` are its threads, each with a connection; ``slows_down`` is that of the S3 client.
    """
    settings = Settings.read(os.environ)
    return Ports(
        store=S3ObjectStore(make_client(connections=workers, slows_down=slows_down)),
        ledger=DynamoLedger(settings.table, job_days=settings.ledger_ttl_days),
        clock=SystemClock(),
        parallel=ThreadMap(workers),
    )


def make_sweeper() -> Sweeper:
    """What a function of the sweep works on, as its environment says."""
    return Sweeper(make_ports(), S3Survey(make_client()), StateMachine(state_machine(os.environ)))
