"""Every function of the pipeline: one table of facts, one construct that builds each of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from s3commit.aws import env
from stacks.access import ACCESS, Access, listing, narrowed, why_wide
from stacks.checks import acknowledge, acknowledge_wildcard
from stacks.config import DeployConfig

RUNTIME = lambda_.Runtime.PYTHON_3_13
_LOGS = ["logs:CreateLogStream", "logs:PutLogEvents"]
# Rights of a function's role that Lambda needs to connect it to a VPC.
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
_STARTS = (*_LEDGER, env.LEDGER, env.PREFIXES, env.STATE_MACHINE, env.BUCKET)

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
        (*_LEDGER, *_PUTS, env.LEDGER, env.PREFIXES, env.REPLACE_BELOW, env.WORKERS),
    ),
    "complete": Function("Completes the uploads of one unit of the plan", 90, _ONE, _LEDGER),
    "end": Function(
        "Publishes or undoes a job, then tidies up",
        900,
        _MANY,
        (*_LEDGER, *_PUTS, env.PREFIXES, env.WORKERS, env.FRESH_TABLES),
    ),
    "sweep": Function(
        "Starts, abandons and retires jobs that no event leads to",
        900,
        _MANY,
        (*_STARTS, *_PUTS, env.LISTENS),
    ),
    # There if the parameter `catalogs` names a table.
    "catalog": Function("Notifies catalogs of a commit", 300, _JOB, (env.CATALOGS, *_PUTS)),
}


class PipelineFunction(Construct):
    """One function with its log group and a role that has what `stacks.access` lists.

    It grants nothing else; what a queue or the state machine needs is added in `stacks.pipeline`.
    ``values`` are the environment's values by name; the function gets those that it reads.
    """

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        config: DeployConfig,
        code: lambda_.Code,
        layer: lambda_.ILayerVersion,
        bucket_arn: str,
        table_arn: str,
        values: Mapping[str, str | None],
    ) -> None:
        super().__init__(scope, name.capitalize())
        facts = FUNCTIONS[name]
        self.log_group = config.log_group(self, name)
        self.role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            path=config.role_path,
        )
        self._grant(ACCESS[name], config, bucket_arn, table_arn)
        self.function = lambda_.Function(
            self,
            "Function",
            description=facts.does,
            code=code,
            handler=f"{name}.handler",
            runtime=RUNTIME,
            architecture=lambda_.Architecture.custom(config.architecture),
            layers=[layer],
            timeout=cdk.Duration.seconds(facts.timeout),
            memory_size=facts.memory,
            role=self.role,
            log_group=self.log_group,
            tracing=lambda_.Tracing.ACTIVE,
            environment={
                "POWERTOOLS_SERVICE_NAME": env.SERVICE,
                "POWERTOOLS_METRICS_NAMESPACE": config.namespace,
                "POWERTOOLS_LOG_LEVEL": "INFO",
                **{read: value for read in facts.reads if (value := values.get(read))},
            },
            reserved_concurrent_executions=(
                config.shares.workers if config.reserve_workers and name == "complete" else None
            ),
        )
        connect(cast("cdk.CfnResource", self.function.node.default_child), self.role, config)
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
            "X-Ray's PutTraceSegments and PutTelemetryRecords know no resource:"
            " https://docs.aws.amazon.com/service-authorization/latest/reference/list_awsx-ray.html"
            " In a VPC, Lambda needs EC2's rights on all network interfaces; the function itself"
            " is denied them.",
        )

    def _grant(self, access: Access, config: DeployConfig, bucket: str, table: str) -> None:
        allow(self.role, _LOGS, self.log_group.log_group_arn)
        role: iam.Role | iam.Policy = self.role
        if access.objects and config.served != ("",):
            # The CDK takes each ARN for a long one, and would make two policies of the role's own.
            role = iam.Policy(self.role, "Prefixes", roles=[self.role])
        for pattern, actions in access.objects.items():
            named = [f"s3:{action}" for action in actions]
            keys = [f"{bucket}/{key}" for key in narrowed(pattern, config.served)]
            allow(role, named, *keys, why=why_wide(pattern))
        for action, patterns in access.denied.items():
            _deny(self.role, [f"s3:{action}"], [f"{bucket}/{pattern}" for pattern in patterns])
        for service, actions, resource in (
            ("s3", access.bucket, bucket),
            ("dynamodb", access.ledger, table),
            ("dynamodb", access.index, f"{table}/index/{env.BY_STATE}"),
        ):
            if actions:
                only = listing(config.served) if service == "s3" else {}
                allow(self.role, [f"{service}:{one}" for one in actions], resource, only=only)
        for key in filter(None, (config.kms_key_arn, *config.job_key_arns)):
            if rights := access.of_key(of_jobs=key != config.kms_key_arn):
                allow(self.role, rights, key)


def connect(function: cdk.CfnResource, role: iam.Role, config: DeployConfig) -> None:
    """Give a function interfaces in the subnets; Lambda makes them, the code has no right to.

    https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html
    """
    if not config.subnets:
        return
    network = {"SubnetIds": config.subnets, "SecurityGroupIds": config.security_groups}
    if isinstance(function, lambda_.CfnFunction):  # so that judges of constructs see it
        function.vpc_config = lambda_.CfnFunction.VpcConfigProperty(
            subnet_ids=list(config.subnets), security_group_ids=list(config.security_groups)
        )
    else:
        function.add_property_override("VpcConfig", {name: [*ids] for name, ids in network.items()})
    allow(role, INTERFACES, "*")
    stack = cdk.Stack.of(role)
    code = f"arn:{stack.partition}:lambda:{stack.region}:{stack.account}:function:*"
    _deny(role, INTERFACES, ["*"], {"ArnLike": {"lambda:SourceFunctionArn": code}})


def _deny(
    role: iam.Role,
    actions: list[str],
    resources: list[str],
    conditions: dict[str, Any] | None = None,
) -> None:
    role.add_to_policy(
        iam.PolicyStatement(
            effect=iam.Effect.DENY, actions=actions, resources=resources, conditions=conditions
        )
    )


def allow(
    role: iam.Role | iam.Policy,
    actions: list[str],
    *resources: str,
    why: str = "",
    only: Mapping[str, Any] | None = None,
) -> None:
    """Let the role, or the policy's, do the actions; those of S3 in this account's buckets alone.

    ``why`` is the reason for a ``*`` in the ARNs, ``only`` are conditions.

    A bucket is known by its name, which others may take when it is deleted:
    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-keys.html
    """
    owner = {"StringEquals": {"aws:ResourceAccount": cdk.Stack.of(role).account}}
    of_s3 = any(action.startswith("s3:") for action in actions)
    add = role.add_statements if isinstance(role, iam.Policy) else role.add_to_policy
    conditions = {**owner, **(only or {})} if of_s3 else None
    add(iam.PolicyStatement(actions=actions, resources=list(resources), conditions=conditions))
    for resource in resources if why else ():
        acknowledge_wildcard(role, resource, why)
