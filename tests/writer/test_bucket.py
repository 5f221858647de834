"""Whether a bucket has a pipeline, by its notifications."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError

from s3commit.core.formats.layout import parse_destination
from s3commit.core.model.errors import NotFoundError
from s3commit.writer.connect import check_pipeline
from tests.writer.notifications import QUEUE, FakeS3, notifying
from tests.writer.support import DESTINATION


def check(answer: dict[str, object] | ClientError) -> None:
    check_pipeline(FakeS3(answer), parse_destination(DESTINATION))  # type: ignore[arg-type]


def refusal(code: str, status: int) -> ClientError:
    return ClientError(
        {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}},  # type: ignore[typeddict-item]
        "GetBucketNotificationConfiguration",
    )


@pytest.mark.parametrize("name", ["suffix", "Suffix"])
def test_a_bucket_that_notifies_a_queue_of_requests_has_a_pipeline(name: str) -> None:
    check(notifying(name, "/request.json"))


def test_behind_a_bucket_that_sends_its_events_to_eventbridge_there_may_be_one() -> None:
    check({"EventBridgeConfiguration": {}})


@pytest.mark.parametrize(
    "answer",
    [{}, notifying("suffix", ".pendingset"), {"QueueConfigurations": [{"QueueArn": QUEUE}]}],
)
def test_a_bucket_without_a_pipeline_is_one_clear_line(answer: dict[str, object]) -> None:
    with pytest.raises(NotFoundError, match="no s3commit pipeline behind bucket lake") as caught:
        check(answer)
    assert caught.value.code == "NO_PIPELINE"


def test_without_the_right_to_read_the_notifications_nothing_is_checked() -> None:
    check(refusal("AccessDenied", 403))


def test_a_bucket_that_is_not_there_is_one_clear_line() -> None:
    with pytest.raises(NotFoundError, match="bucket lake does not exist"):
        check(refusal("NoSuchBucket", 404))
