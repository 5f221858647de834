"""Every function of the pipeline: one table of facts, one construct that builds each of them."""

from __future__ import annotations

from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from s3commit.aws import env
from stacks.access import ACCESS, REASONS, Access
from stacks.checks import acknowledge, acknowledge_wildcard
from stacks.config import DeployConfig

BY_STATE = "by-state"  # the ledger's index
RUNTIME = lambda_.Runtime.PYTHON_3_13
_LOGS = ["logs:CreateLogStream", "logs:PutLogEvents"]
# What Lambda needs to connect a function to a VPC, by the function's role.
INTERFACES = [
    "ec2:CreateNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:DeleteNetworkInterface",
    "ec2:AssignPrivateIpAddresses",
    "ec2:UnassignPrivateIpAddresses",
]


@dataclass(frozen=True, slots=True)
class Function:
    """``timeout`` in seconds, ``memory`` in MB; ``reads`` are the environment names it needs."""

    does: str
    timeout: int
    memory: int
    reads: tuple[str, ...]


_LEDGER = (env.TABLE, env.LEDGER_TTL_DAYS)
_PUTS = (env.ENCRYPTION, env.ENCRYPTION_KEY)
_STARTS = (*_LEDGER, env.STATE_MACHINE, env.BUCKET)

# The memory is what the largest documents take that a client can write (docs/protocol.md,
# "Formats"; measured by `python -m bench --only documents`): one manifest at a time 1,024 MB; many
# small ones side by side, or a request, 1,769 MB; a job of a million files 3,008 MB. A Lambda gets
# a whole processor at 1,769 MB, which is what a call needs that makes requests by the hundred
# thousand: https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
_ONE = 1024
_MANY = 1769
_JOB = 3008

FUNCTIONS: dict[str, Function] = {
    "ingest": Function("Notes new jobs and the attempts of arriving manifests", 60, _ONE, _STARTS),
    "dispatch": Function(
        "Starts one execution for a job's request", 30, 256, (env.STATE_MACHINE, env.BUCKET)
    ),
    "decide": Function(
        "Seals, verifies, locks and decides a job",
        900,
        _JOB,
        (*_LEDGER, *_PUTS, env.REPLACE_BELOW, env.WORKERS),
    ),
    "complete": Function("Completes the uploads of one unit of the plan", 90, _ONE, _LEDGER),
    "end": Function(
        "Publishes or undoes a job, then tidies up",
        900,
        _MANY,
        (*_LEDGER, *_PUTS, env.WORKERS, env.FRESH_TABLES),
    ),
    "sweep": Function(
        "Starts, gives up and retires jobs that no event leads to", 900, _MANY, (*_STARTS, *_PUTS)
    ),
}


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the functions of a deployment have in common.

    ``reserved`` is the concurrency of those functions that have some reserved. ``values`` are the
    environment's values by name; a function gets those that it reads.
    """

    config: DeployConfig
    code: lambda_.Code
    layers: list[lambda_.ILayerVersion]
    bucket_arn: str
    table_arn: str
    reserved: dict[str, int]
    values: dict[str, str]


class PipelineFunction(Construct):
    """One function with its log group and a role that has what `stacks.access` lists.

    It grants nothing else; what a queue or the state machine needs is added in `stacks.pipeline`.
    """

    def __init__(self, scope: Construct, name: str, surroundings: Surroundings) -> None:
        super().__init__(scope, name.capitalize())
        facts, config = FUNCTIONS[name], surroundings.config
        self.log_group = config.log_group(self, "Logs")
        self.role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            path=config.role_path,
        )
        self._grant(ACCESS[name], surroundings)
        self.function = lambda_.Function(
            self,
            "Function",
            description=facts.does,
            code=surroundings.code,
            handler=f"{name}.handler",
            runtime=RUNTIME,
            architecture=(
                lambda_.Architecture.ARM_64
                if config.architecture == "arm64"
                else lambda_.Architecture.X86_64
            ),
            layers=surroundings.layers,
            timeout=cdk.Duration.seconds(facts.timeout),
            memory_size=facts.memory,
            role=self.role,
            log_group=self.log_group,
            tracing=lambda_.Tracing.ACTIVE,
            environment=_environment(facts, surroundings),
            reserved_concurrent_executions=surroundings.reserved.get(name),
        )
        if config.subnets:
            self._connect(config)
        acknowledge(
            self.function,
            "AwsSolutions-L1",
            "Python 3.13 is a current runtime, which AWS supports until 2029. The newest came out "
            "after the last release of pynamodb (6.1.0), which does not claim yet to run there: "
            "https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtimes.html",
        )
        acknowledge_wildcard(
            self.role,
            "*",
            "X-Ray's PutTraceSegments and PutTelemetryRecords know no resource: "
            "https://docs.aws.amazon.com/service-authorization/latest/reference/list_awsx-ray.html"
            " In a VPC, Lambda asks for EC2's rights on all network interfaces; the function itself"
            " is denied them.",
        )

    def _connect(self, config: DeployConfig) -> None:
        """Give the function interfaces in the subnets; Lambda makes them, the code may not.

        https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html
        """
        resource = self.function.node.default_child
        assert isinstance(resource, lambda_.CfnFunction)  # noqa: S101 - what an L2 is made of
        resource.vpc_config = lambda_.CfnFunction.VpcConfigProperty(
            subnet_ids=list(config.subnets), security_group_ids=list(config.security_groups)
        )
        allow(self.role, INTERFACES, "*")
        code = cdk.Stack.of(self).format_arn(
            service="lambda",
            resource="function",
            resource_name="*",
            arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
        )
        self.role.add_to_policy(
            iam.PolicyStatement(
                effect=iam.Effect.DENY,
                actions=INTERFACES,
                resources=["*"],
                conditions={"ArnLike": {"lambda:SourceFunctionArn": code}},
            )
        )

    def _grant(self, access: Access, surroundings: Surroundings) -> None:
        config, bucket, table = surroundings.config, surroundings.bucket_arn, surroundings.table_arn
        allow(self.role, _LOGS, self.log_group.log_group_arn)
        for pattern, actions in access.objects.items():
            resource = f"{bucket}/{pattern}"
            allow(self.role, [f"s3:{action}" for action in actions], resource)
            acknowledge_wildcard(self.role, resource, REASONS[pattern])
        for service, actions, resource in (
            ("s3", access.bucket, bucket),
            ("dynamodb", access.ledger, table),
            ("dynamodb", access.index, f"{table}/index/{BY_STATE}"),
        ):
            if actions:
                allow(self.role, [f"{service}:{action}" for action in actions], resource)
        if config.kms_key_arn and access.encrypts:
            allow(self.role, ["kms:GenerateDataKey"], config.kms_key_arn)
        if config.kms_key_arn and access.decrypts:
            allow(self.role, ["kms:Decrypt"], config.kms_key_arn)
        for key in config.job_key_arns:
            if access.decrypts:
                allow(self.role, ["kms:Decrypt"], key)
            if access.completes:
                allow(self.role, ["kms:GenerateDataKey"], key)


def allow(role: iam.Role, actions: list[str], *resources: str) -> None:
    """Let the role do the actions; those of S3 in buckets of this account alone.

    A bucket is known by its name, which others may take when it is deleted:
    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-keys.html
    """
    owner = {"StringEquals": {"aws:ResourceAccount": cdk.Stack.of(role).account}}
    of_s3 = any(action.startswith("s3:") for action in actions)
    role.add_to_policy(
        iam.PolicyStatement(
            actions=actions, resources=list(resources), conditions=owner if of_s3 else None
        )
    )


def _environment(facts: Function, surroundings: Surroundings) -> dict[str, str]:
    return {
        env.POWERTOOLS_SERVICE_NAME: env.SERVICE,
        env.POWERTOOLS_METRICS_NAMESPACE: surroundings.config.namespace,
        env.POWERTOOLS_LOG_LEVEL: "INFO",
        **{name: surroundings.values[name] for name in facts.reads if name in surroundings.values},
    }
