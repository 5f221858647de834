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


@pytest.mark.parametrize(
    "answer",
    [
        notifying("/_request.json"),
        notifying("/_request.json", name="Suffix"),
        {"EventBridgeConfiguration": {}},
        refusal("AccessDenied", 403),  # then nothing is checked
    ],
)
def test_a_bucket_that_has_a_pipeline_or_may_have_one(
    answer: dict[str, object] | ClientError,
) -> None:
    check(answer)


@pytest.mark.parametrize(
    "answer",
    [{}, notifying(".pendingset"), {"QueueConfigurations": [{"QueueArn": QUEUE}]}],
)
def test_a_bucket_without_a_pipeline_is_one_clear_line(answer: dict[str, object]) -> None:
    with pytest.raises(NotFoundError, match="no s3commit pipeline behind bucket lake") as caught:
        check(answer)
    assert caught.value.code == "NO_PIPELINE"


def test_a_bucket_that_is_not_there_is_one_clear_line() -> None:
    with pytest.raises(NotFoundError, match="bucket lake does not exist"):
        check(refusal("NoSuchBucket", 404))
