"""The process's own connection to S3: Spark uses its Python workers again and again."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from s3commit.aws.s3 import S3ObjectStore
from s3commit.aws.s3_client import Encryption, make_client
from s3commit.core.model.job import Destination
from s3commit.writer.bucket import S3BucketProbe, check_pipeline

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


@functools.lru_cache(maxsize=1)
def shared_client() -> S3Client:
    """The process's client; to make one takes 0.25 s."""
    return make_client()


@functools.lru_cache(maxsize=8)
def shared_store(encryption: Encryption | None) -> S3ObjectStore:
    """The process's store for objects that are encrypted so."""
    return S3ObjectStore(shared_client(), encryption=encryption)


@functools.lru_cache(maxsize=64)
def check_pipeline_once(bucket: str) -> None:
    """Raise `NotFoundError` if the bucket or its pipeline is missing; ask S3 until it is there.

    For streams, which would ask at every micro-batch.
    """
    check_pipeline(S3BucketProbe(shared_client()), Destination(bucket, "/"))
