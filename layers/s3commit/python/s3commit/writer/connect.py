"""The store of a process that was sent tasks: one for all of them, made when first needed."""

from __future__ import annotations

import functools
import os

from s3commit.aws.s3 import S3ObjectStore
from s3commit.aws.s3_client import Encryption, make_client


def shared_store(encryption: Encryption | None) -> S3ObjectStore:
    """The process's store by the standard AWS configuration, encrypting as given."""
    return _store_of(os.getpid(), encryption)  # a forked process must not share connections


@functools.lru_cache(maxsize=8)
def _store_of(_pid: int, encryption: Encryption | None) -> S3ObjectStore:
    return S3ObjectStore(make_client(), encryption=encryption)
