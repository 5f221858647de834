"""Whether a bucket has a pipeline, by its notifications."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError

from s3commit.core.model.errors import (
    NotFoundError,
)
from s3commit.writer.bucket import S3BucketProbe
from s3commit.writer.job import open_job
from tests.fakes.store import MemoryObjectStore
from tests.writer.notifications import QUEUE, FakeS3, notifying
from tests.writer.support import (
    BUCKET,
    DESTINATION,
    visible,
)


def probe(answer: dict[str, object] | ClientError) -> S3BucketProbe:
    return S3BucketProbe(FakeS3(answer))  # type: ignore[arg-type]


def refusal(code: str, status: int) -> ClientError:
    return ClientError(
        {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}},  # type: ignore[typeddict-item]
        "GetBucketNotificationConfiguration",
    )


@pytest.mark.parametrize("name", ["suffix", "Suffix"])
def test_a_bucket_that_notifies_a_queue_of_requests_has_a_pipeline(
    store: MemoryObjectStore, name: str
) -> None:
    found = probe(notifying(name, "/request.json"))
    assert found.request_queues(BUCKET) == [QUEUE]
    open_job(DESTINATION, store=store, probe=found)


@pytest.mark.parametrize(
    "answer",
    [{}, notifying("suffix", ".pendingset"), {"QueueConfigurations": [{"QueueArn": QUEUE}]}],
)
def test_a_bucket_without_a_pipeline_is_one_clear_line(
    store: MemoryObjectStore, answer: dict[str, object]
) -> None:
    with pytest.raises(NotFoundError, match="no s3commit pipeline behind bucket lake") as caught:
        open_job(DESTINATION, store=store, probe=probe(answer))
    assert caught.value.code == "NO_PIPELINE"
    assert visible(store) == []


def test_who_may_not_read_the_notifications_goes_on(store: MemoryObjectStore) -> None:
    open_job(DESTINATION, store=store, probe=probe(refusal("AccessDenied", 403)))


def test_the_probe_finds_the_bucket_missing(store: MemoryObjectStore) -> None:
    with pytest.raises(NotFoundError, match="bucket lake does not exist"):
        open_job(DESTINATION, store=store, probe=probe(refusal("NoSuchBucket", 404)))
