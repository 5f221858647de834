"""What S3 refuses by size, whoever asks.

Sources: https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html (a key's bytes),
https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html (parts) and
https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObjects.html.
"""

from s3commit.core.documents.pendingset import MAX_PARTS
from s3commit.core.formats.layout import MAX_KEY_BYTES
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.limits import DELETE_AT_ONCE

LEAST_PART = 5 * 1024**2  # bytes of every part but the last


def check_key(key: str) -> None:
    """Raise `InvalidInputError` for a key of no bytes or more than S3 takes (KeyTooLongError)."""
    if not 1 <= len(key.encode()) <= MAX_KEY_BYTES:
        raise InvalidInputError(
            f"key {key[:80]!r} has {len(key.encode())} bytes, not 1 to {MAX_KEY_BYTES}"
        )


def check_part(number: int) -> None:
    """Raise `InvalidInputError` for a part of another number than S3 takes."""
    if not 1 <= number <= MAX_PARTS:
        raise InvalidInputError(f"part number {number} is not within 1 and {MAX_PARTS}")


def check_deletes(count: int) -> None:
    """Raise `InvalidInputError` for more objects than one request may name (MalformedXML)."""
    if count > DELETE_AT_ONCE:
        raise InvalidInputError(f"{count} objects in one request; at most {DELETE_AT_ONCE}")
