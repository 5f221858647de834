"""The queues before the pipeline, and how a bucket's events come into them.

Either the bucket notifies the queues itself, or EventBridge does by a rule for each queue: S3
refuses two notifications of one event whose filters overlap, EventBridge refuses no rule.
https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-how-to-filtering.html
"""

from functools import partial
from typing import Any

import aws_cdk as cdk
import jsii
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sqs as sqs
from constructs import Construct, IDependable

from s3commit.aws import env
from stacks.functions import FUNCTIONS

# The queues, each with the function that takes its messages.
CONSUMERS = {"Ingest": "ingest", "Request": "dispatch", "Catalogs": "catalog"}
_MANIFEST = ".pendingset"

# A manifest or request normally waits for a second or so.
_OLDEST_SECONDS = 600


def hidden_seconds(name: str) -> int:
    """For how long a queue hides a message that is received, or has failed.

    AWS recommends six times the function's timeout, and the batching window on top:
    https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
    """
    return 6 * FUNCTIONS[CONSUMERS[name]].timeout


def oldest_seconds(name: str) -> int:
    """The age of a queue's oldest message above which no function receives messages.

    A message that fails alone is that old as well, until it is received for the fourth time:
    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
    """
    return max(_OLDEST_SECONDS, 3 * hidden_seconds(name) + 60)


def pattern(suffix: str) -> dict[str, str]:
    """Which keys EventBridge matches. Hadoop's own manifests have the suffix of ours elsewhere.

    A bucket's own notifications know prefixes and suffixes alone, and so do Lambda's filters.
    https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-create-pattern-operators.html
    https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventfiltering.html
    """
    return {"wildcard": f"*/_tasks/*{suffix}"} if suffix == _MANIFEST else {"suffix": suffix}


class Inbox(Construct):
    """``queue`` and ``dead_letters``; encrypted by SQS, TLS only.

    It has no consumer of its own: `stacks.pipeline` connects the functions. ``rule`` is the name of
    what EventBridge sends it by; empty where the bucket does.
    """

    rule: str = ""

    def __init__(self, scope: Construct, name: str) -> None:
        super().__init__(scope, name)
        self.suffixes = [suffix for suffix, inbox in env.NOTIFIED.items() if inbox == name]
        make = partial(
            sqs.Queue, self, encryption=sqs.QueueEncryption.SQS_MANAGED, enforce_ssl=True
        )
        days, function = cdk.Duration.days, FUNCTIONS[CONSUMERS[name]]
        hidden = hidden_seconds(name)
        # After so many tries a message is put aside and the alarm fires.
        tries = 1 + env.HEALING_SECONDS // hidden if env.TABLE in function.reads else 5
        # SQS keeps a message 14 days at most: a dead letter gets all of them.
        self.dead_letters = make("DeadLetters", retention_period=days(14))
        # For `s3commit status`, `doctor` and `redrive`.
        output = env.DEAD_LETTERS_OUTPUTS[name]
        cdk.CfnOutput(cdk.Stack.of(self), output, value=self.dead_letters.queue_url)
        self.queue = make(
            "Queue",
            visibility_timeout=cdk.Duration.seconds(hidden),
            retention_period=days(4),
            dead_letter_queue=sqs.DeadLetterQueue(queue=self.dead_letters, max_receive_count=tries),
        )

    def admit(self, service: str, source_arn: str) -> IDependable:
        """Let ``service`` send here in the name of ``source_arn``, from this account alone.

        Returns the queue's policy: what must exist before a bucket may notify.
        """
        return self.queue.add_to_resource_policy(
            iam.PolicyStatement(
                sid="Events",
                actions=["sqs:SendMessage"],
                principals=[iam.ServicePrincipal(service)],
                resources=[self.queue.queue_arn],
                conditions={
                    "ArnLike": {"aws:SourceArn": source_arn},
                    "StringEquals": {"aws:SourceAccount": cdk.Stack.of(self).account},
                },
            )
        ).policy_dependable

    def add_rule(self, source: str, kind: str, detail: dict[str, Any]) -> None:
        """Have EventBridge send the events of a kind; which conditions it fulfills.

        https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-use-conditions.html
        """
        # A name of ours, so that the alarm of another stack knows it.
        self.rule = f"{cdk.Stack.of(self).stack_name}-{self.node.id}"
        rule = events.CfnRule(
            self,
            "Rule",
            name=self.rule,
            description="Events for s3commit",
            event_pattern={"source": [source], "detail-type": [kind], "detail": detail},
            targets=[events.CfnRule.TargetProperty(id="Queue", arn=self.queue.queue_arn)],
        )
        self.admit("events.amazonaws.com", rule.attr_arn)


@jsii.implements(s3.IBucketNotificationDestination)
class InboxDestination:
    """An inbox as an imported bucket's notifications name it.

    The CDK's own destination would admit the bucket by its name alone, whose account it may be.
    """

    def __init__(self, inbox: Inbox, admission: IDependable) -> None:
        self._arn, self._admission = inbox.queue.queue_arn, admission

    def bind(self, scope: Construct, bucket: Any) -> s3.BucketNotificationDestinationConfig:
        """The queue, and that its policy comes first."""
        return s3.BucketNotificationDestinationConfig(
            arn=self._arn,
            type=s3.BucketNotificationDestinationType.QUEUE,
            dependencies=[self._admission],
        )
