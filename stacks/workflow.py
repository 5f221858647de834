"""The resource that runs the state machine, with its role and its log."""

import json
from collections.abc import Mapping

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from stacks.access import INDEX, why_wide
from stacks.checks import acknowledge, acknowledge_wildcard
from stacks.config import DeployConfig
from stacks.definition import definition
from stacks.functions import allow

WHY_EXECUTIONS = "Executions of this machine alone, and of its Maps; named at run time."


class Workflow(Construct):
    """The state machine, its log and its role: it invokes our functions and reads plans."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        functions: Mapping[str, str],
        bucket_arn: str,
        config: DeployConfig,
    ) -> None:
        super().__init__(scope, construct_id)
        stack = cdk.Stack.of(self)
        self.role = iam.Role(
            self,
            "Role",
            # https://docs.aws.amazon.com/step-functions/latest/dg/procedure-create-iam-role.html
            assumed_by=iam.ServicePrincipal(
                "states.amazonaws.com",
                conditions={"StringEquals": {"aws:SourceAccount": stack.account}},
            ),
            path=config.role_path,
        )
        bus = stack.format_arn(service="events", resource="event-bus", resource_name="default")
        allow(self.role, ["lambda:InvokeFunction"], *functions.values())
        allow(self.role, ["s3:GetObject"], f"{bucket_arn}/{INDEX}", why=why_wide(INDEX))
        allow(self.role, ["events:PutEvents"], bus)
        if config.kms_key_arn:
            allow(self.role, ["kms:Decrypt"], config.kms_key_arn)
        acknowledge_wildcard(
            self.role,
            "*",
            "Step Functions' log delivery and X-Ray actions know no resource: "
            "https://docs.aws.amazon.com/step-functions/latest/dg/cw-logs.html",
        )
        self.machine = sfn.StateMachine(
            self,
            "Machine",
            state_machine_type=sfn.StateMachineType.STANDARD,
            # Not `Stack.to_json_string`: it drops each null, and a ResultPath of null means a lot.
            definition_body=sfn.DefinitionBody.from_string(json.dumps(definition(functions))),
            role=self.role,
            tracing_enabled=True,
            logs=self._logs(config),
        )
        if config.execution_logs == "errors":
            acknowledge(
                self.machine,
                "AwsSolutions-SF1",
                "Step Functions itself keeps the history of a standard execution for 90 days, for "
                "those who may read it: https://docs.aws.amazon.com/step-functions/latest/dg/"
                "choosing-workflow-type.html. A log of all events would be a copy with a longer "
                "list of readers; the parameter executionLogs turns it on.",
            )
        # A distributed Map starts children of its own machine:
        # https://docs.aws.amazon.com/step-functions/latest/dg/iam-policies-eg-dist-map.html
        runs = [f"{self.executions}:*", f"{self.executions}/*"]
        self.map_runs = self._policy(
            "MapRuns",
            self.role,
            (["states:StartExecution"], [self.machine.state_machine_arn]),
            (["states:DescribeExecution", "states:StopExecution"], runs),
        )

    @property
    def executions(self) -> str:
        """The ARN of the machine's executions, without what follows: their names."""
        stack, name = cdk.Stack.of(self), self.machine.state_machine_name
        return f"arn:{stack.partition}:states:{stack.region}:{stack.account}:execution:{name}"

    def _logs(self, config: DeployConfig) -> sfn.LogOptions:
        """The machine's log, and the group that it logs to.

        Each group that Step Functions writes to takes a part of one resource policy of 5,120
        characters in the account, unless its name begins with ``/aws/vendedlogs/``:
        https://docs.aws.amazon.com/step-functions/latest/dg/cw-logs.html
        """
        group = config.log_group(self, "jobs", prefix="/aws/vendedlogs/states/")
        return sfn.LogOptions(
            destination=group,
            level=sfn.LogLevel.ERROR if config.execution_logs == "errors" else sfn.LogLevel.ALL,
            # The input and output of states has keys, hence names of customers and partitions.
            include_execution_data=config.execution_logs == "data",
        )

    def allow_to_ask(self, role: iam.IRole) -> None:
        """Let a function that the machine calls ask which of its executions are at work."""
        self._policy("Asks", role, (["states:DescribeExecution"], [f"{self.executions}:*"]))

    def _policy(
        self, name: str, role: iam.IRole, *rights: tuple[list[str], list[str]]
    ) -> iam.Policy:
        """A policy apart, of actions on resources; the role's own would wait for the machine.

        The machine waits for its role's policy, and for its functions, which wait for their roles'.
        """
        statements = [
            iam.PolicyStatement(actions=actions, resources=resources)
            for actions, resources in rights
        ]
        policy = iam.Policy(self, name, statements=statements, roles=[role])
        for resource in (one for _, resources in rights for one in resources):
            if resource.endswith("*"):
                acknowledge_wildcard(policy, resource, WHY_EXECUTIONS)
        return policy
