"""The look for a pipeline behind the bucket.

It comes before a job writes gigabytes that no pipeline would commit.
"""

from s3commit.aws.clients import S3Client
from s3commit.aws.notifications import REQUEST_SUFFIX, configured, unheard
from s3commit.core.model.destination import Destination
from s3commit.core.model.errors import AccessError, NotFoundError


def check_pipeline(client: S3Client, destination: Destination) -> None:
    """Raise `NotFoundError`, in one line, if the bucket or its pipeline is missing.

    One request. Without the right to make it nothing is checked: the wait for the result is bounded
    too.
    """
    try:
        found = has_pipeline(client, destination.bucket)
    except NotFoundError as error:
        raise no_bucket(destination) from error
    if found is False:
        raise NotFoundError(
            f"bucket {destination.bucket} has no s3commit pipeline, so this job would never"
            " commit. Deploy s3commit for it, or write to a bucket that has it",
            code="NO_PIPELINE",
        )


def has_pipeline(client: S3Client, bucket: str) -> bool | None:
    """False if nothing can hear of the bucket's requests; None without the right to know.

    One GetBucketNotificationConfiguration. Whose a queue is, or which rules EventBridge has, a
    writer does not see: any queue is good enough, and EventBridge may have a rule, or none.

    Raises `NotFoundError` if there is no such bucket.
    """
    try:
        return REQUEST_SUFFIX not in unheard(configured(client, bucket), None)
    except AccessError:
        return None


def no_bucket(destination: Destination) -> NotFoundError:
    """The error of a destination whose bucket is not there."""
    return NotFoundError(
        f"bucket {destination.bucket} does not exist: create it, or correct the path"
        f" {destination.uri}",
        code="NO_BUCKET",
    )
