"""What can be thrown away and deployed again: functions, state machine, routing, alarms."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from s3commit.aws import env
from s3commit.version import __version__
from stacks.bytecode import PYTHON_VERSION, runtime_python
from stacks.checks import acknowledge_wildcard
from stacks.config import DeployConfig
from stacks.definition import MAP_FUNCTION, STEPS
from stacks.dependencies import ROOT, dependencies_layer
from stacks.functions import FUNCTIONS, RUNTIME, PipelineFunction, Surroundings
from stacks.observability import Observability
from stacks.package import package_layer
from stacks.routing import consume
from stacks.spark_jars import SparkJars
from stacks.storage import S3CommitStorage
from stacks.sweep import schedule_sweep
from stacks.workflow import Workflow

_REFUSING = ("ingest", "dispatch", "end")
_BYTECODE = ["**/__pycache__", "**/*.pyc"]


class S3CommitPipeline(cdk.Stack):
    """The stateless stack: it holds nothing that a second deployment would miss."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        config: DeployConfig,
        storage: S3CommitStorage,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            stack_name=config.stack_name(construct_id),
            description="s3commit: the pipeline that decides and completes jobs",
        )
        self.add_stack_dependency(storage)
        surroundings = self._surroundings(config, storage)
        functions = {name: PipelineFunction(self, name, surroundings) for name in FUNCTIONS}
        workflow = Workflow(
            self,
            "CommitJob",
            functions={
                name: functions[name].function.function_arn
                for name in sorted({*STEPS.values(), MAP_FUNCTION})
            },
            bucket_arn=storage.bucket_arn,
            config=config,
        )
        self._connect(functions, workflow, storage, config)
        schedule_sweep(self, functions["sweep"].function, config)
        Observability(
            self,
            "Observability",
            functions={name: each.function for name, each in functions.items()},
            machine=workflow.machine,
            inboxes={"Ingest": storage.ingest, "Request": storage.requests},
            refusing=[functions[name].log_group.log_group_name for name in _REFUSING],
            alarm_email=config.alarm_email,
        )
        if config.spark_jars:
            SparkJars(self, "SparkJars")
        cdk.CfnOutput(self, "StateMachineArn", value=workflow.machine.state_machine_arn)
        # For `s3commit doctor`.
        cdk.CfnOutput(self, env.VERSION_OUTPUT, value=__version__)
        cdk.CfnOutput(self, env.CONCURRENCY_OUTPUT, value=str(config.lambda_concurrency))

    def _surroundings(self, config: DeployConfig, storage: S3CommitStorage) -> Surroundings:
        return Surroundings(
            code=lambda_.Code.from_asset(str(ROOT / "lambdas"), exclude=_BYTECODE),
            layers=self._layers(),
            architecture=(
                lambda_.Architecture.ARM_64
                if config.architecture == "arm64"
                else lambda_.Architecture.X86_64
            ),
            log_retention=config.log_retention,
            role_path=config.role_path,
            bucket_arn=storage.bucket_arn,
            table_arn=storage.ledger.table_arn,
            kms_key_arn=config.kms_key_arn,
            job_key_arns=config.job_key_arns,
            values={
                env.TABLE: storage.ledger.table_name,
                # Out of the ARN, which is what the storage stack exports.
                env.BUCKET: config.import_bucket
                or cdk.Fn.select(5, cdk.Fn.split(":", storage.bucket_arn)),
                env.LEDGER_TTL_DAYS: str(config.ledger_ttl_days),
                env.REPLACE_BELOW: json.dumps(config.replace_prefixes),
            },
        )

    def _layers(self) -> list[lambda_.ILayerVersion]:
        """Our package without what only clients need, and the third-party packages."""
        if runtime_python() is None:
            cdk.Annotations.of(self).add_warning_v2(
                "s3commit:bytecode",
                f"No Python {PYTHON_VERSION} on the PATH: the layers have no byte code, and each "
                "cold start takes three times as long (docs/deploy.md)",
            )
        # The CDK copies the content at once.
        with tempfile.TemporaryDirectory(prefix="s3commit-layer-") as scratch:
            package = self._layer("Package", package_layer(Path(scratch)))
        return [package, self._layer("Dependencies", dependencies_layer())]

    def _layer(self, name: str, content: Path) -> lambda_.LayerVersion:
        return lambda_.LayerVersion(
            self,
            f"{name}Layer",
            code=lambda_.Code.from_asset(str(content)),
            compatible_runtimes=[RUNTIME],
            compatible_architectures=[lambda_.Architecture.ARM_64, lambda_.Architecture.X86_64],
        )

    def _connect(
        self,
        functions: dict[str, PipelineFunction],
        workflow: Workflow,
        storage: S3CommitStorage,
        config: DeployConfig,
    ) -> None:
        sweeper = functions["sweep"]
        for starter in (functions["dispatch"], sweeper):
            starter.allow(["states:StartExecution"], workflow.machine.state_machine_arn)
            starter.function.add_environment(env.STATE_MACHINE, workflow.machine.state_machine_arn)
        sweeper.allow(["states:DescribeExecution"], f"{workflow.executions}:*")
        acknowledge_wildcard(
            sweeper.role,
            f"{workflow.executions}:*",
            "The executions of this machine alone; each is named by its job, at run time. "
            "Their status tells whether anyone works.",
        )
        # Anybody may write a manifest that takes a call's whole time. A call that is killed gives
        # back all of its messages, and after five times for good: so each has only one.
        # https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
        consume(
            self,
            "IngestQueue",
            inbox=storage.ingest,
            consumer=functions["ingest"],
            max_concurrency=config.shares.manifests,
            batch_size=1,
        )
        consume(
            self,
            "RequestQueue",
            inbox=storage.requests,
            consumer=functions["dispatch"],
            max_concurrency=config.shares.requests,
            batch_size=10,
        )
