"""An S3 object as a seekable file, read in ranges by the standard AWS configuration."""

from __future__ import annotations

import io
from contextlib import closing
from typing import TYPE_CHECKING, Any

from s3commit.aws.failures import translated

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


class RangeFile(io.RawIOBase):
    """Each read is one GET of a range, of exactly the object that was found (If-Match).

    ``length`` in bytes and ``etag`` are what a listing or a manifest says; an empty ``etag``
    takes whatever is there. Raises `PreconditionError` if the object was replaced meanwhile,
    `NotFoundError` if it was deleted.
    """

    def __init__(self, client: S3Client, bucket: str, key: str, length: int, etag: str) -> None:
        super().__init__()
        self._client = client
        self._bucket = bucket
        self._key = key
        self._length = length
        self._etag = etag
        self._position = 0

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True."""
        return True

    def tell(self) -> int:
        """Where the next read starts."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move; no request."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._length}[whence]
        self._position = max(0, base + offset)
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        """The next ``size`` bytes, fewer only at the end of the object."""
        left = max(0, self._length - self._position)
        size = left if size is None or size < 0 else min(size, left)
        if not size:
            return b""
        stop = self._position + size - 1
        match: Any = {"IfMatch": self._etag} if self._etag else {}
        with translated(f"reading s3://{self._bucket}/{self._key}"):
            answer = self._client.get_object(
                Bucket=self._bucket, Key=self._key, Range=f"bytes={self._position}-{stop}", **match
            )
            with closing(answer["Body"]) as body:
                data: bytes = body.read()
        self._position += len(data)
        return data
