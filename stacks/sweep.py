"""The sweep: its state machine, with role and log, and the schedule that starts it."""

from __future__ import annotations

import json
from collections.abc import Mapping

import aws_cdk as cdk
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from stacks.checks import acknowledge_wildcard
from stacks.config import DeployConfig, parameter_name
from stacks.sweep_definition import sweep_definition
from stacks.workflow import acknowledge_logs, machine_logs

LIMITS = ("stuck_minutes", "abandoned_hours", "orphaned_days", "retention_days")


class Sweep(Construct):
    """Invokes its functions, and nothing else. Two that overlap do no harm."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        functions: Mapping[str, str],
        bucket: str,
        config: DeployConfig,
    ) -> None:
        super().__init__(scope, construct_id)
        role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("states.amazonaws.com"))
        role.add_to_policy(
            iam.PolicyStatement(
                actions=["lambda:InvokeFunction"], resources=list(functions.values())
            )
        )
        acknowledge_wildcard(
            role,
            "*",
            "Step Functions' log delivery and X-Ray actions know no resource: "
            "https://docs.aws.amazon.com/step-functions/latest/dg/cw-logs.html",
        )
        limits = {parameter_name(name): getattr(config, name) for name in LIMITS}
        self.machine = sfn.StateMachine(
            self,
            "Machine",
            comment="s3commit: what jobs have left behind",
            state_machine_type=sfn.StateMachineType.STANDARD,
            definition_body=sfn.DefinitionBody.from_string(
                json.dumps(sweep_definition(functions, bucket, limits))
            ),
            role=role,
            tracing_enabled=True,
            logs=machine_logs(self, "sweep", config),
        )
        acknowledge_logs(self.machine, config)
        events.Rule(
            self,
            "Schedule",
            description="Starts a sweep now and then",
            schedule=events.Schedule.rate(cdk.Duration.minutes(config.sweep_minutes)),
            targets=[
                targets.SfnStateMachine(
                    self.machine,
                    input=events.RuleTargetInput.from_object({"startedBy": "schedule"}),
                )
            ],
        )
