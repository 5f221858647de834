"""Putting a text of unknown length in constant memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from s3commit.core.formats.layout import META_JOB, JobDirectory
from s3commit.core.model.errors import TransientError, UploadGoneError
from s3commit.core.model.limits import PUT_BYTES
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.objects import ObjectStore

_TYPE: Final = "application/x-ndjson"


def put_lines(ports: Ports, directory: JobDirectory, key: str, lines: Iterable[bytes]) -> None:
    """Put the lines as one object, over whatever lies there; the same lines, the same object.

    Raises `TransientError` if the upload was aborted. Short ones go up with one PUT, long ones in
    parts. The key's name must carry the job's id, so that `TidyUp` finds the upload of a worker
    that died on the way.
    """
    parts = _parts(lines)
    first = next(parts, b"")
    if len(first) < PUT_BYTES:
        ports.store.put(directory.bucket, key, first, content_type=_TYPE)
        return
    metadata = {META_JOB: directory.job_id}
    try:
        _send(ports.store, directory.bucket, key, metadata, chain([first], parts))
    except UploadGoneError as error:
        raise TransientError(error.message) from error


def _parts(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines in parts, of which only the last has less than `PUT_BYTES`."""
    buffer = bytearray()
    for line in lines:
        buffer += line
        if len(buffer) >= PUT_BYTES:
            yield bytes(buffer)
            buffer.clear()
    if buffer:
        yield bytes(buffer)


def _send(
    store: ObjectStore, bucket: str, key: str, metadata: dict[str, str], parts: Iterable[bytes]
) -> None:
    upload_id = store.create_upload(bucket, key, metadata=metadata, content_type=_TYPE)
    etags, length = [], 0
    for number, part in enumerate(parts, start=1):
        etags.append(store.upload_part(bucket, key, upload_id, number, part))
        length += len(part)
    store.complete_upload(bucket, key, upload_id, etags, length=length)
