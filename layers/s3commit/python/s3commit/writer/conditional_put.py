"""Puts an object where none is, and says which one is there then."""

from contextlib import suppress
from typing import Final

from s3commit.core.model.errors import (
    InvalidInputError,
    NotFoundError,
    PreconditionError,
    TransientError,
)
from s3commit.core.ports.objects import WriterStore

# S3 answers 409 to one of two conditional puts that race, and the object may then not be there
# yet; each turn is one put and one read.
TURNS: Final = 4


def put_first(
    store: WriterStore,
    bucket: str,
    key: str,
    body: bytes,
    *,
    max_bytes: int,
    metadata: dict[str, str] | None = None,
) -> bytes:
    """Put ``body`` if nothing is there, and return the object: ``body``, or an earlier one.

    A put whose answer got lost finds its own object, which is success. Raises `TransientError` if
    S3 keeps contradicting itself, `InvalidInputError` if an object of more than ``max_bytes`` is
    there.
    """
    for _ in range(TURNS):
        try:
            store.put(bucket, key, body, if_absent=True, metadata=metadata)
        except PreconditionError:
            try:
                return store.get(bucket, key, max_bytes=max(max_bytes, len(body))).body
            except NotFoundError:
                continue
        return body
    raise TransientError(f"S3's answers about s3://{bucket}/{key} contradict each other; try again")


def put_own(store: WriterStore, bucket: str, key: str, body: bytes) -> None:
    """Put ``body`` where no other object may be. Raises `PreconditionError` if one is."""
    with suppress(InvalidInputError):  # TOO_LARGE: another object, for sure
        if put_first(store, bucket, key, body, max_bytes=len(body)) == body:
            return
    raise PreconditionError(f"another object is at s3://{bucket}/{key}; it was not changed")
