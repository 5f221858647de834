"""Which queue wakes which function."""

from __future__ import annotations

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from stacks.functions import PipelineFunction
from stacks.inbox import Inbox

# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
_CONSUME = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"]


def consume(
    scope: Construct,
    construct_id: str,
    *,
    inbox: Inbox,
    consumer: PipelineFunction,
    max_concurrency: int,
    batch_size: int,
) -> lambda_.EventSourceMapping:
    """Feed the queue to the function, so many messages at once; a failed one alone comes back."""
    consumer.allow(_CONSUME, inbox.queue.queue_arn)
    mapping = lambda_.EventSourceMapping(
        scope,
        construct_id,
        target=consumer.function,
        event_source_arn=inbox.queue.queue_arn,
        batch_size=batch_size,
        max_concurrency=max_concurrency,
        report_batch_item_failures=True,
    )
    # Lambda tries to read the queue when the mapping is made.
    mapping.node.add_dependency(consumer.role)
    return mapping
