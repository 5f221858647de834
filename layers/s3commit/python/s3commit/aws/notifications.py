"""Which queues hear of what is put into a bucket.

https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketNotificationConfiguration.html
"""

from collections.abc import Mapping
from typing import Any, Final

from s3commit.aws.clients import S3Client
from s3commit.aws.failures import translated
from s3commit.core.formats.layout import JOB_FILE, PENDINGSET_SUFFIX, REQUEST_FILE

REQUEST_SUFFIX: Final = f"/{REQUEST_FILE}"
SUFFIXES: Final = (f"/{JOB_FILE}", REQUEST_SUFFIX, PENDINGSET_SUFFIX)
EVENT_BRIDGE: Final = "EventBridgeConfiguration"  # there, and empty, if all events go there


def unheard(client: S3Client, bucket: str) -> list[str]:
    """The suffixes of the protocol's keys that notify no queue; raises as `configured`.

    None if the bucket sends its events to EventBridge, whose rules are not seen here.
    """
    answer = configured(client, bucket)
    return [] if EVENT_BRIDGE in answer else without_queue(answer)


def configured(client: S3Client, bucket: str) -> dict[str, Any]:
    """The bucket's GetBucketNotificationConfiguration.

    Raises `NotFoundError` if there is no such bucket, `AccessError` if the caller has no right to
    it.
    """
    with translated(f"reading the notifications of bucket {bucket}"):
        return dict(client.get_bucket_notification_configuration(Bucket=bucket))


def without_queue(answer: Mapping[str, Any]) -> list[str]:
    """The suffixes of the protocol's keys of which the bucket itself notifies no queue."""
    found = set(map(suffix_of, answer.get("QueueConfigurations", ())))
    return [suffix for suffix in SUFFIXES if suffix not in found]


def suffix_of(configuration: Mapping[str, Any]) -> str:
    """The suffix that one notification filters by; empty if it takes all keys."""
    rules = configuration.get("Filter", {}).get("Key", {}).get("FilterRules", [])
    return next((rule["Value"] for rule in rules if rule["Name"].lower() == "suffix"), "")
