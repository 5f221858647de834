"""Adapters put together: what a handler holds from its cold start on."""

import time
from dataclasses import replace

from s3commit.aws import env
from s3commit.aws.clients import MAX_POOL_CONNECTIONS, S3Client, make_client
from s3commit.aws.clock import SystemClock
from s3commit.aws.ledger import DynamoLedger
from s3commit.aws.ledger_notes import REMEMBERED
from s3commit.aws.parallel import ThreadMap
from s3commit.aws.s3 import S3ObjectStore
from s3commit.aws.settings import own_encryption, prefixes, value
from s3commit.core.documents.bucket_owner import Owner, check_owner
from s3commit.core.ports.bundle import Ports


def owning(ports: Ports, *, claims: bool) -> Ports:
    """The same ports, for a function that stops where the bucket is another deployment's.

    It asks once a minute at most; ``claims`` is as of `check_owner`.
    """
    ledger, owned = value(env.LEDGER), dict[str, float]()

    def check(bucket: str) -> bool:
        if time.monotonic() >= owned.get(bucket, -REMEMBERED) + REMEMBERED:
            if not check_owner(ports.store, Owner(bucket, ledger), claims=claims):
                return False
            owned[bucket] = time.monotonic()
        return True

    return replace(ports, check_owner=check)


def make_ports(
    client: S3Client | None = None, *, workers: int = MAX_POOL_CONNECTIONS, slows_down: bool = False
) -> Ports:
    """The pipeline on S3 and DynamoDB, as the environment of the function says.

    ``workers`` are its threads, each with a connection; ``slows_down`` is that of the S3 client,
    which is made unless it is given.
    """
    client = client or make_client(connections=workers, slows_down=slows_down)
    return Ports(
        store=S3ObjectStore(client, encryption=own_encryption()),
        ledger=DynamoLedger(value(env.TABLE), job_days=int(value(env.LEDGER_TTL_DAYS))),
        clock=SystemClock(),
        parallel=ThreadMap(workers),
        prefixes=prefixes(),
    )
