"""The AWS session of our clients, and the S3 client.

The session requests a machine's role credentials with patience. Spark starts a Python worker for
each core of a node, all at the same time, and each calls the instance metadata service. That
service limits an instance's simultaneous connections and requests, and requires pauses that grow:
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html botocore tries
once. So here it tries three times without a pause, and the whole search is repeated with pauses.
The user's settings (AWS_METADATA_SERVICE_NUM_ATTEMPTS, AWS_METADATA_SERVICE_TIMEOUT, or the same in
the profile) replace that:
https://docs.aws.amazon.com/sdkref/latest/guide/feature-ec2-instance-metadata.html

A worker calls it once at its start and then about once an hour, since its one client is kept.
Nothing is shared among a node's workers: that would put the role's secret into a file, with a lock
and a lifetime to watch over, to save three small requests a worker.
"""

from __future__ import annotations

import os
import random
import threading
import time
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

from s3commit.core.model.errors import AccessError
from s3commit.version import __version__

if TYPE_CHECKING:
    import boto3
    from botocore.loaders import Loader
    from botocore.session import Session
    from mypy_boto3_s3 import S3Client as S3Client  # noqa: PLC0414 - others import it here

    Boto3Session = boto3.Session
else:
    S3Client = Boto3Session = Any

ATTEMPTS: Final = 3
TIMEOUT: Final = 2  # seconds; a packet that was dropped is sent again after one
FIRST_PAUSE: Final = 0.2  # seconds, doubled each time
PATIENCE: Final = 3.0  # seconds, after which no other look begins

# Of the S3 client.
CONNECT_TIMEOUT = 5  # seconds
READ_TIMEOUT = 60  # seconds; completing an upload of 10,000 parts takes S3 a while
TOTAL_MAX_ATTEMPTS = 6  # of one request, the first one included
MAX_POOL_CONNECTIONS = 32  # as many as a step has threads, and more than a writer's

# Of requests that may wait for no answer where the network lets no more through than S3 and ledger.
IMPATIENT: Final[dict[str, Any]] = {
    "connect_timeout": 3,
    "retries": {"mode": "standard", "total_max_attempts": 3},
}

_ATTEMPTS_NAME: Final = "metadata_service_num_attempts"
_MAKING: Final[dict[int, threading.Lock]] = {}  # by process
_DEFAULTS: Final = {_ATTEMPTS_NAME: ATTEMPTS, "metadata_service_timeout": TIMEOUT}


def region_of_environment() -> str | None:
    """The region of AWS_REGION, which boto3 does not read; None: what boto3 finds by itself.

    The other SDKs and the AWS CLI read it: https://docs.aws.amazon.com/sdkref/latest/guide/feature-region.html
    """
    return os.environ.get("AWS_REGION") or None


def make_session(region: str | None = None) -> Session:
    """A session of botocore that has credentials, by the standard AWS configuration.

    boto3's own would import what takes large files apart, 25 ms of each start, for nothing.

    Raises `AccessError` (``NO_CREDENTIALS``) if there are none. A client made without any would
    never get some, and Spark uses a worker and its client again and again.
    """
    # Not every process that imports this makes a client, and these take 0.15 s.
    import botocore.session  # noqa: PLC0415
    from botocore.configprovider import ConstantProvider  # noqa: PLC0415

    from s3commit.aws.failures import no_credentials, translated  # noqa: PLC0415

    core = botocore.session.get_session()
    core.register_component("data_loader", _loader())
    core.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=_moment)
    configuration = core.get_component("config_store")
    for name, value in _DEFAULTS.items():
        configuration.get_config_provider(name).set_default_provider(ConstantProvider(value))
    with translated("looking for AWS credentials"):
        if region := region or region_of_environment():
            core.set_config_variable("region", region)
        asked = os.environ.get("AWS_EC2_METADATA_DISABLED", "").lower() != "true"
        again = asked and core.get_config_variable(_ATTEMPTS_NAME) == ATTEMPTS
        began, pause = time.monotonic(), FIRST_PAUSE
        while core.get_credentials() is None:
            if not again or time.monotonic() - began >= PATIENCE:
                raise no_credentials()
            time.sleep(pause * random.uniform(0.5, 1))  # those that started together part here
            pause *= 2
    return core


@cache
def _loader() -> Loader:
    """Reads AWS's description of each service once; it is half of the time that a client takes."""
    from botocore.loaders import create_loader  # noqa: PLC0415

    return create_loader(os.environ.get("AWS_DATA_PATH"))


def _moment(text: Any) -> datetime:
    """A time of S3's; botocore's own reading of a listing's takes five times its other work."""
    from botocore.utils import parse_timestamp  # noqa: PLC0415

    is_listed = isinstance(text, str) and text.endswith("Z")
    return datetime.fromisoformat(text) if is_listed else parse_timestamp(text)


@dataclass(frozen=True, slots=True)
class Encryption:
    """How objects are encrypted where the bucket's own default is not meant.

    Examples:
        >>> lock = s3commit.Encryption("aws:kms", "alias/lake", bucket_key=True)
        >>> s3commit.write_table(frame, "s3://lake/locked/", encryption=lock).files
        1
    """

    algorithm: str
    """``AES256``, ``aws:kms`` or ``aws:kms:dsse``."""
    key_id: str | None = None
    """A KMS key's id or ARN."""
    bucket_key: bool | None = None
    """True if a key of the bucket is to spare S3 most requests to KMS."""

    def parameters(self) -> dict[str, Any]:
        """The parameters of PutObject and CreateMultipartUpload."""
        named = {
            "ServerSideEncryption": self.algorithm,
            "SSEKMSKeyId": self.key_id,
            "BucketKeyEnabled": self.bucket_key,
        }
        return {name: value for name, value in named.items() if value is not None}


def is_aws(client: Any) -> bool:
    """True if the client leads to AWS itself, by its address: a store of others has another.

    botocore knows the names of each of AWS's partitions.
    """
    outputs = [one["outputs"] for one in _loader().load_data("partitions")["partitions"]]
    names = [one[name] for one in outputs for name in ("dnsSuffix", "dualStackDnsSuffix")]
    host = urlsplit(client.meta.endpoint_url).hostname or ""
    return host.endswith(tuple(f".{name}" for name in names))


def make_client(
    *,
    connections: int = MAX_POOL_CONNECTIONS,
    slows_down: bool = False,
    session: Boto3Session | None = None,
    region: str | None = None,
    endpoint: str | None = None,
) -> S3Client:
    """An S3 client by the standard AWS configuration (region, credentials, AWS_ENDPOINT_URL).

    Or by the user's ``session``, which stays as it is. ``region`` and ``endpoint`` come first.

    Raises `AccessError` (``NO_CREDENTIALS``) if there are no credentials, and `InvalidInputError`
    for a setting that leads nowhere.

    With ``slows_down`` an answer of 503 SlowDown makes it send less for a while, and not that one
    request later alone: https://docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html

    Checksums are sent only where S3 requires them: botocore's default adds a CRC32 trailer to each
    part, and then S3 requires the checksum of each part again at the completion, which a manifest
    of Hadoop's format cannot contain; stores other than AWS refuse the trailer. TLS guards the way,
    etags and MpuObjectSize the parts, digests our own documents.
    """
    from botocore import __version__ as sdk  # noqa: PLC0415 - as in `make_session`
    from botocore.config import Config  # noqa: PLC0415

    from s3commit.aws.failures import translated  # noqa: PLC0415

    config = Config(
        # S3's access logs tell our requests by it. botocore makes its own again for each request,
        # twice, which takes a tenth of a small one's time.
        user_agent=f"s3commit/{__version__} Botocore/{sdk}",
        signature_version="s3v4",
        retries={
            "mode": "adaptive" if slows_down else "standard",
            "total_max_attempts": TOTAL_MAX_ATTEMPTS,
        },
        connect_timeout=CONNECT_TIMEOUT,
        read_timeout=READ_TIMEOUT,
        max_pool_connections=connections,
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    place: Any = {"endpoint_url": endpoint, "config": config}
    if session is None:
        core: Any = make_session(region)
        with translated("connecting to S3"):
            return cast("S3Client", core.create_client("s3", **place))
    # A session is not thread-safe, its clients are: https://docs.aws.amazon.com/boto3/latest/guide/session.html
    lock = _MAKING.setdefault(os.getpid(), threading.Lock())
    with lock, translated("connecting to S3 by boto3_session"):
        if session.get_credentials() is None:
            raise AccessError(
                "boto3_session has no credentials, so no request was made and nothing was changed:"
                " give the session keys or a profile",
                code="NO_CREDENTIALS",
            )
        region = region or session.region_name or region_of_environment()
        return session.client("s3", region_name=region, **place)
