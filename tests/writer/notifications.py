"""A bucket's notifications, as S3 answers for them."""

from __future__ import annotations

from botocore.exceptions import ClientError

QUEUE = "arn:aws:sqs:eu-central-1:123456789012:RequestQueue"


class FakeS3:
    """GetBucketNotificationConfiguration, as S3 or its refusal."""

    def __init__(self, answer: dict[str, object] | ClientError) -> None:
        self.answer = answer
        self.asked: list[str] = []

    def get_bucket_notification_configuration(self, **parameters: str) -> dict[str, object]:
        self.asked.append(parameters["Bucket"])
        if isinstance(self.answer, ClientError):
            raise self.answer
        return self.answer


def notifying(*suffixes: str, name: str = "suffix") -> dict[str, object]:
    queues = []
    for suffix in suffixes:
        rules = [{"Name": "Prefix", "Value": ""}, {"Name": name, "Value": suffix}]
        queue = {"QueueArn": QUEUE, "Events": ["s3:ObjectCreated:*"]}
        queues.append({**queue, "Filter": {"Key": {"FilterRules": rules}}})
    return {"QueueConfigurations": queues}
