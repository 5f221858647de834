"""The schedule of the sweep."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from stacks.config import DeployConfig, parameter_name

LIMITS = ("stuck_minutes", "abandoned_hours", "retention_days")


def schedule_sweep(scope: Construct, function: lambda_.IFunction, config: DeployConfig) -> None:
    """Call the function now and then, with the deployment's limits; two at once do no harm."""
    limits = {parameter_name(name): getattr(config, name) for name in LIMITS}
    events.Rule(
        scope,
        "SweepSchedule",
        description="Starts a sweep now and then",
        schedule=events.Schedule.rate(cdk.Duration.minutes(config.sweep_minutes)),
        targets=[
            targets.LambdaFunction(function, event=events.RuleTargetInput.from_object(limits))
        ],
    )
