"""Putting a text of unknown length in constant memory."""

from __future__ import annotations

from collections.abc import Iterable

from s3commit.core.formats.layout import META_JOB, JobDirectory
from s3commit.core.model.errors import TransientError, UploadGoneError
from s3commit.core.model.limits import PUT_BYTES
from s3commit.core.ports.bundle import Ports


def put_lines(ports: Ports, directory: JobDirectory, key: str, lines: Iterable[bytes]) -> None:
    """Put the lines as one object, over whatever lies there; the same lines, the same object.

    Raises `TransientError` if the upload was aborted. Short ones go up with one PUT, long ones in
    parts. The key's name must carry the job's id, so that `TidyUp` finds the upload of a worker
    that died on the way.
    """
    sender = _Sender(ports, directory, key)
    buffer = bytearray()
    for line in lines:
        buffer += line
        if len(buffer) >= PUT_BYTES:
            sender.send(bytes(buffer))
            buffer.clear()
    try:
        sender.finish(bytes(buffer))
    except UploadGoneError as error:
        raise TransientError(error.message) from error


class _Sender:
    def __init__(self, ports: Ports, directory: JobDirectory, key: str) -> None:
        self._store = ports.store
        self._bucket = directory.bucket
        self._key = key
        self._metadata = {META_JOB: directory.job_id}
        self._upload_id = ""
        self._etags: list[str] = []
        self._length = 0

    def send(self, part: bytes) -> None:
        if not self._upload_id:
            self._upload_id = self._store.create_upload(
                self._bucket,
                self._key,
                metadata=self._metadata,
                content_type="application/x-ndjson",
            )
        number = len(self._etags) + 1
        etag = self._store.upload_part(self._bucket, self._key, self._upload_id, number, part)
        self._etags.append(etag)
        self._length += len(part)

    def finish(self, rest: bytes) -> None:
        if not self._upload_id:
            self._store.put(self._bucket, self._key, rest, content_type="application/x-ndjson")
            return
        if rest:
            self.send(rest)
        self._store.complete_upload(
            self._bucket,
            self._key,
            self._upload_id,
            self._etags,
            length=self._length,
        )
