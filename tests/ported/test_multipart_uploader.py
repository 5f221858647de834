"""AbstractContractMultipartUploaderTest: the contract of uploads, on the port and on the stream.

Hadoop's uploader both sends parts and completes. Here a task sends and the pipeline completes, so
the port's two halves are asked, and a stream wherever a task would use one. The same verbs are
held against moto and SeaweedFS by tests/contract.
"""

from __future__ import annotations

import pytest

from s3commit.core.formats.manifest import encode_pendingset
from s3commit.core.model.errors import (
    InvalidInputError,
    JobFailedError,
    JobRefusedError,
    UploadGoneError,
)
from s3commit.core.model.pending import PendingFile, PendingSet
from s3commit.core.ports.objects import ObjectFacts
from tests.ported.support import Lake, write
from tests.writer.support import BUCKET, JOB

KEY = f"out/part-{JOB}.bin"


@pytest.fixture
def lake() -> Lake:
    return Lake()


def start(lake: Lake, key: str = KEY) -> str:
    return lake.store.create_upload(BUCKET, key, metadata={}, content_type="x")


def send(lake: Lake, upload_id: str, number: int, body: bytes | None = None) -> str:
    body = f"part {number}\n".encode() if body is None else body
    return lake.store.upload_part(BUCKET, KEY, upload_id, number, body)


def complete(lake: Lake, upload_id: str, etags: list[str], length: int) -> ObjectFacts:
    return lake.store.complete_upload(BUCKET, KEY, upload_id, etags, length=length)


def read(lake: Lake) -> bytes:
    return lake.store.get(BUCKET, KEY, max_bytes=1 << 20).body


def test_single_upload(lake: Lake) -> None:
    job = lake.job()
    job.commit([write(job, files={"part-0.bin": b"0123456789"})])
    assert lake.contents() == [b"0123456789"]


@pytest.mark.parametrize("upload", ["stream", "stage"])
def test_multipart_upload(upload: str) -> None:
    lake, data = Lake(upload=upload), bytes(range(256)) * 2
    job = lake.job()
    counted = write(job, files={"part-0.bin": data})
    assert len(lake.manifest(job, counted).files[0].etags) == 32
    job.commit([counted])
    assert lake.contents() == [data]


def test_multipart_upload_empty_part(lake: Lake) -> None:
    upload = start(lake)
    assert complete(lake, upload, [send(lake, upload, 1, b"")], 0).length == 0
    assert read(lake) == b""


@pytest.mark.parametrize("kind", ["stream", "stage"])
def test_upload_empty_block(kind: str) -> None:
    lake = Lake(upload=kind)
    job = lake.job()
    job.commit([write(job, files={"part-0.bin": b""})])
    assert lake.contents() == [b""]


def test_multipart_upload_reverse_order(lake: Lake) -> None:
    upload = start(lake)
    etags = {number: send(lake, upload, number) for number in (3, 2, 1)}
    complete(lake, upload, [etags[number] for number in (1, 2, 3)], 21)
    assert read(lake) == b"part 1\npart 2\npart 3\n"


def test_multipart_upload_reverse_order_non_contiguous_part_numbers(lake: Lake) -> None:
    """Differs: a manifest's etags are those of the parts 1, 2, 3 and so on, as Hadoop's own are."""
    upload = start(lake)
    etags = [send(lake, upload, number) for number in (6, 4, 2)]
    with pytest.raises(JobRefusedError) as gap:
        complete(lake, upload, etags[::-1], 21)
    assert gap.value.code == "PARTS_MISMATCH"


def test_multipart_upload_abort(lake: Lake) -> None:
    upload = start(lake)
    etags = [send(lake, upload, number) for number in (1, 2)]
    lake.store.abort_upload(BUCKET, KEY, upload)
    with pytest.raises(UploadGoneError):
        send(lake, upload, 3)
    with pytest.raises(UploadGoneError):
        complete(lake, upload, etags, 14)
    assert lake.visible() == {}
    lake.store.abort_upload(BUCKET, KEY, upload)  # as S3 may have it, a second one is no error


def test_abort_unknown_upload(lake: Lake) -> None:
    """Differs: an upload that is not there is as aborted as can be."""
    lake.store.abort_upload(BUCKET, KEY, "invalid-handle")


def test_abort_empty_upload(lake: Lake) -> None:
    task = lake.job().task("0")
    task.open("part-0.bin").abort()
    assert lake.uploads() == []
    assert lake.visible() == {}


def test_abort_all_pending_uploads(lake: Lake) -> None:
    """A job's, below its destination, and nobody else's."""
    job, other = lake.job(), lake.job()
    for number in range(3):
        write(job, str(number))
    theirs = write(other)
    job.abort("told to")
    lake.serve()
    assert lake.uploads() == [file.key for file in lake.manifest(other, theirs).files]


def test_abort_empty_upload_handle(lake: Lake) -> None:
    """A handle of size 0 gets into no manifest, so nobody is ever asked to abort it."""
    with pytest.raises(InvalidInputError):
        encode_pendingset(PendingSet(JOB, (PendingFile(BUCKET, KEY, "", ('"e"',), 1),)))


def test_complete_empty_upload(lake: Lake) -> None:
    upload = start(lake)
    with pytest.raises(JobRefusedError):
        complete(lake, upload, [], 0)
    assert lake.uploads() == [KEY]
    lake.store.abort_upload(BUCKET, KEY, upload)
    assert lake.uploads() == []


def test_put_part_empty_upload_id(lake: Lake) -> None:
    start(lake)
    with pytest.raises(UploadGoneError):
        send(lake, "", 1)


def test_complete_empty_upload_id(lake: Lake) -> None:
    upload = start(lake)
    etag = send(lake, upload, 1)
    with pytest.raises(UploadGoneError):
        complete(lake, "", [etag], 7)
    with pytest.raises(InvalidInputError):
        send(lake, upload, 0)


def test_concurrent_uploads(lake: Lake) -> None:
    """Two uploads of one key are two uploads: the one completed last is what is there."""
    first, second = start(lake), start(lake)
    one, other = send(lake, first, 1, b"first"), send(lake, second, 1, b"second")
    complete(lake, second, [other], 6)
    assert read(lake) == b"second"
    complete(lake, first, [one], 5)
    assert read(lake) == b"first"


def test_concurrent_uploads_of_one_job_are_refused(lake: Lake) -> None:
    """Differs for jobs: which one is last is nobody's choice, so two tasks of one key are none."""
    job = lake.job()
    attempts = [write(job, task, {"part-0.bin": task.encode()}) for task in ("0", "1")]
    with pytest.raises(JobFailedError) as refused:
        job.commit(attempts)
    assert refused.value.code == "DUPLICATE_KEY"
    assert lake.visible() == {}
