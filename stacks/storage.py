"""The stack that must survive: data bucket, ledger, and the queues that the bucket notifies.

The logical ids of this stack never change: CloudFormation would replace what is behind them.
"""

import json
from typing import Any, cast

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from s3commit.aws import env
from stacks.access import protection
from stacks.checks import acknowledge, acknowledge_wildcard
from stacks.config import DeployConfig
from stacks.inbox import NOTIFIED, Inbox, InboxDestination


class S3CommitStorage(cdk.Stack):
    """The stateful stack. Deleting it leaves the bucket and the table where they are.

    ``bucket_arn`` is what the pipeline imports, under one name whoever made the bucket. So
    CloudFormation refuses another bucket for as long as there is a pipeline:
    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-stack-exports.html
    """

    def __init__(self, scope: Construct, construct_id: str, *, config: DeployConfig) -> None:
        super().__init__(
            scope,
            construct_id,
            stack_name=config.stack_name(construct_id),
            description="s3commit: the data bucket, the ledger and the queues before the pipeline",
            termination_protection=True,
        )
        arn = config.kms_key_arn
        self.key = kms.Key.from_key_arn(self, "Key", arn) if arn else None
        self.ledger = self._ledger()
        self.inboxes = {name: Inbox(self, name) for name in dict.fromkeys(NOTIFIED.values())}
        if config.import_bucket is None:
            self.bucket: s3.IBucket = self._create_bucket(config)
        else:
            self.bucket = self._import_bucket(config, config.import_bucket)
        self.bucket_arn: str = self.export_value(
            self.bucket.bucket_arn, name=config.stack_name(env.BUCKET_EXPORT)
        )
        if config.events == "eventbridge":
            for inbox in self.inboxes.values():
                keys = [{"suffix": suffix} for suffix in inbox.suffixes]
                where = {"bucket": {"name": [self.bucket.bucket_name]}, "object": {"key": keys}}
                inbox.add_rule("aws.s3", "Object Created", where)
        cdk.CfnOutput(self, env.BUCKET_OUTPUT, value=self.bucket.bucket_name)
        # For the next deployment, and for `s3commit doctor`.
        cdk.CfnOutput(self, env.PARAMETERS_OUTPUT, value=json.dumps(config.given))
        cdk.CfnOutput(self, env.TABLE_OUTPUT, value=self.ledger.table_name)

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
            index_name=env.BY_STATE,
            partition_key=_string("shelf"),
            sort_key=_string("updated_at"),
            projection_type=dynamodb.ProjectionType.ALL,
        )
        return ledger

    def _create_bucket(self, config: DeployConfig) -> s3.Bucket:
        logs_to = config.access_logs_bucket
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
            server_access_logs_bucket=(
                s3.Bucket.from_bucket_name(self, "AccessLogs", logs_to) if logs_to else None
            ),
            server_access_logs_prefix="s3commit/" if logs_to else None,
            # A first deployment that fails takes its empty bucket, and the bucket's name, back.
            removal_policy=cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
        )
        if logs_to is None:
            acknowledge(
                bucket,
                "AwsSolutions-S1",
                "Where access logs go is the account's choice: the parameter accessLogsBucket "
                "turns them on; CloudTrail data events are the other way to have them.",
            )
        if config.protect_names != "none":
            roles = f"arn:{self.partition}:iam::{self.account}:role{config.role_path}*"
            for statement in protection(
                bucket.bucket_arn, config.protect_names, [roles, *config.operators], config.served
            ):
                bucket.add_to_resource_policy(iam.PolicyStatement.from_json(statement))
        self._notify_directly(bucket, config)
        return bucket

    def _notify_directly(self, bucket: s3.Bucket, config: DeployConfig) -> None:
        """The bucket's own NotificationConfiguration; S3 tries the queues when it is set.

        The policies must exist before the bucket, so they can't name its generated ARN: they admit
        the buckets of this account alone (or the one bucket, if the name is given).
        """
        resource = cast("s3.CfnBucket", bucket.node.default_child)
        configuration: dict[str, Any] = {"EventBridgeConfiguration": {"EventBridgeEnabled": True}}
        if config.events == "notifications":
            source = f"arn:{self.partition}:s3:::{config.bucket_name or '*'}"
            for inbox in self.inboxes.values():
                bucket.node.add_dependency(inbox.admit("s3.amazonaws.com", source))
            queues = [
                {
                    "Event": "s3:ObjectCreated:*",
                    "Queue": inbox.queue.queue_arn,
                    "Filter": {"S3Key": {"Rules": [{"Name": "suffix", "Value": suffix}]}},
                }
                for inbox in self.inboxes.values()
                for suffix in inbox.suffixes
            ]
            configuration = {"QueueConfigurations": queues}
        resource.add_property_override("NotificationConfiguration", configuration)

    def _import_bucket(self, config: DeployConfig, bucket_name: str) -> s3.IBucket:
        """CDK's notification resource adds ours to what the bucket has already."""
        bucket = s3.Bucket.from_bucket_name(self, "DataBucket", bucket_name)
        if config.events == "eventbridge":
            bucket.enable_event_bridge_notification()
        else:
            for inbox in self.inboxes.values():
                admission = inbox.admit("s3.amazonaws.com", bucket.bucket_arn)
                destination = InboxDestination(inbox, admission)
                for suffix in inbox.suffixes:
                    only = s3.NotificationKeyFilter(suffix=suffix)
                    bucket.add_event_notification(s3.EventType.OBJECT_CREATED, destination, only)
        self._tend_notification_resource(config)
        return bucket

    def _tend_notification_resource(self, config: DeployConfig) -> None:
        """Give the CDK's own handler the path of our roles and a log that ends."""
        handler = next(
            child for child in self.node.children if child.node.id.startswith("BucketNotif")
        )
        (role,) = (one for one in handler.node.find_all() if isinstance(one, iam.CfnRole))
        role.path = config.role_path
        (function,) = (
            one
            for one in handler.node.find_all()
            if isinstance(one, cdk.CfnResource) and one.cfn_resource_type == "AWS::Lambda::Function"
        )
        group = config.log_group(self, "NotificationLogs")
        function.add_property_override("LoggingConfig.LogGroup", group.log_group_name)
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
