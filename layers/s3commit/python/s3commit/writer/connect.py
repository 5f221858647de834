"""The connections of a process to S3, made when first needed; one client serves all its tasks."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING

from s3commit.aws.s3 import S3ObjectStore
from s3commit.aws.s3_client import Encryption, make_client

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


def shared_client() -> S3Client:
    """The process's client by the standard AWS configuration; to make one takes 0.25 s."""
    return _client_of(os.getpid())  # a forked process must not share connections


def shared_store(encryption: Encryption | None) -> S3ObjectStore:
    """The process's store for objects that are encrypted as given."""
    return _store_of(os.getpid(), encryption)


@functools.lru_cache(maxsize=1)
def _client_of(_pid: int) -> S3Client:
    return make_client()


@functools.lru_cache(maxsize=8)
def _store_of(pid: int, encryption: Encryption | None) -> S3ObjectStore:
    return S3ObjectStore(_client_of(pid), encryption=encryption)


def forget_connections() -> None:
    """Have new ones made, by what the environment says now."""
    _client_of.cache_clear()
    _store_of.cache_clear()
