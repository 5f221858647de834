"""The S3 client, and how what it writes is encrypted."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from s3commit.aws.session import make_session
from s3commit.aws.settings import region

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

CONNECT_TIMEOUT = 5  # seconds
READ_TIMEOUT = 60  # seconds; completing an upload of 10,000 parts takes S3 a while
TOTAL_MAX_ATTEMPTS = 6  # of one request, the first one included
MAX_POOL_CONNECTIONS = 32  # as many as a step has threads, and more than a writer's


@dataclass(frozen=True, slots=True)
class Encryption:
    """How objects are encrypted where the bucket's own default is not meant.

    ``algorithm`` is ``AES256``, ``aws:kms`` or ``aws:kms:dsse``; ``key_id`` a KMS key's id or ARN.
    """

    algorithm: str
    key_id: str | None = None
    bucket_key: bool | None = None

    def parameters(self) -> dict[str, Any]:
        """The parameters of PutObject and CreateMultipartUpload."""
        named = {
            "ServerSideEncryption": self.algorithm,
            "SSEKMSKeyId": self.key_id,
            "BucketKeyEnabled": self.bucket_key,
        }
        return {name: value for name, value in named.items() if value is not None}


def make_client(*, connections: int = MAX_POOL_CONNECTIONS, slows_down: bool = False) -> S3Client:
    """An S3 client by the standard AWS configuration (region, credentials, AWS_ENDPOINT_URL).

    Raises `AccessError` (``NO_CREDENTIALS``) if there are no credentials.

    With ``slows_down`` an answer of 503 SlowDown makes it send less for a while, and not that one
    request later alone: https://docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html

    Checksums are sent only where S3 requires them: botocore's default adds a CRC32 trailer to
    each part, and then S3 wants the checksum of each part again at the completion, which a
    manifest of Hadoop's format can not carry; stores other than AWS refuse the trailer. TLS
    guards the way, etags and MpuObjectSize the parts, digests our own documents.
    """
    from botocore.config import Config  # noqa: PLC0415 - as in `make_session`

    config = Config(
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
    client: Any = make_session(region(os.environ)).create_client("s3", config=config)
    return cast("S3Client", client)
