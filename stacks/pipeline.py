"""What can be thrown away and deployed again: functions, state machine, routing, alarms.

`build` puts it upon the storage, for `app.py` and the tests.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from aws_cdk.aws_s3_assets import Asset
from constructs import Construct

from s3commit.aws import env
from s3commit.version import __version__
from stacks.checks import acknowledge_wildcard, add_checks
from stacks.config import PREFIX, ConfigError, DeployConfig, parameter_name
from stacks.definition import MAP_FUNCTION, STEPS
from stacks.functions import FUNCTIONS, RUNTIME, PipelineFunction, Surroundings, allow
from stacks.inbox import CONSUMERS, Inbox
from stacks.layers import (
    PACKAGE,
    PYTHON_VERSION,
    ROOT,
    dependencies_layer,
    function_code,
    runtime_python,
)
from stacks.observability import Observability
from stacks.storage import S3CommitStorage
from stacks.workflow import Workflow

# What the sweep is given.
LIMITS = ("stuck_minutes", "abandoned_hours", "retention_days")
# Messages of one call. Anybody may write a manifest that takes a call's whole time. A call that is
# killed gives back all of its messages, and after five times for good: so each has only one.
# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
BATCHES = {"ingest": 1, "dispatch": 10}
BUILT = PACKAGE / "python" / "s3commit" / "spark" / "jars"
_JAR = re.compile(r"s3commit-spark_(?P<scala>2\.1[23])-[\w.]+\.jar")
_REFUSING = ("ingest", "dispatch", "end")


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
        schedule = self._connect(functions, workflow, storage, config)
        Observability(
            self,
            "Observability",
            functions={name: each.function for name, each in functions.items()},
            machine=workflow.machine,
            inboxes=storage.inboxes,
            refusing=[functions[name].log_group.log_group_name for name in _REFUSING],
            schedule=schedule,
            config=config,
        )
        if config.spark_jars:
            SparkJars(self, "SparkJars")
        # For the command.
        cdk.CfnOutput(self, env.STATE_MACHINE_OUTPUT, value=workflow.machine.state_machine_arn)
        cdk.CfnOutput(self, env.VERSION_OUTPUT, value=__version__)
        cdk.CfnOutput(self, env.CONCURRENCY_OUTPUT, value=str(config.lambda_concurrency))

    def _surroundings(self, config: DeployConfig, storage: S3CommitStorage) -> Surroundings:
        return Surroundings(
            config=config,
            code=self._code(),
            layers=[self._dependencies()],
            bucket_arn=storage.bucket_arn,
            table_arn=storage.ledger.table_arn,
            reserved={MAP_FUNCTION: config.shares.workers} if config.reserve_workers else {},
            values={
                env.TABLE: storage.ledger.table_name,
                # Out of the ARN, which is what the storage stack exports.
                env.BUCKET: cdk.Fn.select(5, cdk.Fn.split(":", storage.bucket_arn)),
                env.LEDGER_TTL_DAYS: str(config.ledger_ttl_days),
                env.REPLACE_BELOW: json.dumps(config.replace_prefixes),
                env.WORKERS: json.dumps([config.shares.workers, config.max_concurrency]),
                **_own_encryption(config),
                **({env.FRESH_TABLES: json.dumps(list(config.fresh))} if config.fresh else {}),
            },
        )

    def _code(self) -> lambda_.Code:
        """Handlers and package, without what only clients need."""
        if runtime_python() is None:
            cdk.Annotations.of(self).add_warning_v2(
                "s3commit:bytecode",
                f"No Python {PYTHON_VERSION} on the PATH: the functions have no byte code, and each"
                " cold start takes three times as long (docs/deploy.md)",
            )
        # The CDK copies the content at once.
        with tempfile.TemporaryDirectory(prefix="s3commit-code-") as scratch:
            content = function_code(Path(scratch) / "code")
            asset = Asset(self, "Code", path=str(content))
        return lambda_.Code.from_bucket(asset.bucket, asset.s3_object_key)

    def _dependencies(self) -> lambda_.LayerVersion:
        return lambda_.LayerVersion(
            self,
            "DependenciesLayer",
            code=lambda_.Code.from_asset(str(dependencies_layer())),
            compatible_runtimes=[RUNTIME],
            compatible_architectures=[lambda_.Architecture.ARM_64, lambda_.Architecture.X86_64],
        )

    def _connect(
        self,
        functions: dict[str, PipelineFunction],
        workflow: Workflow,
        storage: S3CommitStorage,
        config: DeployConfig,
    ) -> events.Rule:
        """Let each function be called by what calls it; the rule that starts the sweep."""
        sweeper = functions["sweep"]
        for starter in (functions["ingest"], functions["dispatch"], sweeper):
            allow(starter.role, ["states:StartExecution"], workflow.machine.state_machine_arn)
            starter.function.add_environment(env.STATE_MACHINE, workflow.machine.state_machine_arn)
        allow(sweeper.role, ["states:DescribeExecution"], f"{workflow.executions}:*")
        acknowledge_wildcard(
            sweeper.role,
            f"{workflow.executions}:*",
            "The executions of this machine alone; each is named by its job, at run time. "
            "Their status tells whether anyone works.",
        )
        most = {"ingest": config.shares.manifests, "dispatch": config.shares.requests}
        for name, inbox in storage.inboxes.items():
            consumer = CONSUMERS[name]
            mapping = self._consume(name, inbox, functions[consumer], consumer, most[consumer])
            if consumer == "dispatch":  # else a first job could reach a Map that may not start
                mapping.node.add_dependency(workflow.map_runs)
        rule = self._schedule(sweeper.function, config)
        cdk.CfnOutput(self, env.SWEEP_RULE_OUTPUT, value=rule.rule_name)
        return rule

    def _consume(
        self, name: str, inbox: Inbox, consumer: PipelineFunction, function: str, most: int
    ) -> lambda_.EventSourceMapping:
        """Feed the queue to the function, ``most`` calls at once; a failed message alone returns.

        https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
        """
        allow(
            consumer.role,
            ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"],
            inbox.queue.queue_arn,
        )
        mapping = lambda_.EventSourceMapping(
            self,
            f"{name}Queue",
            target=consumer.function,
            event_source_arn=inbox.queue.queue_arn,
            batch_size=BATCHES[function],
            max_concurrency=most,
            report_batch_item_failures=True,
        )
        # Lambda tries to read the queue when the mapping is made.
        mapping.node.add_dependency(consumer.role)
        # For `s3commit pause`, as is the rule's name.
        output = env.MAPPING_OUTPUTS[name]
        cdk.CfnOutput(self, output, value=mapping.event_source_mapping_id)
        return mapping

    def _schedule(self, sweep: lambda_.IFunction, config: DeployConfig) -> events.Rule:
        """Call the sweep again and again with the deployment's limits; two at once do no harm."""
        limits = {parameter_name(name): getattr(config, name) for name in LIMITS}
        return events.Rule(
            self,
            "SweepSchedule",
            description="Starts a sweep",
            schedule=events.Schedule.rate(cdk.Duration.minutes(config.sweep_minutes)),
            targets=[
                targets.LambdaFunction(sweep, event=events.RuleTargetInput.from_object(limits))
            ],
        )


def _own_encryption(config: DeployConfig) -> dict[str, str]:
    """The header of the pipeline's own puts, where the bucket's default is not meant."""
    if config.encryption == "bucket":
        return {}
    key = {env.ENCRYPTION_KEY: config.kms_key_arn} if config.kms_key_arn else {}
    return {env.ENCRYPTION: config.encryption, **(key if config.encryption == "aws:kms" else {})}


class SparkJars(Construct):
    """Uploads the jars for Spark's own file writers, to the bucket of the CDK's assets.

    Their URLs are the stack's outputs ``SparkJarScala213`` and so on. Raises `ConfigError` if
    `make jar` was not run.
    """

    def __init__(self, scope: Construct, construct_id: str, *, built: Path = BUILT) -> None:
        super().__init__(scope, construct_id)
        found = {
            match["scala"]: path for path in built.glob("*.jar") if (match := _JAR.match(path.name))
        }
        if not found:
            raise ConfigError(
                "parameter s3commit:sparkJars=true needs the jars: run make jar first"
            )
        for scala, path in sorted(found.items()):
            name = f"SparkJarScala{scala.replace('.', '')}"
            asset = Asset(self, name, path=str(path))
            output = cdk.CfnOutput(self, f"{name}Url", value=asset.s3_object_url)
            output.override_logical_id(name)


def cdk_json(project: Path) -> dict[str, Any]:
    """The context of the project's `cdk.json`; for the embedded runtime without our parameters."""
    context: dict[str, Any] = json.loads((project / "cdk.json").read_text())["context"]
    if not os.environ.get(env.LOCAL):
        return context
    return {key: each for key, each in context.items() if not key.startswith(PREFIX)}


def build(parameters: Mapping[str, Any] | None = None, outdir: str | None = None) -> cdk.App:
    """The application, not yet synthesized. Raises `stacks.config.ConfigError`.

    ``parameters`` are context keys such as ``s3commit:name``; those of the command line win. The
    context of `cdk.json` is read here too, because the CDK command alone would read it, and
    `python app.py` has to give the same templates.
    """
    app = cdk.App(context={**cdk_json(ROOT), **(parameters or {})}, outdir=outdir)
    config = DeployConfig.from_context(app.node.get_all_context())
    storage = S3CommitStorage(app, env.STORAGE_STACK, config=config)
    S3CommitPipeline(app, env.PIPELINE_STACK, config=config, storage=storage)
    cdk.Tags.of(app).add("application", "s3commit")
    add_checks(app)
    return app
