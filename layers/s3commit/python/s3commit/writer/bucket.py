"""Is there a pipeline behind the bucket? Asked before a job writes gigabytes for nobody."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from s3commit.aws.failures import translated
from s3commit.core.formats.layout import REQUEST_FILE
from s3commit.core.model.errors import AccessError, NotFoundError
from s3commit.core.model.job import Destination

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

REQUEST_SUFFIX = f"/{REQUEST_FILE}"
MANIFEST_SUFFIX = ".pendingset"


class BucketProbe(Protocol):
    """What can be learned of a bucket's notifications."""

    def request_queues(self, bucket: str) -> list[str] | None:
        """The ARNs of the queues that hear of a ``request.json``; None if we may not know.

        Raises `NotFoundError` if there is no such bucket.
        """
        ...


class S3BucketProbe:
    """Implements `BucketProbe` with one GetBucketNotificationConfiguration."""

    def __init__(self, client: S3Client) -> None:
        self._client = client

    def request_queues(self, bucket: str) -> list[str] | None:
        """See `BucketProbe.request_queues`."""
        try:
            with translated(f"reading the notifications of bucket {bucket}"):
                answer = self._client.get_bucket_notification_configuration(Bucket=bucket)
        except AccessError:
            return None
        return queues_by_suffix(answer).get(REQUEST_SUFFIX, [])


def queues_by_suffix(answer: Mapping[str, Any]) -> dict[str, list[str]]:
    """The ARNs of the queues in a GetBucketNotificationConfiguration, by the suffix of the keys."""
    found: dict[str, list[str]] = {}
    for configuration in answer.get("QueueConfigurations", []):
        found.setdefault(_suffix(configuration), []).append(configuration["QueueArn"])
    return found


def check_pipeline(probe: BucketProbe, destination: Destination) -> None:
    """Raise `NotFoundError`, in one line, if the bucket or its pipeline is missing.

    Whoever may not read the notifications goes on: the wait for the result is bounded too.
    """
    bucket = destination.bucket
    try:
        queues = probe.request_queues(bucket)
    except NotFoundError as error:
        raise no_bucket(destination) from error
    if queues is not None and not queues:
        raise NotFoundError(
            f"no s3commit pipeline behind bucket {bucket}: nothing would ever commit this job; "
            "deploy the stacks for this bucket, or write to a bucket that has them",
            code="NO_PIPELINE",
        )


def no_bucket(destination: Destination) -> NotFoundError:
    """The error of a destination whose bucket is not there."""
    return NotFoundError(
        f"bucket {destination.bucket} does not exist: create it, or correct the path"
        f" {destination.uri}",
        code="NO_BUCKET",
    )


def _suffix(configuration: Mapping[str, Any]) -> str:
    rules = configuration.get("Filter", {}).get("Key", {}).get("FilterRules", [])
    return next((rule["Value"] for rule in rules if rule["Name"].lower() == "suffix"), "")
