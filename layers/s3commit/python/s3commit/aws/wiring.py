"""Adapters put together: what a handler holds from its cold start on."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from s3commit.aws import settings
from s3commit.aws.clock import SystemClock
from s3commit.aws.executions import StateMachine
from s3commit.aws.ledger import DynamoLedger
from s3commit.aws.parallel import ThreadMap
from s3commit.aws.s3 import S3ObjectStore
from s3commit.aws.session import MAX_POOL_CONNECTIONS, make_client, own_encryption
from s3commit.core.ports.bundle import Ports, Sweeper

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


def make_ports(*, workers: int = MAX_POOL_CONNECTIONS, slows_down: bool = False) -> Ports:
    """The pipeline on S3 and DynamoDB, as the environment of the function says.

    ``workers`` are its threads, each with a connection; ``slows_down`` is that of the S3 client.
    """
    return _ports(make_client(connections=workers, slows_down=slows_down), workers)


def make_sweeper(client: S3Client) -> Sweeper:
    """What the function of the sweep works on, as its environment says."""
    executions = StateMachine(settings.state_machine(os.environ))
    return Sweeper(_ports(client, MAX_POOL_CONNECTIONS), executions)


def _ports(client: S3Client, workers: int) -> Ports:
    table, days = settings.ledger(os.environ)
    return Ports(
        store=S3ObjectStore(client, encryption=own_encryption()),
        ledger=DynamoLedger(table, job_days=days),
        clock=SystemClock(),
        parallel=ThreadMap(workers),
    )
