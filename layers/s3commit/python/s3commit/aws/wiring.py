"""Adapters put together: what a handler holds from its cold start on."""

from s3commit.aws import env
from s3commit.aws.clients import MAX_POOL_CONNECTIONS, S3Client, make_client
from s3commit.aws.clock import SystemClock
from s3commit.aws.ledger import DynamoLedger
from s3commit.aws.parallel import ThreadMap
from s3commit.aws.s3 import S3ObjectStore
from s3commit.aws.settings import own_encryption, prefixes, value
from s3commit.core.ports.bundle import Ports


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
