"""A queue that S3 writes to, its dead-letter queue, and who may write."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs
from constructs import Construct

# After that many tries a message is put aside and the alarm rings.
MAX_RECEIVE = 5
# SQS keeps a message 14 days at most: a dead letter gets all of them.
DEAD_LETTER_DAYS = 14
QUEUE_DAYS = 4


class Inbox(Construct):
    """``queue`` and ``dead_letters``; encrypted by SQS, TLS only.

    It has no consumer of its own: `stacks.routing` connects the functions.
    """

    def __init__(self, scope: Construct, name: str, *, visibility: cdk.Duration) -> None:
        super().__init__(scope, name)
        self.dead_letters = sqs.Queue(
            self,
            "DeadLetters",
            retention_period=cdk.Duration.days(DEAD_LETTER_DAYS),
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
        )
        self.queue = sqs.Queue(
            self,
            "Queue",
            visibility_timeout=visibility,
            retention_period=cdk.Duration.days(QUEUE_DAYS),
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            dead_letter_queue=sqs.DeadLetterQueue(
                queue=self.dead_letters, max_receive_count=MAX_RECEIVE
            ),
        )

    def admit_bucket(self, source_arn: str, account: str) -> None:
        """Let S3 send here in the name of ``source_arn``, from ``account`` alone."""
        self.queue.add_to_resource_policy(
            iam.PolicyStatement(
                sid="S3Notifications",
                actions=["sqs:SendMessage"],
                principals=[iam.ServicePrincipal("s3.amazonaws.com")],
                resources=[self.queue.queue_arn],
                conditions={
                    "ArnLike": {"aws:SourceArn": source_arn},
                    "StringEquals": {"aws:SourceAccount": account},
                },
            )
        )

    @property
    def admission(self) -> Construct:
        """The queue's policy: what must stand before a bucket may notify."""
        policy = self.queue.node.find_child("Policy")
        assert isinstance(policy, Construct)  # noqa: S101 - an L2 queue's policy is one
        return policy
