"""What S3 refuses by size, whoever asks.

Sources: https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html (a key's bytes),
https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html (parts, objects),
https://docs.aws.amazon.com/AmazonS3/latest/userguide/upload-objects.html (one put),
https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingMetadata.html (metadata) and
https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObjects.html.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from s3commit.core.formats.layout import MAX_KEY_BYTES
from s3commit.core.formats.manifest import MAX_OBJECT_BYTES, MAX_PARTS
from s3commit.core.model.errors import InvalidInputError, TransientError
from s3commit.core.model.limits import DELETE_AT_ONCE

MAX_METADATA_BYTES = 2 * 1024

# https://www.w3.org/TR/xml/#charsets; S3 names the key in its answers, which are XML 1.0
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Sizes:
    """S3's bounds in bytes; a test makes them smaller, since nobody has 5 GiB in memory."""

    least_part: int = 5 * 1024**2  # of every part but the last
    part: int = 5 * 1024**3
    put: int = 5 * 1000**3
    object: int = MAX_OBJECT_BYTES


S3 = Sizes()


def check_key(key: str) -> None:
    """Raise `InvalidInputError` for a key of no bytes or more than S3 takes (KeyTooLongError)."""
    if not 1 <= len(key.encode()) <= MAX_KEY_BYTES:
        raise InvalidInputError(
            f"key {key[:80]!r} has {len(key.encode())} bytes, not 1 to {MAX_KEY_BYTES}"
        )


def check_metadata(metadata: Mapping[str, str]) -> None:
    """Raise `InvalidInputError` for more than 2 KB (MetadataTooLarge), and for what is not ASCII.

    S3 counts the bytes of names and values; botocore does not send other characters.
    """
    texts = [*metadata, *metadata.values()]
    if not all(text.isascii() for text in texts):
        raise InvalidInputError("user metadata has a character that is not ASCII")
    if sum(map(len, texts)) > MAX_METADATA_BYTES:
        raise InvalidInputError(f"user metadata has more than {MAX_METADATA_BYTES} bytes")


def check_part(number: int, size: int, sizes: Sizes) -> None:
    """Raise `InvalidInputError` for a part of another number or size than S3 takes."""
    if not 1 <= number <= MAX_PARTS:
        raise InvalidInputError(f"part number {number} is not within 1 and {MAX_PARTS}")
    check_size("a part", size, sizes.part)


def check_size(what: str, size: int, most: int) -> None:
    """Raise `InvalidInputError` for a body of more than ``most`` bytes (EntityTooLarge)."""
    if size > most:
        raise InvalidInputError(f"{what} has {size} bytes; at most {most} are taken")


def check_deletes(count: int) -> None:
    """Raise `InvalidInputError` for more objects than one request may name (MalformedXML)."""
    if count > DELETE_AT_ONCE:
        raise InvalidInputError(f"{count} objects in one request; at most {DELETE_AT_ONCE}")


def answer(key: str) -> None:
    """Raise `TransientError` if no client can read an answer with the key in it.

    The request was carried out all the same. Listings are asked for with encoded keys, and their
    answers can be read: https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html
    """
    if _NOT_XML.search(key):
        raise TransientError(f"the answer names {key[:80]!r}, which XML can't carry")
