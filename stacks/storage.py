"""What must survive: the data bucket, the ledger, and the queues that the bucket notifies.

The logical ids of this stack never change: CloudFormation would replace what is behind them.
"""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_s3_notifications as notifications
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from s3commit.aws import env
from stacks.access import protection
from stacks.checks import acknowledge, acknowledge_wildcard
from stacks.config import DeployConfig
from stacks.functions import BY_STATE, FUNCTIONS

# The queues, each with the function that takes its messages.
CONSUMERS = {"Ingest": "ingest", "Request": "dispatch"}
# Which queue hears of the objects whose keys end so.
NOTIFIED = {".pendingset": "Ingest", "/job.json": "Ingest", "/request.json": "Request"}
# After that many tries a message is put aside and the alarm rings.
MAX_RECEIVE = 5
# SQS keeps a message 14 days at most: a dead letter gets all of them.
DEAD_LETTER_DAYS = 14
QUEUE_DAYS = 4


class Inbox(Construct):
    """``queue`` and ``dead_letters``; encrypted by SQS, TLS only.

    It has no consumer of its own: `stacks.pipeline` connects the functions.
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


class S3CommitStorage(cdk.Stack):
    """The stateful stack. Deleting it leaves the bucket and the table where they are.

    ``bucket_arn`` may be used by the pipeline inside longer ARNs; the export behind it is fixed
    by name, so that it can't vanish while the pipeline imports it.
    """

    def __init__(self, scope: Construct, construct_id: str, *, config: DeployConfig) -> None:
        super().__init__(
            scope,
            construct_id,
            stack_name=config.stack_name(construct_id),
            description="s3commit: the data bucket, the ledger and the queues before the pipeline",
            termination_protection=True,
        )
        self.key = self._import_key(config)
        self.ledger = self._ledger()
        self.inboxes = {
            name: Inbox(self, name, visibility=_visibility(function))
            for name, function in CONSUMERS.items()
        }
        if config.import_bucket is None:
            bucket = self._create_bucket(config)
            self.bucket: s3.IBucket = bucket
            self.bucket_arn: str = self.export_value(bucket.bucket_arn)
        else:
            self.bucket = self._import_bucket(config.import_bucket)
            self.bucket_arn = self.bucket.bucket_arn
        cdk.CfnOutput(self, env.BUCKET_OUTPUT, value=self.bucket.bucket_name)
        cdk.CfnOutput(self, "TableName", value=self.ledger.table_name)

    def _import_key(self, config: DeployConfig) -> kms.IKey | None:
        if config.kms_key_arn is None:
            return None
        return kms.Key.from_key_arn(self, "Key", config.kms_key_arn)

    def _ledger(self) -> dynamodb.Table:
        ledger = dynamodb.Table(
            self,
            "Ledger",
            partition_key=_string("pk"),
            sort_key=_string("sk"),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            time_to_live_attribute="expires_at",
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            deletion_protection=True,
            removal_policy=cdk.RemovalPolicy.RETAIN,
        )
        ledger.add_global_secondary_index(
            index_name=BY_STATE,
            partition_key=_string("shelf"),
            sort_key=_string("updated_at"),
            projection_type=dynamodb.ProjectionType.ALL,
        )
        return ledger

    def _create_bucket(self, config: DeployConfig) -> s3.Bucket:
        bucket = s3.Bucket(
            self,
            "DataBucket",
            bucket_name=config.bucket_name,
            encryption=s3.BucketEncryption.KMS if self.key else s3.BucketEncryption.S3_MANAGED,
            encryption_key=self.key,
            bucket_key_enabled=True if self.key else None,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            enforce_ssl=True,
            versioned=config.versioned,
            lifecycle_rules=_lifecycle(config),
            server_access_logs_bucket=self._access_logs(config),
            server_access_logs_prefix="s3commit/" if config.access_logs_bucket else None,
            # A first deployment that fails takes its empty bucket, and the bucket's name, back.
            removal_policy=cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
        )
        if config.access_logs_bucket is None:
            acknowledge(
                bucket,
                "AwsSolutions-S1",
                "Where access logs go is the account's choice: the parameter accessLogsBucket "
                "turns them on; CloudTrail data events are the other way to have them.",
            )
        if config.protect_names != "none":
            roles = f"arn:{self.partition}:iam::{self.account}:role{config.role_path}*"
            for statement in protection(
                bucket.bucket_arn, config.protect_names, [roles, *config.operators]
            ):
                bucket.add_to_resource_policy(iam.PolicyStatement.from_json(statement))
        self._notify_directly(bucket, config)
        return bucket

    def _access_logs(self, config: DeployConfig) -> s3.IBucket | None:
        if config.access_logs_bucket is None:
            return None
        return s3.Bucket.from_bucket_name(self, "AccessLogs", config.access_logs_bucket)

    def _notify_directly(self, bucket: s3.Bucket, config: DeployConfig) -> None:
        """The bucket's own NotificationConfiguration; S3 tries the queues when it is set.

        The policies must stand before the bucket, so they can't name its generated ARN: they
        admit the buckets of this account alone (or the one bucket, if the name is given).
        """
        source = f"arn:{self.partition}:s3:::{config.bucket_name or '*'}"
        for inbox in self.inboxes.values():
            inbox.admit_bucket(source, self.account)
            bucket.node.add_dependency(inbox.admission)
        resource = bucket.node.default_child
        assert isinstance(resource, s3.CfnBucket)  # noqa: S101 - what an L2 bucket is made of
        resource.notification_configuration = s3.CfnBucket.NotificationConfigurationProperty(
            queue_configurations=[
                _queue_configuration(self.inboxes[name].queue, suffix)
                for suffix, name in NOTIFIED.items()
            ]
        )

    def _import_bucket(self, bucket_name: str) -> s3.IBucket:
        """CDK's notification resource adds ours to those that the bucket has already."""
        bucket = s3.Bucket.from_bucket_name(self, "DataBucket", bucket_name)
        for suffix, name in NOTIFIED.items():
            bucket.add_event_notification(
                s3.EventType.OBJECT_CREATED,
                notifications.SqsDestination(self.inboxes[name].queue),
                s3.NotificationKeyFilter(suffix=suffix),
            )
        self._acknowledge_notification_resource()
        return bucket

    def _acknowledge_notification_resource(self) -> None:
        handler = next(
            child for child in self.node.children if child.node.id.startswith("BucketNotif")
        )
        acknowledge(
            handler,
            "AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/"
            "AWSLambdaBasicExecutionRole]",
            "CDK's own handler, which runs at deploy time only; the policy lets it write its log.",
        )
        acknowledge_wildcard(
            handler,
            "*",
            "CDK's own handler, which runs at deploy time only: it reads and puts the "
            "notification configuration of the imported bucket, and nothing else.",
        )


def _string(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)


def _visibility(function: str) -> cdk.Duration:
    # AWS asks for six times the function's timeout, and the batching window on top:
    # https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
    return cdk.Duration.seconds(6 * FUNCTIONS[function].timeout)


def _lifecycle(config: DeployConfig) -> list[s3.LifecycleRule]:
    rules = [
        s3.LifecycleRule(
            id="abort-incomplete-uploads",
            abort_incomplete_multipart_upload_after=cdk.Duration.days(config.abort_incomplete_days),
        )
    ]
    if config.versioned:
        rules.append(
            s3.LifecycleRule(
                id="expire-noncurrent-versions",
                noncurrent_version_expiration=cdk.Duration.days(config.noncurrent_days),
                expired_object_delete_marker=True,
            )
        )
    return rules


def _queue_configuration(queue: sqs.IQueue, suffix: str) -> s3.CfnBucket.QueueConfigurationProperty:
    return s3.CfnBucket.QueueConfigurationProperty(
        event="s3:ObjectCreated:*",
        queue=queue.queue_arn,
        filter=s3.CfnBucket.NotificationFilterProperty(
            s3_key=s3.CfnBucket.S3KeyFilterProperty(
                rules=[s3.CfnBucket.FilterRuleProperty(name="suffix", value=suffix)]
            )
        ),
    )
